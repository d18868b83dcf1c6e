"""Class prototypes: what noisy class statistics say, with how far each may be off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.transport.questions.statistics import ClassStatistics
from privada.parties.protocol import only_releases
from privada.privacy.bounds import Ball
from privada.privacy.release import Release

LEAST_SHARE = 0.2  # of the mean count: a class is never divided by less, nor by less than the noise


@dataclass(frozen=True, kw_only=True, eq=False)
class Prototypes:
    """One point for each class, and the variance of the noise on each of its coordinates.

    Attributes
    ----------
    means : array of shape (classes, components)
        Projected back into the public ball.
    variances : array of shape (classes,)
    counts : array of shape (classes,)
        Noisy, and at least a share of the mean count.
    count_noise : float
        Standard deviation of the noise on a count.
    scatter : array of shape (classes, components, components) or None
        Second moments about the mean, positive semi-definite, where they were asked for.
    """

    means: FloatArray
    variances: FloatArray
    counts: FloatArray
    scatter: FloatArray | None = None
    count_noise: float = 0.0

    @classmethod
    def of(cls, question: ClassStatistics, release: Release) -> Prototypes:
        """Read a release."""
        only_releases(release)
        radius = question.features.radius
        counts = np.asarray(release["counts"], dtype=np.float64)
        noise = float(release.noise["counts"]["scale"])
        floor = max(LEAST_SHARE * float(np.maximum(counts, 0).mean()), noise, 1.0)
        counts = np.maximum(counts, floor)
        means = Ball(radius=radius).clip(release["sums"] / counts[:, None])
        variances = (float(release.noise["sums"]["scale"]) / counts) ** 2
        scatter = _scatter(question, release, counts, means) if question.moments else None
        return cls(means=means, variances=variances, counts=counts, scatter=scatter, count_noise=noise)

    @property
    def prior(self) -> FloatArray:
        """Share of each class in the source."""
        return np.asarray(self.counts / self.counts.sum())


def pooled(parts: Sequence[Prototypes], *, between: float) -> Prototypes:
    """Several sources as one: each class weighted by how well each source knows it.

    ``between`` is the variance that separates sources for reasons other than noise.
    """
    if not parts:
        raise InputError("Expected at least one source.")
    if len(parts) == 1:
        return parts[0]
    weights = np.array([1 / (part.variances + between) for part in parts])
    weights /= weights.sum(axis=0)
    means = np.einsum("sc,scd->cd", weights, np.array([part.means for part in parts]))
    variances = np.einsum("sc,sc->c", weights**2, np.array([part.variances for part in parts]))
    counts = np.sum([part.counts for part in parts], axis=0)
    scatters = [part.scatter for part in parts if part.scatter is not None]
    scatter = np.mean(scatters, axis=0) if len(scatters) == len(parts) else None
    noise = float(np.sqrt(np.sum([part.count_noise**2 for part in parts])))
    return Prototypes(means=means, variances=variances, counts=counts, scatter=scatter, count_noise=noise)


def _scatter(
    question: ClassStatistics, release: Release, counts: FloatArray, means: FloatArray
) -> FloatArray:
    """Unpack second moments, centre them and drop what noise made negative."""
    d = question.features.components
    above, beside = np.triu_indices(d)
    entries = release["moments"] / counts[:, None] / np.where(above == beside, 1.0, np.sqrt(2))
    full = np.zeros((len(counts), d, d))
    full[:, above, beside] = entries
    full[:, beside, above] = entries
    full -= means[:, :, None] * means[:, None, :]
    values, vectors = np.linalg.eigh(full)
    return np.asarray((vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1))


__all__ = ["Prototypes", "pooled"]
