"""A Gaussian process seen through sums: labels of public points from noisy aggregates of private ones.

An aggregate of the owner's rows is, in expectation, a linear map of the unknown function
``g(x) = 2 P(y = 1 | x) - 1`` on public points: a count over a cell is a sum of g over the
cell, an error table one of ±g. With a Gaussian
process prior on g the posterior is one linear solve, and the evidence, which the noise's
known variance makes honest, chooses kernel and scale. All post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError

FAMILIES = ("rbf", "matern")
LENGTHS = (0.2, 0.35, 0.6, 1.0, 1.6)  # times the median distance of public points
VARIANCES = (0.5, 1.0, 2.0)
SHARES = (0.3, 1.0)  # of the sampling variance: labels that are nearly certain vary less than by chance
LEVEL = 0.1  # prior variance of the mean label
ROUNDING = 1e-5  # of the largest variance: kernels are taken in single precision
MOST_POINTS = 1000  # among which kernels are compared
WHOLE = 4000  # through which the chosen one is solved: what a cell averages shows in the label of its points


@dataclass(frozen=True, kw_only=True, eq=False)
class Smoothed:
    """The posterior mean, for any points.

    Attributes
    ----------
    family, length, variance
        The kernel that the evidence chose.
    evidence : float
        Log marginal likelihood, up to a constant.
    """

    points: FloatArray
    coefficients: FloatArray
    level: FloatArray
    family: str
    length: float
    variance: float
    evidence: float
    coordinates: FloatArray | None = None

    def __call__(self, X: FloatArray) -> FloatArray:
        """Posterior mean of g at each row, one column for each class (one alone for two classes)."""
        X = mapped(X, self.coordinates)
        found = np.empty((len(X), self.coefficients.shape[1]))
        for start in range(0, len(X), 2000):
            part = _squared_distances(X[start : start + 2000], self.points)
            found[start : start + 2000] = _kernel(part, self.length, self.family) @ self.coefficients
        return self.variance * found + self.level


def smooth(
    points: FloatArray,
    design: FloatArray,
    observed: FloatArray,
    *,
    released: FloatArray,
    sampling: FloatArray,
    whole: tuple[FloatArray, FloatArray] | None = None,
    coordinates: FloatArray | None = None,
) -> Smoothed:
    """Fit ``observed = design @ g(points) + noise``, choosing the kernel by evidence.

    Parameters
    ----------
    points : array of shape (n, features)
        Public.
    design : array of shape (m, n)
    observed : array of shape (m, outputs)
    released : array of shape (m,)
        Variance of the released noise.
    sampling : array of shape (m,) or (m, m)
        Variance or covariance of sampling, at most.
    whole : (points, design), optional
        More points, and what they add up to: the chosen kernel's posterior is solved through them.
    coordinates : array, optional
        A public linear map into the coordinates in which distances are taken.
    """
    if not len(points):
        raise InputError("Expected at least one public point.")
    points = mapped(points, coordinates)
    narrow = _narrow(design)
    distances = _squared_distances(points, points)
    typical = _typical(distances)
    chance = np.diag(sampling) if sampling.ndim == 1 else sampling
    base = np.diag(released) + LEVEL * np.outer(design.sum(axis=1), design.sum(axis=1))
    best: tuple[float, Any] = (-np.inf, None)
    for family in FAMILIES:
        for length in LENGTHS:
            half = narrow @ _kernel(distances, length * typical, family)
            seen = (narrow @ half.T).T
            for variance, share in product(VARIANCES, SHARES):
                covariance = base + share * chance + variance * seen.astype(np.float64)
                evidence, alpha = _solved(covariance, observed)
                if evidence > best[0]:
                    best = evidence, (family, length * typical, variance, alpha, share)
    evidence, (family, length, variance, alpha, share) = best
    if whole is not None:
        points, design = mapped(whole[0], coordinates), whole[1]
        narrow = _narrow(design)
        half = narrow @ _kernel(_squared_distances(points, points), length, family)
        seen = np.asarray((narrow @ half.T).T, dtype=np.float64)
        evidence, alpha = _solved(base + share * chance + variance * seen, observed)
    return Smoothed(
        points=np.asarray(points, dtype=np.float64),
        coefficients=design.T @ alpha,
        level=LEVEL * design.sum(axis=1) @ alpha,
        family=family,
        length=length,
        variance=variance,
        evidence=evidence,
        coordinates=coordinates,
    )


def kernel_between(A: FloatArray, B: FloatArray, family: str, length: float) -> npt.NDArray[np.float32]:
    """The kernel, of unit variance, between rows."""
    return _kernel(_squared_distances(A, B), length, family)


def typical_distance(points: FloatArray) -> float:
    """The median distance of points that differ; 1 where none do."""
    return _typical(_squared_distances(points, points))


def _typical(distances: npt.NDArray[np.float32]) -> float:
    return float(np.sqrt(np.median(distances[distances > 0]))) if np.any(distances > 0) else 1.0


def mapped(X: FloatArray, coordinates: FloatArray | None) -> FloatArray:
    """Rows in the coordinates in which distances are taken."""
    return np.asarray(X if coordinates is None else X @ coordinates, dtype=np.float64)


def _narrow(design: FloatArray) -> Any:
    """The design in half the memory, and sparse where a point is in one cell of many."""
    from scipy.sparse import csr_array

    narrow = design.astype(np.float32)
    return csr_array(narrow) if np.count_nonzero(narrow) < 0.05 * narrow.size else narrow


def _solved(covariance: FloatArray, observed: FloatArray) -> tuple[float, FloatArray]:
    """Log-evidence and coefficients; where next to no noise is left, rounding is told as noise."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    try:
        factor = cho_factor(covariance, lower=True, check_finite=False)
    except LinAlgError:
        rounding = ROUNDING * np.diag(covariance).max(initial=0.0)
        try:
            factor = cho_factor(covariance + rounding * np.eye(len(covariance)), lower=True)
        except (LinAlgError, ValueError):
            return -np.inf, np.zeros_like(observed)
    alpha = cho_solve(factor, observed, check_finite=False)
    half_log = np.log(np.diag(factor[0])).sum() * observed.shape[1]
    return float(-0.5 * np.sum(observed * alpha) - half_log), alpha


def _squared_distances(A: FloatArray, B: FloatArray) -> npt.NDArray[np.float32]:
    a, b = A.astype(np.float32), B.astype(np.float32)
    cross = a @ b.T
    return np.maximum((a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2 * cross, 0)


def _kernel(distances: npt.NDArray[np.float32], length: float, family: str) -> npt.NDArray[np.float32]:
    if family == "rbf":
        return np.exp(distances * np.float32(-0.5 / length**2))
    scaled = np.sqrt(distances) * np.float32(np.sqrt(3) / length)
    return np.asarray((1 + scaled) * np.exp(-scaled))


def representatives(groups: npt.NDArray[np.int64], seed: int, most: int = MOST_POINTS) -> IntArray:
    """Indices of at most about ``most`` public points, evenly over the groups, none left out."""
    rng = np.random.default_rng(seed)
    each = max(2, most // max(1, int(groups.max(initial=0)) + 1))
    order = rng.permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    sorted_groups = groups[order]
    rank = np.arange(len(order)) - np.searchsorted(sorted_groups, sorted_groups)
    return order[rank < each]


__all__ = [
    "Smoothed",
    "kernel_between",
    "mapped",
    "representatives",
    "smooth",
    "typical_distance",
]
