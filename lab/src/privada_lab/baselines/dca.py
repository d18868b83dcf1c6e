"""The discrepancy by DCA (Tao and An 1998), as the paper computes it: the peer of our exact solver.

The difference of the two samples' losses is a difference of convex functions of w. Each round linearises
the one that is subtracted at the current point and minimises the rest on the ball, by accelerated projected
gradient. Both signs are run, each from the given start. The value of a stationary point is a lower bound of
the supremum.
"""

from __future__ import annotations

import numpy as np

from privada._arrays import FloatArray


def dca_discrepancy(
    target: FloatArray,
    source: FloatArray,
    radius: float,
    *,
    rounds: int = 2000,
    tolerance: float = 1e-9,
    seed: int = 0,
) -> float:
    """Largest ``|L_T(w) - L_S(w)|`` found, from the second moments of (x, y) of both samples.

    >>> round(dca_discrepancy(np.diag([4.0, 1.0, 0.0]), np.diag([1.0, 2.0, 0.0]), 1.0), 3)
    3.0
    """
    start = np.random.default_rng(seed).normal(size=len(target) - 1)
    start *= radius / np.linalg.norm(start)
    pairs = ((target, source), (source, target))
    return max(0.0, *(_climb(up, down, start, radius, rounds, tolerance) for up, down in pairs))


def _climb(
    up: FloatArray, down: FloatArray, w: FloatArray, radius: float, rounds: int, tolerance: float
) -> float:
    """Maximise ``L_up - L_down``: linearise L_up, minimise ``L_down - slope·w``."""
    value = -np.inf
    for _ in range(rounds):
        slope = up[:-1, :-1] @ w - up[:-1, -1]
        w = _nearest(down[:-1, :-1], down[:-1, -1] + slope, w, radius)
        new = _loss(up, w) - _loss(down, w)
        if new - value <= tolerance * max(abs(new), 1e-12):
            return new
        value = new
    return value


def _loss(moments: FloatArray, w: FloatArray) -> float:
    joint = np.append(-w, 1.0)
    return float(joint @ moments @ joint)


def _nearest(M: FloatArray, b: FloatArray, w: FloatArray, radius: float, rounds: int = 500) -> FloatArray:
    """Minimise the convex ``w'Mw - 2b'w`` on the ball by accelerated projected gradient."""
    rate = max(float(np.linalg.norm(M)), 1e-300)
    ahead = w
    for t in range(rounds):
        new = ahead - (M @ ahead - b) / rate
        new = new * min(1.0, radius / max(float(np.linalg.norm(new)), 1e-300))
        done = float(np.linalg.norm(new - w)) <= 1e-10 * radius
        ahead, w = new + t / (t + 3) * (new - w), new
        if done:
            break
    return w


__all__ = ["dca_discrepancy"]
