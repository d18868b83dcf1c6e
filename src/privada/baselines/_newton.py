"""Damped Newton steps to a gradient of a norm that a price assumes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from privada.exceptions import AnswerError

FloatArray = npt.NDArray[np.float64]
# value, gradient, and the curvature for who needs it
Look = tuple[float, FloatArray, Callable[[], FloatArray]]
MOST_STEPS = 500
LEAST_PACE = 2.0**-30


def minimum(look: Callable[[FloatArray], Look], start: FloatArray, *, tolerance: float) -> FloatArray:
    """Where a strongly convex function's gradient has norm ``tolerance`` at most.

    Near the minimum values no longer tell a step from rounding: slopes do.

    >>> def bowl(w):
    ...     return float(w @ w), 2 * w, lambda: 2 * np.eye(2)
    >>> minimum(bowl, np.array([3.0, -1.0]), tolerance=1e-9).tolist()
    [0.0, 0.0]
    """
    at, (value, slope, curvature) = start, look(start)
    for _ in range(MOST_STEPS):
        steep = float(np.linalg.norm(slope))
        if steep <= tolerance:
            return at
        step, pace = np.linalg.solve(curvature(), slope), 1.0
        new = look(at - step)
        while not (new[0] < value or np.linalg.norm(new[1]) < steep) and pace > LEAST_PACE:
            pace /= 2
            new = look(at - pace * step)
        at, (value, slope, curvature) = at - pace * step, new
    raise AnswerError("The minimum could not be found to the tolerance that its price assumes.")


__all__ = ["Look", "minimum"]
