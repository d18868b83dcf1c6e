"""Noisy sums of embedded rows, and noisy counts of rows near a public point: what is asked and its cost.

With at most m rows a unit, d features of norm at most 1 and a grid of step g (PRIVACY, 5 (c) and 6.6):

=============  =============  ======================
               add/remove     replace-one
=============  =============  ======================
sum, L2        m              m (2 + g √d)
sum, L1        m √d           m (2 √d + g d)
count          m              m
=============  =============  ======================
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.summarization.questions.embedding import FourierEmbedding
from privada.privacy.bounds import Grid
from privada.privacy.codec import inlined
from privada.privacy.guarantee import PureDP
from privada.privacy.mechanism import Gaussian, Laplace, Plan
from privada.privacy.relation import Relation
from privada.privacy.release import PublicSchema, Question

_FINE = 2.0**-20
_FINEST = 2.0**-30  # sums of 2^32 rows fit 64 bits
_COARSE = 2.0**-45  # of the noise: no draw needs more steps


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class EmbeddingSum(Question):
    """Ask for the noisy sum of the embedded rows: of the validation set, or of an owner's.

    Parameters
    ----------
    embedding : FourierEmbedding
        Public.

    Privacy
    -------
    Unit and relation are the guarantee's. An embedded row has norm at most 1, so the sum moves by
    at most 1 under add/remove and by 2 under replace-one, the grid's slack added; m rows a unit
    move it m times as far. Gaussian noise, or Laplace if the guarantee is pure. Divided by a size
    that is public under replace-one, it is the noisy mean g~ (privacy.md, section 6.6).

    >>> from privada.privacy import ZCDP
    >>> embedding = FourierEmbedding.of(width=2, n_features=8, gamma=1.0, random_state=0)
    >>> question = EmbeddingSum(embedding=embedding, guarantee=ZCDP(rho=0.5, relation="replace-one"))
    >>> round(question.plan.draws["sum"].scale, 3)
    2.0
    """

    embedding: FourierEmbedding = field(metadata=inlined(FourierEmbedding))
    kind: ClassVar[str] = "summarization.sum"
    answered_by: ClassVar[str] = "privada.methods.summarization.owner.answer:answer_sum"

    @property
    def needs_label(self) -> bool:
        """Never: rows count whatever their label."""
        return False

    def validate(self) -> None:
        """Check the embedding."""
        _embedding(self.embedding)

    def fits(self, schema: PublicSchema) -> None:
        """Check the width against the owner's schema."""
        _fits(self.embedding, schema)

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        return {"sum": (self.embedding.dimension,)}

    def planned(self) -> Plan:
        """One draw over all coordinates."""
        d, rows = self.embedding.dimension, self.guarantee.unit.max_rows
        replaces = self.guarantee.relation is not Relation.ADD_REMOVE
        if isinstance(self.guarantee, PureDP):
            grid = _grid(rows * math.sqrt(d) / self.guarantee.epsilon)
            l1 = 2 * math.sqrt(d) + grid.step * d if replaces else math.sqrt(d)
            noise = Laplace.calibrated(sensitivity=rows * l1, epsilon=self.guarantee.epsilon, grid=grid)
            return Plan(draws={"sum": noise})
        mu = self.guarantee.gaussian_mu()
        grid = _grid(rows / mu)
        l2 = 2 + grid.step * math.sqrt(d) if replaces else 1.0
        return Plan(draws={"sum": Gaussian.calibrated(sensitivity=rows * l2, mu=mu, grid=grid)})

    @property
    def variance(self) -> float:
        """Variance of the noise on each coordinate of the sum."""
        return self.plan.lattice("sum").variance


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NearCount(Question):
    """Ask how many rows lie on one side of a public hyperplane in the embedding, with noise.

    Parameters
    ----------
    embedding : FourierEmbedding
    direction : array of shape (features,)
        Public: here the noisy validation mean minus a reference.
    threshold : float
        A row counts if its embedding's product with ``direction`` is above it.

    Privacy
    -------
    Unit and relation are the guarantee's. One row counts once or not, so the count moves by at most
    1 under add/remove and under replace-one alike, m rows a unit m times. Whether a row counts is
    a function of that row and of public numbers alone.
    """

    embedding: FourierEmbedding = field(metadata=inlined(FourierEmbedding))
    direction: FloatArray
    threshold: float
    kind: ClassVar[str] = "summarization.near"
    answered_by: ClassVar[str] = "privada.methods.summarization.owner.answer:answer_near"

    @property
    def needs_label(self) -> bool:
        """Never: rows count whatever their label."""
        return False

    def validate(self) -> None:
        """Check every public parameter by name."""
        _embedding(self.embedding)
        _check.finite(threshold=self.threshold)
        direction = vector(self.embedding, direction=self.direction)
        object.__setattr__(self, "direction", direction)
        object.__setattr__(self, "threshold", float(self.threshold))

    def fits(self, schema: PublicSchema) -> None:
        """Check the width against the owner's schema."""
        _fits(self.embedding, schema)

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        return {"count": (1,)}

    def planned(self) -> Plan:
        """One draw of one whole number."""
        rows = float(self.guarantee.unit.max_rows)
        if isinstance(self.guarantee, PureDP):
            return Plan(draws={"count": Laplace.calibrated(sensitivity=rows, epsilon=self.guarantee.epsilon)})
        mu = self.guarantee.gaussian_mu()
        return Plan(draws={"count": Gaussian.calibrated(sensitivity=rows, mu=mu, whole=True)})

    @property
    def variance(self) -> float:
        """Variance of the noise."""
        return self.plan.lattice("count").variance


def vector(embedding: FourierEmbedding, **named: Any) -> FloatArray:
    """A public vector of the embedding's space, as a read-only copy."""
    ((name, value),) = named.items()
    copy = np.array(value, dtype=np.float64)
    if copy.shape != (embedding.dimension,):
        raise InputError(f"Expected {name} of length {embedding.dimension}, got shape {copy.shape}.")
    if not np.isfinite(copy).all() or np.abs(copy).max() > 1e100:
        raise InputError(f"Expected {name} to be finite and within ±1e100.")
    copy.flags.writeable = False
    return copy


def _embedding(embedding: Any) -> None:
    if not isinstance(embedding, FourierEmbedding):
        raise InputError(f"Expected embedding to be a FourierEmbedding, got {type(embedding).__name__}.")


def _fits(embedding: FourierEmbedding, schema: PublicSchema) -> None:
    if embedding.width != schema.width:
        raise InputError(f"Expected an embedding of width {schema.width}, got {embedding.width}.")


def _grid(scale: float) -> Grid:
    """A grid 2^20 times finer than a row and its noise, within what integers can hold."""
    return Grid.finer_than(max(min(1.0, scale) * _FINE, _FINEST, scale * _COARSE))


__all__ = ["EmbeddingSum", "NearCount", "vector"]
