"""D_init: rows that are in the training set before anything is gathered.

A summary of p rows beside q rows of mean h₀ has the mean g over all exactly if the p rows have the mean
``((q + p) g - q h₀)/p``. So initial rows only move what owners match; nothing of the protocol changes.
Rows of people are protected like all others: their holder answers an `EmbeddingSum`, charged to a
ledger of its own, and its noise adds to that on g.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.summarization.questions.embedding import FourierEmbedding
from privada.methods.summarization.questions.sums import EmbeddingSum
from privada.parties.protocol import only_releases
from privada.privacy.release import Release


@dataclass(frozen=True, kw_only=True, eq=False)
class InitialRows:
    """The mean embedding of rows that are in the training set already, and their public number.

    Attributes
    ----------
    mean : array of shape (features,)
    size : int
    variance : float
        Of the noise on each coordinate of ``mean``; 0 if the rows are public.
    """

    mean: FloatArray
    size: int
    variance: float = 0.0

    @classmethod
    def public(cls, rows: npt.ArrayLike, embedding: FourierEmbedding) -> Self:
        """Of rows that are declared public.

        >>> embedding = FourierEmbedding.of(width=2, n_features=4, gamma=1.0, random_state=0)
        >>> InitialRows.public([[0.0, 0.0]], embedding).size
        1
        """
        points = _check.matrix(rows=rows, width=embedding.width)
        return cls(mean=embedding.mean(points), size=len(points))

    @classmethod
    def released(cls, question: EmbeddingSum, release: Release, *, size: int) -> Self:
        """Of rows that stay with their holder: from its answer, and its public number of rows."""
        only_releases(release)
        if release.question != question.digest:
            raise InputError("Expected the release that answers this question; it answers another one.")
        n = _check.count(size=size)
        return cls(mean=release["sum"] / n, size=n, variance=question.variance / n**2)

    def left(self, target: FloatArray, variance: float, size: int) -> tuple[FloatArray, float]:
        """Mean that ``size`` more rows must have for all to have the target's, and the noise on it."""
        q, p = self.size, _check.count(size=size)
        mean = ((q + p) * target - q * self.mean) / p
        return np.asarray(mean), ((q + p) ** 2 * variance + q**2 * self.variance) / p**2


__all__ = ["InitialRows"]
