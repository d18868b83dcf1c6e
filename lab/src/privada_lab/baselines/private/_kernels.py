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

    ``sums`` and ``weights`` have one row a class. Logits are summed in one fixed order; features that are
    0 add nothing to logits or gradient and are left out.
    """
    n_classes, width = weights.shape
    parts, held = np.empty(n_classes), np.empty(width, dtype=np.int64)
    for i in range(X.shape[0]):
        count = 0
        for j in range(width):
            if X[i, j] != 0.0:
                held[count] = j
                count += 1
        largest = -np.inf
        for c in range(n_classes):
            logit = 0.0
            for k in range(count):
                logit += weights[c, held[k]] * X[i, held[k]]
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
            for k in range(count):
                sums[c, held[k]] += np.int64(factor * X[i, held[k]] * steps)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def squared_steps(
    X: npt.NDArray[np.float64], centers: npt.NDArray[np.float64], steps: float, most: int
) -> npt.NDArray[np.int64]:  # pragma: no cover - compiled
    """Squared distance of each row to each centre in whole steps, truncated, at most ``most``."""
    found = np.empty((X.shape[0], centers.shape[0]), dtype=np.int64)
    for i in range(X.shape[0]):
        for j in range(centers.shape[0]):
            total = 0.0
            for k in range(X.shape[1]):
                gap = X[i, k] - centers[j, k]
                total += gap * gap
            whole = np.int64(total * steps)
            found[i, j] = whole if whole < most else most
    return found


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def swap_costs(
    costs: npt.NDArray[np.int64], chosen: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:  # pragma: no cover - compiled
    """Total cost with candidate j (rows) in place of the chosen at s (columns), for every pair.

    A row pays for its nearest centre, and for the second nearest without that one. Sums are of integers.
    """
    n, m = costs.shape
    gained = np.zeros(m, dtype=np.int64)
    lost = np.zeros((m, chosen.shape[0]), dtype=np.int64)
    for i in range(n):
        first, second, at = np.int64(2**62), np.int64(2**62), 0
        for s in range(chosen.shape[0]):
            paid = costs[i, chosen[s]]
            if paid < first:
                first, second, at = paid, first, s
            elif paid < second:
                second = paid
        for j in range(m):
            with_both = min(first, costs[i, j])
            gained[j] += with_both
            lost[j, at] += min(second, costs[i, j]) - with_both
    return gained.reshape(-1, 1) + lost


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _forward(
    weights: npt.NDArray[np.float64],
    values: npt.NDArray[np.float64],
    slope: float,
    out: npt.NDArray[np.float64],
    slopes: npt.NDArray[np.float64],
) -> float:  # pragma: no cover - compiled
    """One layer with leaky rectifiers, its last column the constant; returns the squared norm of ``out``."""
    width, square = values.shape[0], 0.0
    for a in range(out.shape[0]):
        total = weights[a, width]
        for b in range(width):
            total += weights[a, b] * values[b]
        slopes[a] = 1.0 if total > 0 else slope
        out[a] = total * slopes[a]
        square += out[a] * out[a]
    return square


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _add_outer(
    sums: npt.NDArray[np.int64],
    left: npt.NDArray[np.float64],
    right: npt.NDArray[np.float64],
    factor: float,
) -> None:  # pragma: no cover - compiled
    """Add ``factor left [right 1]'`` to ``sums``, row by row, truncated to whole numbers."""
    width = right.shape[0]
    for a in range(left.shape[0]):
        scaled = factor * left[a]
        for b in range(width):
            sums[a * (width + 1) + b] += np.int64(scaled * right[b])
        sums[a * (width + 1) + width] += np.int64(scaled)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def add_critic_gradients(
    sums: npt.NDArray[np.int64],
    X: npt.NDArray[np.float64],
    first: npt.NDArray[np.float64],
    second: npt.NDArray[np.float64],
    last: npt.NDArray[np.float64],
    slope: float,
    norm: float,
    steps: float,
) -> None:  # pragma: no cover - compiled
    """Add each row's gradient of a critic in its parameters, clipped to ``norm`` and truncated.

    The critic is ``last · relu(second [relu(first [x 1]) 1])`` with leaky rectifiers; its gradient in
    ``first``, ``second`` and ``last`` stands in ``sums`` one after the other. The squared norm of an
    outer product is the product of squared norms, so a row's norm is known before its gradient is made.
    """
    hidden, width = last.shape[0], X.shape[1]
    h1, s1, h2, s2 = np.empty(hidden), np.empty(hidden), np.empty(hidden), np.empty(hidden)
    back1, back2 = np.empty(hidden), np.empty(hidden)
    start2 = hidden * (width + 1)
    start3 = start2 + hidden * (hidden + 1)
    for i in range(X.shape[0]):
        inner = 1.0
        for j in range(width):
            inner += X[i, j] * X[i, j]
        middle = 1.0 + _forward(first, X[i], slope, h1, s1)
        total = _forward(second, h1, slope, h2, s2)
        square1, square2 = 0.0, 0.0
        for a in range(hidden):
            back2[a] = last[a] * s2[a]
            square2 += back2[a] * back2[a]
        for b in range(hidden):
            back1[b] = 0.0
            for a in range(hidden):
                back1[b] += back2[a] * second[a, b]
            back1[b] *= s1[b]
            square1 += back1[b] * back1[b]
        length = np.sqrt(total + square2 * middle + square1 * inner)
        if not np.isfinite(length):  # too far out for a float: the row adds nothing
            continue
        factor = steps * (norm / length if length > norm else 1.0)
        _add_outer(sums[:start2], back1, X[i], factor)
        _add_outer(sums[start2:start3], back2, h1, factor)
        for a in range(hidden):
            sums[start3 + a] += np.int64(factor * h2[a])


__all__ = ["add_critic_gradients", "add_softmax_gradients", "squared_steps", "swap_costs"]
