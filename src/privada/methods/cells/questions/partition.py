"""Public partitions of the feature space, in which every record belongs to exactly one cell."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privada import _check
from privada._arrays import AnyArray, FloatArray, IntArray
from privada.exceptions import InputError
from privada.privacy.codec import Form, only_of, several_of

if TYPE_CHECKING:
    from privada.methods.cells.questions.nearest import NearestSearch

Arrays = dict[str, AnyArray]
FEW_FEATURES = 3  # of centres whose names include their place
DEEPEST = 8  # partitions inside each other
LARGEST_MAP = 4_000_000  # numbers in all maps of one hypothesis or partition
WIDEST_MAP = 65_536  # numbers that a row is mapped to
CHUNK_NUMBERS = 2**16  # of mapped rows at once: they stay in the processor's cache
_WRITTEN = {"key": "partitions", "path": ""}  # where files have partitions


@dataclass(frozen=True, kw_only=True, eq=False)
class Partition(Form, ABC):
    """Cells that cover the space without overlap, fixed by public parameters."""

    @property
    @abstractmethod
    def n_cells(self) -> int:
        """Number of cells."""

    @property
    def depth(self) -> int:
        """How many partitions lie inside each other."""
        return 1

    def cell_names(self, features: Sequence[str]) -> list[str]:  # noqa: ARG002 - see the subclasses
        """A name for each cell, by the names of the features."""
        return [f"cell {i}" for i in range(self.n_cells)]

    @abstractmethod
    def assign(self, X: FloatArray) -> IntArray:
        """Cell of each row: a function of that row alone."""

    @abstractmethod
    def fits(self, width: int) -> None:
        """Raise `InputError` unless rows of ``width`` features can be assigned."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NearestCells(Partition):
    """Cells of public centres: a row belongs to the nearest one, the first on ties."""

    centers: FloatArray
    form: ClassVar[str] = "nearest"

    def __post_init__(self) -> None:
        object.__setattr__(self, "centers", _freeze(_check.matrix(centers=self.centers)))

    @property
    def n_cells(self) -> int:
        return len(self.centers)

    def cell_names(self, features: Sequence[str]) -> list[str]:
        """The number of each centre, and its place if there are few features."""
        if len(features) > FEW_FEATURES:
            return super().cell_names(features)
        names = []
        for i, center in enumerate(self.centers):
            place = ", ".join(f"{name} {value:.4g}" for name, value in zip(features, center, strict=True))
            names.append(f"cell {i} (near {place})")
        return names

    @cached_property
    def _search(self) -> NearestSearch:
        from privada.methods.cells.questions.nearest import NearestSearch

        return NearestSearch(self.centers)

    def assign(self, X: FloatArray) -> IntArray:
        return self._search.assign(X)

    def fits(self, width: int) -> None:
        if self.centers.shape[1] != width:
            raise InputError(f"Expected centers of {width} features, got {self.centers.shape[1]}.")


@dataclass(frozen=True, kw_only=True, eq=False)
class Bins(Partition):
    """Bins of one feature between public edges, with open ends, so that they partition the line.

    ``edges`` e0 < e1 < ... give the cells below e0, [e0, e1), ..., and from the
    last edge up. ``missing`` names the feature that marks a missing value, which
    gets a cell of its own at the end.

    >>> Bins(feature=0, edges=np.array([0.0, 1.0])).assign(np.array([[-5.0], [0.0], [7.0]])).tolist()
    [0, 1, 2]
    """

    feature: int
    edges: FloatArray
    missing: int | None = None
    form: ClassVar[str] = "bins"

    def __post_init__(self) -> None:
        _check.count(least=0, feature=self.feature)
        if self.missing is not None:
            _check.count(least=0, missing=self.missing)
        edges = np.asarray(self.edges, dtype=np.float64)
        if edges.ndim != 1 or not len(edges) or not np.isfinite(edges).all() or np.any(np.diff(edges) <= 0):
            raise InputError(
                "Expected edges to be finite and strictly increasing, so that bins do not overlap."
            )
        object.__setattr__(self, "edges", _freeze(edges))

    @property
    def n_cells(self) -> int:
        return len(self.edges) + 1 + (self.missing is not None)

    def cell_names(self, features: Sequence[str]) -> list[str]:
        """The bounds of each bin.

        >>> Bins(feature=0, edges=np.array([1.0, 2.5])).cell_names(("age",))
        ['age < 1', '1 <= age < 2.5', 'age >= 2.5']
        """
        # Edges are written with as few digits as tell them exactly.
        name = features[self.feature]
        ends = [short if float(short := f"{edge:g}") == edge else repr(float(edge)) for edge in self.edges]
        between = [f"{low} <= {name} < {high}" for low, high in pairwise(ends)]
        missing = [] if self.missing is None else [f"{name} is missing"]
        return [f"{name} < {ends[0]}", *between, f"{name} >= {ends[-1]}", *missing]

    def assign(self, X: FloatArray) -> IntArray:
        cells = np.searchsorted(self.edges, X[:, self.feature], side="right").astype(np.int64)
        if self.missing is None:
            return cells
        return np.where(X[:, self.missing] == 1.0, self.n_cells - 1, cells)

    def fits(self, width: int) -> None:
        for name, index in (("feature", self.feature), ("missing", self.missing)):
            if index is not None and index >= width:
                raise InputError(f"Expected {name} below {width}, got {index}.")


@dataclass(frozen=True, kw_only=True, eq=False)
class GridCells(Partition):
    """The grid of several partitions: a cell for each combination of theirs."""

    factors: tuple[Partition, ...] = field(metadata=several_of(Partition, **_WRITTEN))
    form: ClassVar[str] = "product"
    largest: ClassVar[int] = 10_000_000
    most: ClassVar[int] = 30  # factors, which every version of NumPy can combine

    def __post_init__(self) -> None:
        object.__setattr__(self, "factors", tuple(self.factors))
        if not self.factors or not all(isinstance(factor, Partition) for factor in self.factors):
            raise InputError("Expected factors to be at least one partition.")
        if len(self.factors) > self.most:
            raise InputError(f"Expected at most {self.most} factors, got {len(self.factors)}.")
        _check_depth(self)
        if self.n_cells > self.largest:
            raise InputError(f"Expected at most {self.largest} cells, got {self.n_cells}.")

    @property
    def n_cells(self) -> int:
        return math.prod(factor.n_cells for factor in self.factors)

    @property
    def depth(self) -> int:
        return 1 + max(factor.depth for factor in self.factors)

    def assign(self, X: FloatArray) -> IntArray:
        codes = tuple(factor.assign(X) for factor in self.factors)
        shape = tuple(factor.n_cells for factor in self.factors)
        return np.ravel_multi_index(codes, shape).astype(np.int64)

    def fits(self, width: int) -> None:
        for factor in self.factors:
            factor.fits(width)


@dataclass(frozen=True, kw_only=True, eq=False)
class Projected(Partition):
    """Cells of rows after a public linear map: ``X @ matrix`` falls into a cell of ``inner``."""

    matrix: FloatArray
    inner: Partition = field(metadata=only_of(Partition, **_WRITTEN))
    form: ClassVar[str] = "projected"

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", _freeze(check_map(matrix=self.matrix)))
        if not isinstance(self.inner, Partition):
            raise InputError("Expected inner to be a partition.")
        _check_depth(self)
        self.inner.fits(self.matrix.shape[1])

    @property
    def n_cells(self) -> int:
        return self.inner.n_cells

    @property
    def depth(self) -> int:
        return 1 + self.inner.depth

    def assign(self, X: FloatArray) -> IntArray:
        from privada.methods.cells.questions import kernels

        width = self.matrix.shape[1]
        shift = np.zeros(width)
        rows = np.ascontiguousarray(X, dtype=np.float64)
        return map_rows(rows, width, lambda part: self.inner.assign(kernels.affine(part, self.matrix, shift)))

    def fits(self, width: int) -> None:
        if len(self.matrix) != width:
            raise InputError(f"Expected a matrix of {width} rows, got {len(self.matrix)}.")


@dataclass(frozen=True)
class _Tables(Form):
    """Several partitions, as questions write them."""

    tables: tuple[Partition, ...] = field(metadata=several_of(Partition, **_WRITTEN))


def pack(partitions: tuple[Partition, ...]) -> tuple[dict[str, Any], Arrays]:
    """Several partitions as plain values and arrays."""
    return _Tables(partitions).parts()


def check_map(**values: Any) -> FloatArray:
    """Return a public matrix if rows can be mapped by it.

    A learner chooses the map, and the owner's rows are private: the memory of a mapped row is bounded.
    """
    ((name, _),) = values.items()
    matrix = _check.matrix(**values)
    if matrix.shape[1] > WIDEST_MAP or matrix.size > LARGEST_MAP:
        raise InputError(
            f"Expected {name} to have at most {WIDEST_MAP} columns and {LARGEST_MAP} numbers, "
            f"got shape {matrix.shape}."
        )
    return matrix


def map_rows(rows: FloatArray, width: int, function: Callable[[FloatArray], AnyArray]) -> AnyArray:
    """Apply a function to each row, chunk by chunk; a row takes ``width`` numbers meanwhile."""
    # The size of a chunk follows from the map alone, so the number of private rows does not decide
    # whether an answer fits the owner's memory.
    size = max(1, CHUNK_NUMBERS // width)
    if len(rows) <= size:
        return function(rows)
    return np.concatenate([function(rows[start : start + size]) for start in range(0, len(rows), size)])


def _check_depth(partition: Partition) -> None:
    if partition.depth > DEEPEST:
        raise InputError(f"Expected at most {DEEPEST} partitions inside each other, got {partition.depth}.")


def _freeze(array: FloatArray) -> FloatArray:
    copy = np.array(array, dtype=np.float64, order="C")
    copy.flags.writeable = False
    return copy


__all__ = ["Bins", "GridCells", "NearestCells", "Partition", "Projected", "check_map", "map_rows", "pack"]
