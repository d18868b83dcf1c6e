"""How many rows each owner contributes, from noisy counts: post-processing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada.methods.summarization.questions.round_plan import ANY_COALITION
from privada.parties.protocol import Absent
from privada.privacy.release import Release

BACKGROUND = 0.9  # share of the least suitable owner's rate that is taken for chance


@dataclass(frozen=True, kw_only=True, eq=False)
class Reference:
    """The public hyperplane between the noisy validation mean and the pooled noisy mean of all owners.

    Attributes
    ----------
    direction : array of shape (features,)
    threshold : float
        Rows whose product with the direction is above it are nearer to the validation mean.
    """

    direction: FloatArray
    threshold: float

    @classmethod
    def between(cls, validation: FloatArray, pooled: FloatArray, *, noise: tuple[float, float]) -> Self:
        """Half-way between two noisy means, whose squared lengths are freed of their noise.

        Parameters
        ----------
        validation, pooled : arrays of shape (features,)
        noise : pair of float
            Variance of the noise on each coordinate of either.
        """
        d = len(validation)
        lengths = (validation @ validation - d * noise[0]) - (pooled @ pooled - d * noise[1])
        return cls(direction=validation - pooled, threshold=float(lengths / 2))


def estimate_shares(sizes: npt.ArrayLike, counts: npt.ArrayLike, *, variance: float) -> FloatArray:
    """Share of suitable rows at each owner: noisy shares, drawn together as far as noise demands.

    Parameters
    ----------
    sizes, counts : arrays of shape (K,)
        Public sizes, noisy counts of suitable rows.
    variance : float
        Of the noise on each count.

    Notes
    -----
    Random effects: an owner's share has mean θ and variance τ² over owners, its noisy share variance
    ``τ² + σ²/n²`` around θ. θ and τ² are found by moments; each share is drawn to θ by ``τ²/(τ² + σ²/n²)``.
    """
    n = np.asarray(sizes, dtype=np.float64)
    seen = np.asarray(counts, dtype=np.float64) / n
    spread = variance / n**2
    tau2 = float(np.average((seen - np.average(seen, weights=n)) ** 2 - spread, weights=n**2))
    for _ in range(20):
        tau2 = max(tau2, 0.0)
        precision = 1 / (tau2 + spread)
        theta = float(np.average(seen, weights=precision))
        tau2 = float(np.average((seen - theta) ** 2 - spread, weights=precision))
    pulled = max(tau2, 0.0) / (max(tau2, 0.0) + spread)
    return np.clip(theta + pulled * (seen - theta), 0.0, 1.0)


def allocate(
    sizes: npt.ArrayLike, suitable: npt.ArrayLike, *, total: int, background: float = BACKGROUND
) -> IntArray:
    """Rows that each owner contributes; they sum to ``total``, none is above its owner's size.

    Parameters
    ----------
    sizes : array of shape (K,)
        Public sizes.
    suitable : array of shape (K,)
        Estimated share of suitable rows.
    total : int
    background : float, default=0.9
        This much of the smallest share counts as chance. Owners that are alike then contribute in
        proportion to their sizes, and owners that stand out contribute nearly everything.

    >>> allocate([100, 100, 200], [0.5, 0.5, 0.5], total=40).tolist()
    [10, 10, 20]
    >>> allocate([100, 100], [0.7, 0.5], total=40).tolist()
    [34, 6]
    """
    n = np.asarray(sizes, dtype=np.int64)
    rate = np.asarray(suitable, dtype=np.float64)
    if _check.count(total=total) > n.sum():
        raise InputError(f"Expected at most {n.sum()} rows, all that the owners have, got {total}.")
    wanted = n * (rate - background * rate.min())
    if wanted.sum() <= 0:
        wanted = n.astype(np.float64)
    plenty = np.minimum(n, np.maximum(np.ceil(n * rate), 1)).astype(np.int64)
    return _fill(wanted + 1e-12 * n, plenty, n, total)


def _fill(wanted: FloatArray, plenty: IntArray, most: IntArray, total: int) -> IntArray:
    """Proportional to ``wanted`` up to ``plenty``, and beyond it only when all have given that much."""
    given = np.zeros(len(most), dtype=np.int64)
    for limit in (plenty, most):
        while (left := total - int(given.sum())) > 0 and np.any(room := limit - given > 0):
            parts = np.where(room, wanted, 0.0)
            parts *= left / parts.sum()
            step = np.minimum(np.floor(parts), limit - given).astype(np.int64)
            if not step.any():  # one by one, by the largest remainder
                first = np.argsort(-np.where(room, parts, -1.0), kind="stable")
                step[first[: min(left, int(room.sum()))]] = 1
            given += step
    return given


@dataclass(frozen=True, kw_only=True, eq=False)
class Allocation:
    """How many rows each owner contributes, and what that was made from.

    Attributes
    ----------
    rows : mapping of owner's name to int
    sizes : mapping of owner's name to int
        Public sizes, of the owners that take part.
    suitable : mapping of owner's name to float
        Estimated share of rows that are nearer to the validation set than to the pool.
    target : array of shape (features,)
        The noisy validation mean.
    variance : float
        Of the noise on each of its coordinates.
    releases : tuple of Release
    absent : tuple of Absent
        Who did not answer.
    against : str
        Whom the owners' guarantee holds against.

    Privacy
    -------
    After `match`, post-processing of releases. After rounds, ``rows`` counts what is in the summary, an exact
    number that depends on rows: for the curator and the consumer only.
    """

    rows: Mapping[str, int]
    sizes: Mapping[str, int]
    suitable: Mapping[str, float]
    target: FloatArray
    variance: float
    releases: tuple[Release, ...]
    absent: tuple[Absent, ...] = ()
    against: str = ANY_COALITION

    def to_dict(self) -> dict[str, Any]:
        """Plain form for reports."""
        return {
            "guarantee": str(self.releases[0].guarantee),
            "against": self.against,
            "stamps": sorted({stamp for release in self.releases for stamp in release.stamps}),
            "rows": dict(self.rows),
            "suitable": {name: round(share, 4) for name, share in self.suitable.items()},
            "noise_per_coordinate": math.sqrt(self.variance),
            "absent": {each.owner: each.reason for each in self.absent},
        }

    def resized(self, total: int) -> Allocation:
        """The same releases, for a summary of another size: post-processing."""
        check_size(self.sizes, total)
        counts = allocate(list(self.sizes.values()), list(self.suitable.values()), total=total)
        return replace(self, rows={name: int(n) for name, n in zip(self.sizes, counts, strict=True)})

    def without(self, lost: Mapping[str, int], absent: Iterable[Absent]) -> Allocation:
        """The same total over the owners that are left; rows that were asked for stay asked for."""
        gone = tuple(absent)
        names = [name for name in self.sizes if name not in {each.owner for each in gone}]
        room = np.array([self.sizes[name] - self.rows[name] for name in names], dtype=np.int64)
        more = min(sum(lost.values()), int(room.sum()))
        rows = {name: self.rows[name] for name in names}
        if more:
            extra = allocate(room, np.array([self.suitable[name] for name in names]), total=more)
            rows = {name: rows[name] + int(n) for name, n in zip(names, extra, strict=True)}
        return replace(
            self,
            rows=rows,
            sizes={name: self.sizes[name] for name in names},
            suitable={name: self.suitable[name] for name in names},
            absent=self.absent + gone,
        )


def check_size(sizes: Mapping[str, int], size: int) -> None:
    """Refuse a summary larger than all rows together."""
    if sum(sizes.values()) < size:
        raise InputError(
            f"Expected size to be at most {sum(sizes.values())}, all rows of the owners that take part, "
            f"got {size}."
        )


__all__ = ["BACKGROUND", "Absent", "Allocation", "Reference", "allocate", "check_size", "estimate_shares"]
