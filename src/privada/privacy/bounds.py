"""Public limits of rows, declared before any row is read.

Rows outside a limit are clipped, never rejected and never counted exactly. Clipped values are truncated
toward zero on a public power-of-two grid, so that sums are sums of integers: exact, and the same in every
order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import BoundsError, SchemaError

_INSIDE = 1 - 2.0**-40  # keeps a clipped vector inside its ball however its last bits are rounded


@dataclass(frozen=True)
class Grid:
    """Multiples of ``2**exponent``.

    >>> Grid(-2).truncate(np.array([0.9, -0.9])).tolist()
    [3, -3]
    """

    exponent: int = 0

    def __post_init__(self) -> None:
        if not -60 <= _check.finite(exponent=self.exponent) <= 60 or self.exponent != int(self.exponent):
            raise BoundsError(f"Expected the grid's exponent between -60 and 60, got {self.exponent!r}.")

    @property
    def step(self) -> float:
        """Distance between two grid points."""
        return float(2.0**self.exponent)

    def truncate(self, values: npt.ArrayLike) -> IntArray:
        """Whole steps of each value, truncated toward zero so that no norm grows."""
        scaled = np.trunc(np.ldexp(np.asarray(values, dtype=np.float64), -self.exponent))
        if not np.all(np.abs(scaled) < 2.0**62):
            raise BoundsError("A value does not fit the grid: it is not finite, or the grid is too fine.")
        return scaled.astype(np.int64)

    def values(self, steps: npt.ArrayLike) -> FloatArray:
        """Back from whole steps to numbers."""
        return np.ldexp(np.asarray(steps, dtype=np.float64), self.exponent)

    @classmethod
    def finer_than(cls, size: float) -> Grid:
        """The coarsest grid whose step is at most ``size``."""
        return cls(int(np.floor(np.log2(_check.positive(size=size)))))

    @classmethod
    def finer_than_both(cls, unit: float, scale: float) -> Grid:
        """A grid 2^20 times finer than both a unit and its noise, within what integers can hold."""
        # Never finer than 2^-30 of the unit, so that sums of 2^32 rows fit 64 bits, nor than 2^-45 of the
        # noise, so that no draw needs more than 2^45 steps.
        return cls.finer_than(max(min(unit, scale) * 2.0**-20, unit * 2.0**-30, scale * 2.0**-45))


@dataclass(frozen=True, kw_only=True)
class Ball:
    """All vectors of Euclidean norm at most ``radius``.

    >>> Ball(radius=1.0).clip(np.array([[3.0, 4.0], [0.1, 0.0]])).round(3).tolist()
    [[0.6, 0.8], [0.1, 0.0]]
    """

    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", _check.positive(radius=self.radius))

    def clip(self, rows: npt.ArrayLike) -> FloatArray:
        """Scale rows back into the ball; rows inside do not change, and rows that are not finite become 0."""
        rows = np.asarray(rows, dtype=np.float64)
        largest = np.abs(rows).max(axis=-1, keepdims=True, initial=0.0)
        if not (finite := np.isfinite(largest)).all():
            rows, largest = np.where(finite, rows, 0.0), np.where(finite, largest, 0.0)
        # Rows are divided by their largest entry first, so that no norm overflows.
        unit = rows / np.where(largest > 0, largest, 1.0)
        lengths = np.sqrt(np.sum(unit**2, axis=-1, keepdims=True))
        inner = self.radius * _INSIDE
        with np.errstate(over="ignore"):
            outside = largest * lengths > inner
        # Direction times radius: a factor for the row itself could be too small for a float.
        return np.where(outside, unit * (inner / np.where(outside, lengths, 1.0)), rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        return {"radius": self.radius}


@dataclass(frozen=True, kw_only=True)
class Box:
    """All vectors between ``low`` and ``high``, coordinate by coordinate.

    >>> Box(low=[0, 0], high=[1, 2]).clip(np.array([[-1.0, 5.0]])).tolist()
    [[0.0, 2.0]]
    """

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        low, high = (tuple(float(v) for v in np.atleast_1d(side)) for side in (self.low, self.high))
        if len(low) != len(high) or not low:
            raise BoundsError(f"Expected low and high of one length, got {len(low)} and {len(high)}.")
        for index, (a, b) in enumerate(zip(low, high, strict=True)):
            if not (np.isfinite(a) and np.isfinite(b) and a < b):
                raise BoundsError(f"Expected low < high, both finite, got {a:g} and {b:g} in column {index}.")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return len(self.low)

    @property
    def radius(self) -> float:
        """Half the diagonal: the ball around the centre that holds the box."""
        return float(np.linalg.norm(np.subtract(self.high, self.low)) / 2)

    def clip(self, rows: npt.ArrayLike) -> FloatArray:
        """Move each coordinate to the nearest allowed value."""
        return np.clip(np.asarray(rows, dtype=np.float64), self.low, self.high)


@dataclass(frozen=True)
class Classes:
    """The public list of labels; its order is the code of each label.

    >>> Classes(("no", "yes")).encode(np.array(["yes", "no"])).tolist()
    [1, 0]
    """

    names: tuple[Any, ...]

    def __post_init__(self) -> None:
        names = tuple(name.item() if isinstance(name, np.generic) else name for name in self.names)
        if len(names) < 2 or len(set(names)) != len(names):
            raise BoundsError(f"Expected at least two distinct classes, got {list(names)}.")
        if not all(isinstance(name, (str, int, float, bool)) for name in names):
            raise BoundsError("Expected classes to be strings or numbers.")
        object.__setattr__(self, "names", names)

    def __len__(self) -> int:
        return len(self.names)

    def encode(self, labels: Sequence[Any] | npt.NDArray[Any]) -> IntArray:
        """Codes of labels. An unknown label is an error that does not show the label."""
        codes = self.look_up(labels)
        if np.any(codes < 0):
            raise SchemaError(f"A label is not among the public classes {list(self.names)}.")
        return codes

    def look_up(self, values: Sequence[Any] | npt.NDArray[Any]) -> IntArray:
        """Codes of values, -1 for those that are not labels.

        >>> Classes(("no", "yes")).look_up(np.array(["yes", "perhaps"])).tolist()
        [1, -1]
        """
        codes = {name: code for code, name in enumerate(self.names)}
        array = np.asarray(values)
        if array.dtype.kind in "biuf":  # numbers are fast to sort, other values are not
            distinct, inverse = np.unique(array, return_inverse=True)
            table = np.array([codes.get(value, -1) for value in distinct.tolist()], dtype=np.int64)
            return table[inverse.reshape(array.shape)]
        flat = np.fromiter(map(codes.get, array.ravel().tolist(), repeat(-1)), np.int64, array.size)
        return flat.reshape(array.shape)

    def decode(self, codes: npt.ArrayLike) -> npt.NDArray[Any]:
        """Labels of codes."""
        return np.asarray(self.names)[np.asarray(codes, dtype=np.int64)]


__all__ = ["Ball", "Box", "Classes", "Grid"]
