"""Estimates, means and class probabilities from noisy counts and sums. All post-processing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.cells.questions.statistics import CellStatistics
from privada.methods.forecast import CONFIDENCE as BAND
from privada.methods.forecast import Forecast, say_size
from privada.parties.protocol import AskOwner, Learner, one_round, only_releases
from privada.privacy.bounds import Ball
from privada.privacy.release import Release

CONFIDENCE = 0.95
NEGLIGIBLE = 1e-9  # rows, or a share of them: noise that a number cannot tell from none


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
        Half the width of the 95 % interval around each released count; 0 for exact counts.
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
        totals = np.maximum(self.counts.sum(axis=0), 0.0) + 1e-9
        prior = totals / totals.sum()
        # The whole table's shares count as many rows as the standard deviation of a cell's noise.
        weight = self.noise * np.sqrt(self.counts.shape[1])
        return (positive + weight * prior) / (positive.sum(axis=1, keepdims=True) + weight)

    @property
    def means(self) -> FloatArray:
        """Mean of each cell's rows, projected into the public ball around its origin."""
        if self.sums is None or self.origins is None or self.radius is None:
            raise InputError("This table has no sums; ask with a radius.")
        offsets = self.sums / np.maximum(self.size, 1.0)[:, None]
        return self.origins + Ball(radius=self.radius).clip(offsets)

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
        answer_axes = self.question.answer_axes(schema)
        axes: dict[str, tuple[Any, ...]] = {}
        for index in range(len(self.tables)):
            counts, sums = (answer_axes[name] for name in self.question.names(index))
            # Counts by class are a mapping of classes to lists over cells.
            order = tuple(reversed(counts)) if self.classes is not None else counts
            axes |= {f"tables.{index}.{part}": order for part in ("counts", "low", "high")}
            axes[f"tables.{index}.means"] = sums
        return axes

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
        tables.append(
            CellTable(
                counts=release[counts],
                noise=math.sqrt(draw.variance),
                half_width=draw.half_width(CONFIDENCE),
                sums=release[sums] if question.radius is not None else None,
                origins=question.origins(partition),
                radius=question.radius,
            )
        )
    return CellEstimates(tables=tuple(tables), release=release, question=question, classes=classes)


@one_round
def learn(
    owner: str, question: CellStatistics, *, classes: tuple[Any, ...] | None = None
) -> Learner[CellEstimates]:
    """Ask one owner once, and read the answer."""
    release = yield AskOwner(owner, question)
    return estimate(question, release, classes=classes)


def forecast_counts(question: CellStatistics, *, size: int | None) -> Forecast:
    """Expected share of rows that are counted in a wrong cell or class, the mean over tables.

    Parameters
    ----------
    question : CellStatistics
    size : int or None
        Announced number of rows.

    >>> from privada.methods.cells import Bins
    >>> from privada.privacy import PureDP
    >>> cells = Bins(feature=0, edges=[1.0, 2.0, 3.0])
    >>> ask = CellStatistics(tables=(cells,), guarantee=PureDP(epsilon=0.5, relation="add/remove"))
    >>> f"{forecast_counts(ask, size=400).ratio:.4f}"
    '0.0096'
    """
    from scipy.stats import gamma

    rows, words = say_size(size)
    # The noise has a known law, whatever the rows are: half the sum of its sizes is the number of
    # rows in a wrong cell. A Gamma law with the sum's mean and variance gives the band.
    mean = variance = 0.0
    step = math.inf
    for index in range(len(question.tables)):
        name = question.names(index)[0]
        draw, entries = question.plan.lattice(name), math.prod(question.answer_shapes()[name])
        mean += entries * draw.mean_absolute
        variance += entries * max(draw.variance - draw.mean_absolute**2, 0.0)
        step = min(step, draw.grid.step)
    low = middle = high = 0.0
    if mean >= NEGLIGIBLE:
        levels = [(1 - BAND) / 2, (1 + BAND) / 2]
        ends = gamma.ppf(levels, mean**2 / variance, scale=variance / mean)
        # The ends are rounded to the grid of the counts.
        least, most = (round(float(end) / step) * step for end in ends)
        half = 2 * len(question.tables)
        low, middle, high = (value / half / rows for value in (min(least, mean), mean, max(most, mean)))
    return Forecast(
        ratio=max(middle, NEGLIGIBLE),
        low=low,
        high=max(high, NEGLIGIBLE),
        measure=f"the share of rows that are counted in a wrong cell, {words}",
    )


__all__ = ["CellEstimates", "CellTable", "estimate", "forecast_counts", "learn"]
