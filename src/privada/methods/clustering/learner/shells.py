"""How rows lie in a shell, in units of its radius: covariances, triangles, and rings."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def covariances(
    means: FloatArray, moments: FloatArray | None, counts: FloatArray, inner: FloatArray
) -> FloatArray:
    """Covariance of the rows of each shell, positive semidefinite.

    Parameters
    ----------
    means : array of shape (shells, features)
    moments : array or None
        Noisy second moments: triangles (shells, D), traces (shells,), or none. Without them rows are
        taken to fill their shell evenly; a trace is kept between the squares of the
        shell's radii, where it must be.
    counts, inner : arrays of shape (shells,)
        Noisy counts, and the inner radii; the outer ones are 1.
    """
    d = means.shape[1]
    if moments is not None and moments.ndim == 2:
        second = unpack(moments / counts[:, None], d) - means[:, :, None] * means[:, None, :]
        values, vectors = np.linalg.eigh(second)
        kept = vectors * np.clip(values, 0.0, 1.0)[:, None, :]
        return np.asarray(kept @ vectors.transpose(0, 2, 1))
    trace = _even(inner, d) if moments is None else np.clip(moments / counts, inner**2, 1.0)
    variance = np.maximum(trace - np.sum(means**2, axis=1), 0.0) / d
    return np.asarray(variance[:, None, None] * np.eye(d))


def _even(inner: FloatArray, d: int) -> FloatArray:
    """Mean squared norm of rows that fill the shell between ``inner`` and 1 evenly."""
    return d / (d + 2) * (1 - inner ** (d + 2)) / (1 - inner**d)


def unpack(packed: FloatArray, d: int) -> FloatArray:
    """Symmetric matrices from triangles whose off-diagonal entries were multiplied by √2.

    >>> unpack(np.array([1.0, 2**0.5, 3.0]), 2).round(6).tolist()
    [[1.0, 1.0], [1.0, 3.0]]
    """
    rows, columns = np.triu_indices(d)
    values = packed / np.where(rows == columns, 1.0, np.sqrt(2.0))
    whole = np.zeros((*packed.shape[:-1], d, d))
    whole[..., rows, columns] = values
    whole[..., columns, rows] = values
    return whole


def between(rows: FloatArray, inner: FloatArray, outer: FloatArray) -> FloatArray:
    """Rows moved along their direction to a norm between the two."""
    norms = np.linalg.norm(rows, axis=1)
    wanted = np.clip(norms, inner, outer)
    return rows * np.where(norms > 0, wanted / np.where(norms > 0, norms, 1.0), 0.0)[:, None]


__all__ = ["between", "covariances", "unpack"]
