"""Passes over rows in which what a record adds depends on that record alone, in integers."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def add_softmax_gradients(
    sums: npt.NDArray[np.int64],
    X: npt.NDArray[np.float64],
    codes: npt.NDArray[np.int64],
    weights: npt.NDArray[np.float64],
    steps: float,
) -> None:  # pragma: no cover - compiled
    """Add each row's gradient ``(p - e_y) x'`` of the softmax loss, truncated to whole steps.

    ``sums`` and ``weights`` have one row a class. Logits are summed in one fixed order.
    """
    n_classes, width = weights.shape
    parts = np.empty(n_classes)
    for i in range(X.shape[0]):
        largest = -np.inf
        for c in range(n_classes):
            logit = 0.0
            for j in range(width):
                logit += weights[c, j] * X[i, j]
            parts[c] = logit
            largest = max(largest, logit)
        total = 0.0
        for c in range(n_classes):
            parts[c] = np.exp(parts[c] - largest)
            total += parts[c]
        for c in range(n_classes):
            factor = parts[c] / total
            if c == codes[i]:
                factor -= 1.0
            for j in range(width):
                sums[c, j] += np.int64(factor * X[i, j] * steps)


__all__ = ["add_softmax_gradients"]
