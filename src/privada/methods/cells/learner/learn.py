"""What is computed from counts and sums: estimates, means, class probabilities. All post-processing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.cells.questions.statistics import CellStatistics
from privada.parties.protocol import AskOwner, Learner, only_releases
from privada.privacy.bounds import Ball
from privada.privacy.release import Release

CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True, eq=False)
class CellTable:
    """Estimates of one table.

    Attributes
    ----------
    counts : array of shape (cells,) or (cells, classes)
        As released: unbiased, so some may be negative.
    sums : array of shape (cells, features) or None
        As released, relative to ``origins``.
    noise : float
        Standard deviation of the noise on each count.
    half_width : float
        The exact count is within so much of the released one, with 95 % confidence; 0 for exact counts.
    """

    counts: FloatArray
    noise: float
    sums: FloatArray | None = None
    origins: FloatArray | None = None
    radius: float | None = None
    half_width: float = 0.0

    @property
    def total(self) -> float:
        """Estimate of the number of rows: unbiased."""
        return float(self.counts.sum())

    @property
    def size(self) -> FloatArray:
        """Rows of each cell, over all classes, at least 0."""
        summed = self.counts if self.counts.ndim == 1 else self.counts.sum(axis=1)
        return np.maximum(summed, 0.0)

    @property
    def probabilities(self) -> FloatArray:
        """Class probabilities of each cell, shrunk toward the whole table's where counts are mostly noise."""
        if self.counts.ndim == 1:
            raise InputError("This table was not counted by class.")
        positive = np.maximum(self.counts, 0.0)
        whole = np.maximum(self.counts.sum(axis=0), 0.0) + 1e-9
        prior = whole / whole.sum()
        weight = self.noise * np.sqrt(self.counts.shape[1])
        share = (positive + weight * prior) / (positive.sum(axis=1, keepdims=True) + weight)
        return np.asarray(share, dtype=np.float64)

    @property
    def means(self) -> FloatArray:
        """Mean of each cell's rows, projected into the public ball around its origin."""
        if self.sums is None or self.origins is None or self.radius is None:
            raise InputError("This table has no sums; ask with a radius.")
        seen = self.sums / np.maximum(self.size, 1.0)[:, None]
        return self.origins + Ball(radius=self.radius).clip(seen)

    def to_dict(self, classes: tuple[Any, ...] | None = None) -> dict[str, Any]:
        """Plain form for reports; with ``classes``, counts are given by class."""

        def by_class(numbers: FloatArray) -> Any:
            if classes is None or numbers.ndim == 1:
                return numbers.tolist()
            return {str(name): column for name, column in zip(classes, numbers.T.tolist(), strict=True)}

        plain: dict[str, Any] = {
            "counts": by_class(self.counts),
            "low": by_class(self.counts - self.half_width),
            "high": by_class(self.counts + self.half_width),
            "confidence": CONFIDENCE,
            "noise": self.noise,
            "total": self.total,
        }
        return plain if self.sums is None else plain | {"means": self.means.tolist()}


@dataclass(frozen=True, kw_only=True, eq=False)
class CellEstimates:
    """Estimates of all tables of one question, with the release that they come from."""

    tables: tuple[CellTable, ...]
    release: Release
    question: CellStatistics
    classes: tuple[Any, ...] | None = None

    def axes(self, schema: Any) -> dict[str, tuple[Any, ...]]:
        """Names along the lists of `to_dict`."""
        named = self.question.answer_axes(schema)
        made: dict[str, tuple[Any, ...]] = {}
        for index in range(len(self.tables)):
            counts, sums = (named[name] for name in self.question.names(index))
            # counts by class stand in a mapping of classes to cells
            order = tuple(reversed(counts)) if self.classes is not None else counts
            made |= {f"tables.{index}.{part}": order for part in ("counts", "low", "high")}
            made[f"tables.{index}.means"] = sums
        return made

    def to_dict(self) -> dict[str, Any]:
        """Plain form for reports."""
        return {
            "guarantee": str(self.release.guarantee),
            "stamps": list(self.release.stamps),
            "tables": [table.to_dict(self.classes) for table in self.tables],
        }


def estimate(
    question: CellStatistics, release: Release, *, classes: tuple[Any, ...] | None = None
) -> CellEstimates:
    """Read a release as estimates; ``classes`` are the names of the labels, if wanted in reports."""
    only_releases(release)
    tables = []
    for index, partition in enumerate(question.tables):
        counts, sums = question.names(index)
        draw = question.plan.lattice(counts)
        deviation = math.sqrt(draw.variance)
        tables.append(
            CellTable(
                counts=release[counts],
                noise=deviation,
                half_width=draw.half_width(CONFIDENCE),
                sums=release[sums] if question.radius is not None else None,
                origins=question.origins(partition),
                radius=question.radius,
            )
        )
    return CellEstimates(tables=tuple(tables), release=release, question=question, classes=classes)


def learn(
    owner: str, question: CellStatistics, *, classes: tuple[Any, ...] | None = None
) -> Learner[CellEstimates]:
    """Ask one owner once, and read the answer."""
    release = yield AskOwner(owner, question)
    return estimate(question, release, classes=classes)


__all__ = ["CellEstimates", "CellTable", "estimate", "learn"]
