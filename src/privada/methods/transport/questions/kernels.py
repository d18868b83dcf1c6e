"""A matrix product whose rounding depends on the row alone, not on its place in a batch."""

from __future__ import annotations

import numba
import numpy as np

from privada._arrays import FloatArray


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _product(rows: FloatArray, matrix: FloatArray, out: FloatArray) -> None:  # pragma: no cover - compiled
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            value = rows[i, j]
            if value != 0.0:
                for k in range(matrix.shape[1]):
                    out[i, k] += value * matrix[j, k]


def project(rows: FloatArray, matrix: FloatArray) -> FloatArray:
    """``rows @ matrix``, each row summed in one fixed order."""
    out = np.zeros((len(rows), matrix.shape[1]))
    _product(rows, np.ascontiguousarray(matrix), out)
    return out


__all__ = ["project"]
