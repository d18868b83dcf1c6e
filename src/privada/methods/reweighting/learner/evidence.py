"""How much of a noisy correction to believe: as much as the release itself speaks for. Post-processing.

A released ``b = A w + errors`` says something of the correction w: ``A`` is released, too, and all noise is
known. The errors have covariance ``σ² A`` (residuals of variance σ²), and the noise of b; the noise N of A
adds ``N w``. With a prior ``w ~ N(0, T)`` the best linear estimate is ``T A (A T A + errors)⁻¹ b``, which
never inverts a noisy matrix and is 0 where noise drowns the release. How large corrections are, is not known:
priors of several sizes, for every block of directions, are weighted by the probability (the evidence) that
each gives to the released b.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privada._arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Block:
    """Directions of one kind, and the sizes that their coefficients may have."""

    count: int
    sizes: Sequence[float]


def symmetric(entries: FloatArray, k: int) -> FloatArray:
    """A matrix from its entries on and above the diagonal, those above it times √2.

    >>> symmetric(np.array([1.0, 2.0**0.5, 3.0]), 2).tolist()
    [[1.0, 1.0], [1.0, 3.0]]
    """
    matrix = np.zeros((k, k))
    matrix[np.triu_indices(k)] = entries
    diagonal = np.diag(matrix).copy()
    matrix = (matrix + matrix.T) / np.sqrt(2)
    np.fill_diagonal(matrix, diagonal)
    return np.asarray(matrix)


def approach(noisy: FloatArray, public: FloatArray, noise: float) -> tuple[FloatArray, float]:
    """A noisy symmetric matrix, drawn toward a public one as far as their difference may be noise.

    Returns the share of the difference that is kept, too; ``noise`` is the deviation of the entries on the
    diagonal and √2 times that of the others.

    >>> approach(np.diag([3.0, 1.0]), np.diag([1.0, 1.0]), 0.1)[1]
    0.9925
    """
    apart, k = noisy - public, len(noisy)
    expected = noise**2 * k * (k + 1) / 2
    share = max(0.0, 1 - expected / max(float((apart**2).sum()), 1e-300))
    return public + share * apart, share


def estimate(
    A: FloatArray,
    b: FloatArray,
    blocks: Sequence[Block],
    *,
    residual: float,
    noise_moments: float,
    noise_products: float,
) -> FloatArray:
    """The correction w, shape of b: the average over all priors, by their evidence.

    Parameters
    ----------
    A, b : arrays of shape (k, k) and (k, outputs)
    residual : float
        Variance of a residual.
    noise_moments, noise_products : float
        Deviations of the noise on A and b.

    >>> A, b = 1000 * np.eye(2), np.array([[300.0], [300.0]])
    >>> few = dict(residual=1.0, noise_moments=1.0)
    >>> estimate(A, b, [Block(2, (0.1, 0.5))], noise_products=10.0, **few).round(2).tolist()
    [[0.3], [0.3]]
    >>> estimate(A, b, [Block(2, (0.1, 0.5))], noise_products=1e5, **few).round(2).tolist()
    [[0.0], [0.0]]
    """
    eigen, vectors = np.linalg.eigh(A)
    sampling = residual * (vectors * np.maximum(eigen, 0)) @ vectors.T
    identity, logs, corrections = np.eye(len(A)), [], []
    for sizes in itertools.product(*(block.sizes for block in blocks)):
        prior = np.repeat(np.square(sizes), [block.count for block in blocks])
        loud = noise_products**2 + noise_moments**2 * prior.sum() / 2
        covariance = (A * prior) @ A.T + sampling + loud * identity
        factor = np.linalg.cholesky(covariance + 1e-10 * np.trace(covariance) / len(A) * identity)
        white = np.linalg.solve(factor, b)
        logs.append(-0.5 * (white**2).sum() - b.shape[1] * np.log(np.diag(factor)).sum())
        corrections.append((A * prior).T @ np.linalg.solve(factor.T, white))
    weights = np.exp(np.array(logs) - max(logs))
    return np.asarray(np.tensordot(weights / weights.sum(), np.array(corrections), 1))


__all__ = ["Block", "approach", "estimate", "symmetric"]
