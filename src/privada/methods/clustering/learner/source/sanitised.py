"""What the learner makes of a release: a sanitised source. All of it is post-processing, and free.

Cells and shells whose noisy count passes a public threshold become points, each
projected into its ball or shell and onto the public ball.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada.methods.clustering.learner.source.thresholds import threshold
from privada.methods.clustering.questions.means import (
    LocalMeans,
    NearestMeans,
    NeighbourAverages,
    SourceRadius,
)
from privada.parties.protocol import only_releases
from privada.privacy.bounds import Ball
from privada.privacy.mechanism import KNorm, KNormCylinder, Lattice, Mechanism
from privada.privacy.release import Question, Release

GAMMA = 0.05


@dataclass(frozen=True, kw_only=True, eq=False)
class SanitisedSource:
    """Points that stand for a private source.

    Attributes
    ----------
    points : array of shape (points, features)
        Sanitised source points, in the public ball.
    weights : array of shape (points,)
        Noisy number of source rows behind each (of `NeighbourAverages`: t).
    cells : array of shape (points,)
        Index of the target or coreset point that each belongs to.
    deviations : array of shape (points,)
        Root mean squared error of each point that the noise makes, to first order.
    release : Release
        What all of it was made of.
    """

    points: FloatArray
    weights: FloatArray
    cells: IntArray
    deviations: FloatArray
    release: Release

    def __len__(self) -> int:
        return len(self.points)

    def to_dict(self) -> dict[str, Any]:
        """Plain form for reports."""
        return {
            "guarantee": str(self.release.guarantee),
            "stamps": list(self.release.stamps),
            "points": self.points.tolist(),
            "weights": self.weights.tolist(),
            "cells": self.cells.tolist(),
            "deviations": self.deviations.tolist(),
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class RadiusEstimate:
    """An estimate of Δᵗ(S), and how high it may be.

    Attributes
    ----------
    value : float
        As released: unbiased up to the grid, so it may be negative.
    """

    value: float
    per_total: float
    mechanism: Lattice
    release: Release

    def upper(self, confidence: float = 0.95) -> float:
        """A bound that Δᵗ(S) of the clipped source stays below with this confidence.

        Half of what noise of both signs misses is of one sign; a step is what truncation took.
        """
        both = max(2 * _check.probability(confidence=confidence) - 1, 1e-12)
        noise = self.mechanism.half_width(both) * self.per_total
        return max(0.0, self.value + noise + self.mechanism.grid.step)


def sanitise(question: Question, release: Release, *, gamma: float = GAMMA) -> SanitisedSource:
    """Read a release as a sanitised source.

    Parameters
    ----------
    question : NearestMeans, LocalMeans or NeighbourAverages
    release : Release
        Its answer.
    gamma : float, default=0.05
        Probability that any empty cell or shell passes for one with rows.

    Privacy
    -------
    Post-processing: thresholds, projections and spreads use the release and public parameters only.
    """
    only_releases(release)
    if release.question != question.digest:
        raise InputError("Expected the release that answers this question; it answers another one.")
    return _read(question, release, gamma)


def estimate_radius(question: SourceRadius, release: Release) -> RadiusEstimate:
    """Read a release as an estimate of Δᵗ(S)."""
    only_releases(release)
    if release.question != question.digest:
        raise InputError("Expected the release that answers this question; it answers another one.")
    per_total = 1 / (len(question.targets) * question.t)
    mechanism = question.plan.lattice("total")
    value = float(release["total"][0]) * per_total
    return RadiusEstimate(value=value, per_total=per_total, mechanism=mechanism, release=release)


def count_threshold(question: NearestMeans | LocalMeans, *, gamma: float = GAMMA) -> float:
    """The noisy count from which a cell or shell is believed: at least 1, the same for all."""
    if isinstance(question, LocalMeans):
        draw, cells, moves, width = question.plan.draws["counts"], question.n_shells, 1, question.width
    else:
        table = question.noise == "k-norm"
        draw = question.plan.draws["table" if table else "counts"]
        cells, width = question.cells.shape
        moves = question.moves if table else 1
    return max(1.0, moves * threshold(draw, cells=cells, gamma=gamma, width=width))


@singledispatch
def _read(question: Question, release: Release, gamma: float) -> SanitisedSource:  # noqa: ARG001
    raise InputError(f"A {type(question).__name__} does not ask for a sanitised source.")


@_read.register
def _(question: NearestMeans, release: Release, gamma: float) -> SanitisedSource:
    counts, sums = question.estimates(release)
    at = np.flatnonzero(counts >= count_threshold(question, gamma=gamma))
    means = Ball(radius=question.radius).clip(sums[at] / counts[at, None])
    noise = _variances(question)
    return SanitisedSource(
        points=_into(question.ball, question.origins[at] + means),
        weights=counts[at],
        cells=at.astype(np.int64),
        deviations=_deviations(means, counts[at], *noise),
        release=release,
    )


@_read.register
def _(question: LocalMeans, release: Release, gamma: float) -> SanitisedSource:
    cells, shells = np.nonzero(release["counts"] >= count_threshold(question, gamma=gamma))
    counts = release["counts"][cells, shells]
    outer = question.shells[shells]
    means = Ball(radius=1.0).clip(release["sums"][cells, shells] / counts[:, None])
    return SanitisedSource(
        points=_into(question.domain, question.cells[cells] + outer[:, None] * means),
        weights=counts,
        cells=cells.astype(np.int64),
        deviations=outer * _deviations(means, counts, *_variances(question)),
        release=release,
    )


@_read.register
def _(question: NeighbourAverages, release: Release, gamma: float) -> SanitisedSource:  # noqa: ARG001
    n, d = question.targets.shape
    variance = _variance(question.plan.draws["sums"], n * d)
    return SanitisedSource(
        points=_into(question.radius, release["sums"] / question.t),
        weights=np.full(n, float(question.t)),
        cells=np.arange(n),
        deviations=np.full(n, np.sqrt(d * variance) / question.t),
        release=release,
    )


def _variances(question: NearestMeans | LocalMeans) -> tuple[float, float]:
    """Noise variance of a count and of a coordinate of a sum."""
    draws = question.plan.draws
    if "table" not in draws:
        return _variance(draws["counts"]), _variance(draws["sums"])
    assert isinstance(question, NearestMeans)
    table, d = draws["table"], question.cells.shape[1]
    assert isinstance(table, KNormCylinder)
    unit = (question.moves / table.budget) ** 2 * (d + 3)  # privacy.md, section 1 (d)
    return unit * (d + 2) / 3, unit * question.radius**2


def _variance(mechanism: Mechanism, numbers: int = 1) -> float:
    """Noise variance of each number that a mechanism draws."""
    if isinstance(mechanism, Lattice):
        return mechanism.variance
    assert isinstance(mechanism, KNorm)
    return (mechanism.sensitivity / mechanism.budget) ** 2 * (numbers + 1)


def _deviations(means: FloatArray, counts: FloatArray, count: float, total: float) -> FloatArray:
    """First-order error of a mean: the sum's noise, and the count's times the mean, over the count."""
    d = means.shape[1]
    squared = d * total + np.sum(means**2, axis=1) * count
    return np.asarray(np.sqrt(squared) / counts, dtype=np.float64)


def _into(radius: float, points: FloatArray) -> FloatArray:
    return Ball(radius=radius).clip(points)


__all__ = [
    "RadiusEstimate",
    "SanitisedSource",
    "count_threshold",
    "estimate_radius",
    "sanitise",
]
