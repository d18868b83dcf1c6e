"""The public embedding of rows, and the questions of local matching: noisy sums and counts, and rows.

`FourierEmbedding` maps rows to vectors whose inner products are a Gaussian kernel. Cosine and sine of each
frequency come in pairs, so every row has norm 1 (the printed map, with random shifts, reaches √2), and one
record moves a sum of embedded rows by at most 1.

With at most m rows a unit, d features of norm at most 1 and a grid of step g (privacy.md, 5 (c) and 6.6):

=============  =============  ======================
               add/remove     replace-one
=============  =============  ======================
sum, L2        m              m (2 + g √d)
sum, L1        m √d           m (2 √d + g d)
count          m              m
=============  =============  ======================

Questions for rows disclose: they carry no guarantee, and say so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.privacy.bounds import Grid
from privada.privacy.codec import inlined
from privada.privacy.guarantee import PureDP
from privada.privacy.mechanism import Gaussian, Laplace, Plan
from privada.privacy.relation import Relation
from privada.privacy.release import PublicSchema, Question

MOST_NUMBERS = 50_000_000  # of all frequencies together
MOST_FEATURES = 100_000  # an owner releases a number for each
LARGEST_FREQUENCY = 1e6
MOST_ROWS = 10_000_000
_BLOCK = 2048


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
        orthogonal : bool, default=True
            Draw directions in orthogonal blocks, each still uniform, with independent chi
            lengths: unbiased as before, with less error.
        random_state : int, default=None
            Of the public frequencies.
        """
        if _check.count(least=2, n_features=n_features) % 2:
            raise InputError(f"Expected n_features to be even, got {n_features}.")
        if n_features > MOST_FEATURES:
            raise InputError(f"Expected n_features to be at most {MOST_FEATURES}, got {n_features}.")
        _check.count(width=width)
        rng, pairs = np.random.default_rng(random_state), n_features // 2
        scale = math.sqrt(2 * _check.positive(gamma=gamma))
        if not orthogonal:
            return cls(frequencies=rng.normal(size=(pairs, width)) * scale)
        # Each block has orthogonal directions, and lengths as independent normal vectors have.
        blocks = []
        for _ in range(-(-pairs // width)):
            directions, _ = np.linalg.qr(rng.normal(size=(width, width)))
            lengths = np.linalg.norm(rng.normal(size=(width, width)), axis=1)
            blocks.append(directions.T * lengths[:, None])
        return cls(frequencies=np.concatenate(blocks)[:pairs] * scale)

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

    def check_width(self, schema: PublicSchema) -> None:
        """Refuse an owner's schema of another width."""
        if self.width != schema.width:
            raise InputError(f"Expected an embedding of width {schema.width}, got {self.width}.")

    def freeze_vector(self, **named: Any) -> FloatArray:
        """A public vector of the embedding's space, checked, as a read-only copy."""
        ((name, value),) = named.items()
        vector = np.array(value, dtype=np.float64)
        if vector.shape != (self.dimension,):
            raise InputError(f"Expected {name} of length {self.dimension}, got shape {vector.shape}.")
        if not np.isfinite(vector).all() or np.abs(vector).max() > 1e100:
            raise InputError(f"Expected {name} to be finite and within ±1e100.")
        vector.flags.writeable = False
        return vector


def mmd2(X: npt.ArrayLike, Y: npt.ArrayLike, *, gamma: float) -> float:
    """Squared maximum mean discrepancy of two sets under ``exp(-gamma |x - y|²)``, exactly.

    For evaluation: of private sets it is not private.

    >>> mmd2([[0.0], [1.0]], [[1.0], [0.0]], gamma=1.0)
    0.0
    """
    from scipy.spatial.distance import cdist

    first, second = _check.matrix(X=X), _check.matrix(Y=Y)
    if first.shape[1] != second.shape[1]:
        raise InputError(f"Expected X and Y of one width, got {first.shape[1]} and {second.shape[1]}.")
    _check.positive(gamma=gamma)

    def mean_kernel(A: FloatArray, B: FloatArray) -> float:
        blocks = (A[i : i + _BLOCK] for i in range(0, len(A), _BLOCK))
        total = math.fsum(np.exp(-gamma * cdist(block, B, "sqeuclidean")).sum() for block in blocks)
        return float(total / (len(A) * len(B)))

    within = mean_kernel(first, first) + mean_kernel(second, second)
    return max(0.0, within - 2 * mean_kernel(first, second))


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
    answered_by: ClassVar[str] = "privada.methods.summarization.owner:answer_sum"

    @property
    def needs_label(self) -> bool:
        """Always false: labels are not read."""
        return False

    def validate(self) -> None:
        """Check the embedding."""
        _check_embedding(self.embedding)

    def fits(self, schema: PublicSchema) -> None:
        """Check the width against the owner's schema."""
        self.embedding.check_width(schema)

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        return {"sum": (self.embedding.dimension,)}

    def planned(self) -> Plan:
        """One draw over all coordinates."""
        d, rows = self.embedding.dimension, self.guarantee.unit.max_rows
        replaces = self.guarantee.relation is not Relation.ADD_REMOVE
        if isinstance(self.guarantee, PureDP):
            grid = Grid.finer_than_both(1.0, rows * math.sqrt(d) / self.guarantee.epsilon)
            # Truncation lets a difference of d numbers grow by a step in each.
            l1 = 2 * math.sqrt(d) + grid.step * d if replaces else math.sqrt(d)
            noise = Laplace.calibrated(sensitivity=rows * l1, epsilon=self.guarantee.epsilon, grid=grid)
            return Plan(draws={"sum": noise})
        mu = self.guarantee.gaussian_mu()
        grid = Grid.finer_than_both(1.0, rows / mu)
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
    answered_by: ClassVar[str] = "privada.methods.summarization.owner:answer_near"

    @property
    def needs_label(self) -> bool:
        """Always false: labels are not read."""
        return False

    def validate(self) -> None:
        """Check every public parameter by name."""
        _check_embedding(self.embedding)
        _check.finite(threshold=self.threshold)
        direction = self.embedding.freeze_vector(direction=self.direction)
        object.__setattr__(self, "direction", direction)
        object.__setattr__(self, "threshold", float(self.threshold))

    def fits(self, schema: PublicSchema) -> None:
        """Check the width against the owner's schema."""
        self.embedding.check_width(schema)

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


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SummaryRows(Question):
    """Ask an owner for the rows of its own that match a noisy validation mean best.

    Parameters
    ----------
    embedding : FourierEmbedding
    target : array of shape (features,)
        The noisy mean, public.
    size : int
        How many rows, all different. An owner of fewer sends all it has.
    variance : float, default=0.0
        Of the noise on each coordinate of ``target``; the owner removes what its own rows cannot
        express (`denoise`). 0 matches the target as it is.
    skip : int, default=0
        Leave out this many rows that would come first: they were sent before.

    Privacy
    -------
    None from the curator: this is a disclosure of raw rows, which the owner's policy must allow for
    the curator by name. Over an exchange the rows are encrypted for the curator, in a message whose length
    follows from ``size`` and the public schema. The question itself follows from noisy releases and is not
    sealed.
    """

    embedding: FourierEmbedding = field(metadata=inlined(FourierEmbedding))
    target: FloatArray
    size: int
    variance: float = 0.0
    skip: int = 0
    kind: ClassVar[str] = "summarization.rows"
    answered_by: ClassVar[str] = "privada.methods.summarization.owner:answer_rows"
    discloses: ClassVar[bool] = True

    def validate(self) -> None:
        """Check every public parameter by name."""
        _check_embedding(self.embedding)
        object.__setattr__(self, "target", self.embedding.freeze_vector(target=self.target))
        object.__setattr__(self, "variance", _check.non_negative(variance=self.variance))
        if _check.count(size=self.size) + _check.count(least=0, skip=self.skip) > MOST_ROWS:
            raise InputError(f"Expected size and skip of at most {MOST_ROWS:,} together.")

    def fits(self, schema: PublicSchema) -> None:
        """Check the width against the owner's schema."""
        self.embedding.check_width(schema)

    def planned(self) -> Plan:
        """No draw: nothing here is differentially private."""
        return plan_disclosure()

    def disclosed_shapes(self, schema: PublicSchema) -> dict[str, tuple[int, ...]]:
        """As many rows as are asked for, whether or not there are as many different ones."""
        return row_shapes("X", self.size, schema.width, schema)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class EmbeddedRows(SummaryRows):
    """Ask for the same rows' embeddings and labels only, for a curator that is trusted less.

    Privacy
    -------
    **This is not differential privacy.** Embeddings tell all pairwise distances of the rows, and
    with enough features the rows themselves; they only spare the curator the raw columns. Kernel
    models can be trained on them.
    """

    kind: ClassVar[str] = "summarization.embeddings"
    answered_by: ClassVar[str] = "privada.methods.summarization.owner:answer_embeddings"

    def disclosed_shapes(self, schema: PublicSchema) -> dict[str, tuple[int, ...]]:
        """As many embeddings as are asked for."""
        return row_shapes("H", self.size, self.embedding.dimension, schema)


def _check_embedding(embedding: Any) -> None:
    if not isinstance(embedding, FourierEmbedding):
        raise InputError(f"Expected embedding to be a FourierEmbedding, got {type(embedding).__name__}.")


def row_shapes(name: str, size: int, width: int, schema: PublicSchema) -> dict[str, tuple[int, ...]]:
    """Shapes of so many rows, and of their labels if the schema has one."""
    return {name: (size, width)} | ({} if schema.label is None else {"y": (size,)})


def plan_disclosure() -> Plan:
    """The plan of a disclosure."""
    from dp_accounting import NoOpDpEvent

    return Plan(draws={}, event=NoOpDpEvent())


__all__ = [
    "EmbeddedRows",
    "EmbeddingSum",
    "FourierEmbedding",
    "NearCount",
    "SummaryRows",
    "mmd2",
    "plan_disclosure",
    "row_shapes",
]
