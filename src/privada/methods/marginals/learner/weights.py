"""Importance weights and labels as box-constrained, regularised least squares. All post-processing."""

from __future__ import annotations

import numpy as np

from privada._arrays import FloatArray


def box_least_squares(
    matrix: FloatArray,
    wanted: FloatArray,
    *,
    centre: float,
    low: float,
    high: float,
    ridge: float,
    iterations: int = 300,
) -> FloatArray:
    """Minimise ``½ ||A x - b||² + ½ ridge ||x - centre||²`` over low <= x <= high.

    Accelerated projected gradient steps; the problem is strongly convex, so the
    answer is unique.

    >>> box_least_squares(np.eye(2), np.array([2.0, 0.25]), centre=0.0, low=0.0, high=1.0,
    ...                   ridge=1e-9).round(3).tolist()
    [1.0, 0.25]
    """
    lipschitz = float(np.linalg.norm(matrix @ matrix.T, 2)) + ridge
    x = np.full(matrix.shape[1], np.clip(centre, low, high))
    ahead, momentum = x, 1.0
    for _ in range(iterations):
        slope = matrix.T @ (matrix @ ahead - wanted) + ridge * (ahead - centre)
        new = np.clip(ahead - slope / lipschitz, low, high)
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / following * (new - x)
        x, momentum = new, following
    return x


def importance(
    incidence: FloatArray, counts: FloatArray, *, noise: float, most: float = 10.0, spread: float = 0.5
) -> FloatArray:
    """Weights of public points, around 1, whose bins hold what the owner's noisy counts say.

    The ridge is the ratio of two variances: of a count (noise and sampling) and of a weight
    (``spread`` squared), so that the solution is the most likely one under Gaussian priors.
    """
    total = max(float(counts.sum()), 1.0)
    tables = max(1.0, float(incidence.sum(axis=0).mean()))
    rows = incidence * (total / tables / incidence.shape[1])
    variance = noise**2 + np.maximum(rows.sum(axis=1), 1.0)
    scale = 1 / np.sqrt(variance)
    return box_least_squares(
        rows * scale[:, None], counts * scale, centre=1.0, low=0.0, high=most, ridge=1 / spread**2
    )


def labels(
    incidence: FloatArray,
    signs: FloatArray,
    observed: FloatArray,
    weights: FloatArray,
    *,
    ridge: float = 1e-3,
) -> FloatArray:
    """Label of each public point in [0, 1] from stacked error counts (the paper's equation 6).

    ``observed`` is errors minus correct in each bin, in units of the weighted incidence;
    ``signs`` is 1 where the hypothesis says 0 and -1 where it says 1.
    """
    rows = incidence * (signs * weights)
    scale = 1 / max(float(np.abs(rows).sum(axis=1).max(initial=0.0)), 1e-12)
    return box_least_squares(
        2 * rows * scale,
        (observed + rows.sum(axis=1)) * scale,
        centre=0.5,
        low=0.0,
        high=1.0,
        ridge=ridge,
    )


__all__ = ["box_least_squares", "importance", "labels"]
