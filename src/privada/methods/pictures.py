"""What a picture of ``privada demo`` shows, as numbers; `privada.report` draws it.

Methods know nothing of drawing: a picture is planes of points, curves and tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray

ROLES = ("public", "private", "result", "limit")


@dataclass(frozen=True, kw_only=True, eq=False)
class Points:
    """Points of one kind on a `Plane`.

    Attributes
    ----------
    role : "public", "private", "result" or "limit"
        How they are drawn.
    names : sequence of str, optional
        Written in place of a mark, one for each point.
    """

    name: str
    at: FloatArray
    role: str = "public"
    names: Sequence[str] = ()

    def __post_init__(self) -> None:
        _check.one_of(ROLES, role=self.role)


@dataclass(frozen=True, kw_only=True, eq=False)
class Plane:
    """Layers of points in two dimensions, the last one on top."""

    title: str
    layers: tuple[Points, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Line:
    """A line of a `Curve`, with the lowest and the highest of several runs where there were several."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    role: str = "public"

    def __post_init__(self) -> None:
        _check.one_of(ROLES, role=self.role)

    @classmethod
    def over_runs(cls, name: str, x: Sequence[float], values: npt.ArrayLike, role: str = "result") -> Line:
        """The mean of values of shape (runs, points), and their extremes.

        >>> Line.over_runs("ours", [1, 2], [[1, 4], [3, 6]]).y
        [2.0, 5.0]
        """
        runs = np.asarray(values, dtype=np.float64)
        mean, low, high = runs.mean(axis=0), runs.min(axis=0), runs.max(axis=0)
        return cls(name=name, x=list(x), y=mean.tolist(), low=low.tolist(), high=high.tolist(), role=role)


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """Lines over one axis."""

    title: str
    xlabel: str
    ylabel: str
    lines: tuple[Line, ...]
    log: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Tiles:
    """Small grey images of shape (n, height, width), largest value darkest, each named or none."""

    title: str
    images: FloatArray
    names: Sequence[str] = field(default=())
    across: int = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class Picture:
    """One or more drawings side by side, with what they show in words."""

    caption: str
    parts: tuple[Plane | Curve | Tiles, ...]


__all__ = ["Curve", "Line", "Picture", "Plane", "Points", "Tiles"]
