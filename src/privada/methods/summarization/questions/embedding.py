"""The public map of rows to vectors whose inner products are a Gaussian kernel, and the exact kernel.

Cosine and sine of each frequency come in pairs, so every row has norm 1 (the printed map, with
random shifts, reaches √2), and one record moves a sum of features by at most 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError

MOST_NUMBERS = 50_000_000
LARGEST_FREQUENCY = 1e6
_BLOCK = 2048


MOST_FEATURES = 100_000  # an owner releases a number for each


@dataclass(frozen=True, kw_only=True, eq=False)
class FourierEmbedding:
    """Paired random Fourier features.

    Parameters
    ----------
    frequencies : array of shape (pairs, width)
        Public; drawn by `of`, never from the generator that draws noise.

    >>> embedding = FourierEmbedding.of(width=3, n_features=20, gamma=0.5, random_state=0)
    >>> rows = np.random.default_rng(1).normal(size=(4, 3))
    >>> bool(np.allclose(np.linalg.norm(embedding.transform(rows), axis=1), 1))
    True
    """

    frequencies: FloatArray

    def __post_init__(self) -> None:
        public = np.array(_check.matrix(frequencies=self.frequencies), dtype=np.float64, order="C")
        if public.size > MOST_NUMBERS:
            raise InputError(
                f"Expected at most {MOST_NUMBERS:,} numbers in frequencies, got {public.size:,}."
            )
        if np.abs(public).max() > LARGEST_FREQUENCY:
            raise InputError(f"Expected frequencies within ±{LARGEST_FREQUENCY:g}.")
        public.flags.writeable = False
        object.__setattr__(self, "frequencies", public)

    @classmethod
    def of(
        cls,
        *,
        width: int,
        n_features: int,
        gamma: float,
        orthogonal: bool = True,
        random_state: int | None = None,
    ) -> Self:
        """Draw frequencies for the kernel ``exp(-gamma |x - y|²)``.

        Parameters
        ----------
        width : int
            Number of columns of the rows.
        n_features : int
            Even: half of them are cosines.
        gamma : float
            Public kernel parameter.
        orthogonal : bool
            Draw directions in orthogonal blocks, each still uniform, with independent chi
            lengths: unbiased as before, with less error.
        random_state : int, optional
            Of the public frequencies.
        """
        if _check.count(least=2, n_features=n_features) % 2:
            raise InputError(f"Expected n_features to be even, got {n_features}.")
        if n_features > MOST_FEATURES:
            raise InputError(f"Expected n_features to be at most {MOST_FEATURES}, got {n_features}.")
        _check.count(width=width)
        rng = np.random.default_rng(random_state)
        draw = _orthogonal if orthogonal else _independent
        scale = math.sqrt(2 * _check.positive(gamma=gamma))
        return cls(frequencies=draw(rng, n_features // 2, width) * scale)

    @property
    def dimension(self) -> int:
        """Length of an embedded row."""
        return 2 * len(self.frequencies)

    @property
    def width(self) -> int:
        """Columns that a row must have."""
        return int(self.frequencies.shape[1])

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Embed rows; each result is a function of its row alone."""
        from privada.methods.summarization.questions import kernels

        rows = np.ascontiguousarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.width:
            raise InputError(f"Expected rows of {self.width} columns, got shape {rows.shape}.")
        features = np.empty((len(rows), self.dimension))
        kernels.embed(rows, self.frequencies, features)
        return features

    def mean(self, X: npt.ArrayLike) -> FloatArray:
        """Mean of embedded public rows."""
        return np.asarray(self.transform(_check.matrix(X=X)).mean(axis=0))


def _independent(rng: np.random.Generator, pairs: int, width: int) -> FloatArray:
    return rng.normal(size=(pairs, width))


def _orthogonal(rng: np.random.Generator, pairs: int, width: int) -> FloatArray:
    blocks = []
    for _ in range(-(-pairs // width)):
        directions, _ = np.linalg.qr(rng.normal(size=(width, width)))
        lengths = np.linalg.norm(rng.normal(size=(width, width)), axis=1)
        blocks.append(directions.T * lengths[:, None])
    return np.concatenate(blocks)[:pairs]


def mmd2(X: npt.ArrayLike, Y: npt.ArrayLike, *, gamma: float) -> float:
    """Squared maximum mean discrepancy of two sets under ``exp(-gamma |x - y|²)``, exactly.

    For evaluation: of private sets it is not private.

    >>> mmd2([[0.0], [1.0]], [[1.0], [0.0]], gamma=1.0)
    0.0
    """
    left, right = _check.matrix(X=X), _check.matrix(Y=Y)
    if left.shape[1] != right.shape[1]:
        raise InputError(f"Expected X and Y of one width, got {left.shape[1]} and {right.shape[1]}.")
    _check.positive(gamma=gamma)
    within = _mean_kernel(left, left, gamma) + _mean_kernel(right, right, gamma)
    return max(0.0, within - 2 * _mean_kernel(left, right, gamma))


def _mean_kernel(X: FloatArray, Y: FloatArray, gamma: float) -> float:
    from scipy.spatial.distance import cdist

    parts = [
        np.exp(-gamma * cdist(X[i : i + _BLOCK], Y, "sqeuclidean")).sum() for i in range(0, len(X), _BLOCK)
    ]
    return float(math.fsum(parts) / (len(X) * len(Y)))


__all__ = ["FourierEmbedding", "mmd2"]
