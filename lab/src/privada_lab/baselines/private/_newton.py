"""Damped Newton steps to a gradient of a norm that a price assumes, whatever the rows are."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from privada._arrays import FloatArray
from privada.exceptions import AnswerError

# value, gradient, and the curvature for who needs it
Look = tuple[float, FloatArray, Callable[[], FloatArray]]
MOST_STEPS = 500
LEAST_PACE = 2.0**-30
ROUNDED = 2.0**-42  # of the terms of a gradient: no sum of them is more exact


def minimum(
    look: Callable[[FloatArray], Look],
    start: FloatArray,
    *,
    tolerance: float,
    strong: float,
    smooth: float,
) -> FloatArray:
    """Where a ``strong``-ly convex, ``smooth`` function's gradient has norm ``tolerance`` at most.

    Near the minimum values no longer tell a step from rounding: slopes do. Where Newton's steps do not
    get there, the slow way does, so that an answer fails on no rows; ``tolerance`` is to be above
    what the gradient's own sums round.

    >>> def bowl(w):
    ...     return float(w @ w), 2 * w, lambda: 2 * np.eye(2)
    >>> minimum(bowl, np.array([3.0, -1.0]), tolerance=1e-9, strong=2, smooth=2).tolist()
    [0.0, 0.0]
    """
    at, (value, slope, curvature) = start, look(start)
    for _ in range(MOST_STEPS):
        steep = float(np.linalg.norm(slope))
        if steep <= tolerance:
            return at
        try:
            step, pace = np.linalg.solve(curvature(), slope), 1.0
        except np.linalg.LinAlgError:
            break
        new = look(at - step)
        while not (new[0] < value or np.linalg.norm(new[1]) < steep) and pace > LEAST_PACE:
            pace /= 2
            new = look(at - pace * step)
        at, (value, slope, curvature) = at - pace * step, new
    return slowly(look, start, tolerance=tolerance, strong=strong, smooth=smooth)


def slowly(
    look: Callable[[FloatArray], Look],
    start: FloatArray,
    *,
    tolerance: float,
    strong: float,
    smooth: float,
) -> FloatArray:
    """The same by accelerated gradients, whose number of steps is bounded for every such function.

    With q = strong/smooth, ``f - f*`` falls by ``1 - √q`` a step from ``|gradient|²/strong`` at the start
    (Nesterov 2004, theorem 2.2.3), and ``|gradient|² <= 18 smooth²/strong (f - f*)`` where it is taken.

    >>> def bowl(w):
    ...     return float(w @ w), 2 * w, lambda: 2 * np.eye(2)
    >>> np.abs(slowly(bowl, np.array([3.0, -1.0]), tolerance=1e-9, strong=1, smooth=4)).round(6).tolist()
    [0.0, 0.0]
    """
    root = math.sqrt(strong / smooth)
    first = float(np.linalg.norm(look(start)[1]))
    most = math.ceil(2 / root * (1.5 - 2 * math.log(root) + math.log(max(1.0, first / tolerance))))
    at = ahead = start
    for _ in range(most + 1):
        slope = look(ahead)[1]
        if np.linalg.norm(slope) <= tolerance:
            return ahead
        before, at = at, ahead - slope / smooth
        ahead = at + (1 - root) / (1 + root) * (at - before)
    raise AnswerError("The minimum could not be found to the tolerance that its price assumes.")


__all__ = ["ROUNDED", "Look", "minimum", "slowly"]
