"""Where two output distributions may differ: statistics of an outcome, and events made of them.

A *statistic* is one number per outcome. A *score* turns it into something
whose large values are suspicious: the number itself, its opposite, or how much
more often its histogram bin occurs on one data set than on the other. An
*event* is "the score is at least t". Everything here is fitted on one half of
the outcomes; what is claimed of an event is counted on the other half.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray

MOST_COORDINATES = 32
BINS = 48


@dataclass(frozen=True, kw_only=True, eq=False)
class Statistic:
    """A named number of each outcome (outcomes are rows; missing coordinates are NaN)."""

    name: str
    of: Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, kw_only=True, eq=False)
class TurnedStatistic:
    """A statistic, transformed so that large values are evidence for one data set."""

    name: str
    statistic: Statistic
    turn: Callable[[FloatArray], FloatArray]

    def of(self, outcomes: FloatArray) -> FloatArray:
        """Score of each outcome."""
        return self.turn(self.statistic.of(outcomes))


@dataclass(frozen=True, kw_only=True, eq=False)
class Centres:
    """Where the outcomes of the two data sets lie, coordinate by coordinate, and how widely.

    ``first`` and ``second`` are the exact values if they are known (the
    projection on their difference is then the likelihood ratio of Gaussian noise,
    and the difference of distances that of Laplace noise), else medians.
    """

    first: FloatArray
    second: FloatArray
    scale: FloatArray

    @classmethod
    def of(
        cls, first: FloatArray, second: FloatArray, exact: tuple[FloatArray, FloatArray] | None
    ) -> Centres:
        """Fit on outcomes; ``exact`` replaces the medians."""
        centres = (_median(first), _median(second)) if exact is None else exact
        spread = np.maximum(_spread(first), _spread(second))
        return cls(
            first=np.nan_to_num(centres[0]),
            second=np.nan_to_num(centres[1]),
            scale=np.where(spread > 0, spread, 1.0),
        )

    @property
    def gap(self) -> FloatArray:
        """Difference of the centres in units of the spread."""
        return (self.second - self.first) / self.scale


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixture:
    """The exact rows that a secret sample may release, for one draw of Gaussian noise on rows.

    Where membership of a sample is secret, an outcome is a mixture: each of its rows is one of many
    exact rows and noise, in an order that tells nothing. The ratio of the two mixtures' densities,
    row by row, sees what no projection on one difference does.
    """

    at: slice
    width: int
    scale: float
    first: FloatArray
    second: FloatArray

    def ratio(self, outcomes: FloatArray) -> FloatArray:
        """Logarithm of the densities' ratio, the second data set's over the first's."""
        rows = outcomes[:, self.at].reshape(-1, self.width)
        gain = self._log_density(rows, self.second) - self._log_density(rows, self.first)
        return np.asarray(np.nan_to_num(gain).reshape(len(outcomes), -1).sum(axis=1))

    def _log_density(self, rows: FloatArray, centres: FloatArray) -> FloatArray:
        from scipy.special import logsumexp

        distinct, counts = np.unique(centres, axis=0, return_counts=True)
        nearness = rows @ distinct.T - np.square(distinct).sum(axis=1) / 2  # |row|² cancels in a ratio
        return logsumexp(nearness / self.scale**2 + np.log(counts / len(centres)), axis=1)


def statistics(
    first: FloatArray,
    second: FloatArray,
    centres: Centres,
    mixture: Mixture | None = None,
    coordinates: int = MOST_COORDINATES,
) -> Iterator[Statistic]:
    """Every statistic that is tried on outcomes of two data sets."""
    if mixture is not None:
        yield Statistic(name="likelihood ratio of sampled rows", of=mixture.ratio)
    a, b, scale, gap = centres.first, centres.second, centres.scale, centres.gap
    yield Statistic(name="projection on the difference", of=lambda x: _total((x - a) / scale * gap))
    yield Statistic(
        name="difference of distances", of=lambda x: _total((np.abs(x - a) - np.abs(x - b)) / scale)
    )
    yield Statistic(name="distance to the first exact value", of=lambda x: _total(np.abs(x - a)))
    yield Statistic(name="distance to the second exact value", of=lambda x: _total(np.abs(x - b)))
    yield Statistic(name="matches of the first exact value", of=lambda x: _count(x == a))
    yield Statistic(name="matches of the second exact value", of=lambda x: _count(x == b))
    yield Statistic(name="sum", of=_total)
    yield Statistic(name="largest", of=lambda x: _filled(x, -np.inf).max(axis=1, initial=-np.inf))
    yield Statistic(name="smallest", of=lambda x: _filled(x, np.inf).min(axis=1, initial=np.inf))
    yield Statistic(name="missing numbers", of=lambda x: _count(np.isnan(x)))
    yield Statistic(name="zeros", of=lambda x: _count(x == 0))
    for j in _telling(first, second, centres, coordinates):
        yield Statistic(name=f"coordinate {j}", of=lambda x, j=j: x[:, j])  # type: ignore[misc]


def scores(statistic: Statistic, first: FloatArray, second: FloatArray) -> Iterator[TurnedStatistic]:
    """Turn a statistic: rising, falling, and by the ratio of its histograms in both directions.

    ``first`` and ``second`` are its values on the two data sets.
    """
    name, ratio = statistic.name, _histogram_ratio(first, second)
    yield TurnedStatistic(name=name, statistic=statistic, turn=lambda v: _filled(v, -np.inf))
    yield TurnedStatistic(name=f"minus {name}", statistic=statistic, turn=lambda v: _filled(-v, -np.inf))
    yield TurnedStatistic(name=f"histogram of {name}", statistic=statistic, turn=ratio)
    yield TurnedStatistic(name=f"minus histogram of {name}", statistic=statistic, turn=lambda v: -ratio(v))


def thresholds(first: FloatArray, second: FloatArray) -> FloatArray:
    """Levels of a score that are tried: quantiles of both data sets together, dense at the ends."""
    ordered = np.sort(np.concatenate([first, second]))
    tail = 2.0 ** -np.arange(3, 17)
    levels = np.concatenate([np.linspace(0, 1, 101), tail, 1 - tail])
    return np.unique(_at(ordered, levels))


def _histogram_ratio(first: FloatArray, second: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """How much more often a value's bin occurs on the first data set; every atom has a bin of its own."""
    edges = _edges(np.concatenate([first, second]))

    def bins(values: FloatArray) -> npt.NDArray[np.int64]:
        at = np.searchsorted(edges, values, side="right") + np.searchsorted(edges, values, side="left")
        return np.where(np.isnan(values), 2 * len(edges) + 1, at).astype(np.int64)

    counts = [np.bincount(bins(values), minlength=2 * len(edges) + 2) for values in (first, second)]
    ratio = np.log((counts[0] + 0.5) / (counts[1] + 0.5))
    return lambda values: ratio[bins(values)]


def _edges(values: FloatArray) -> FloatArray:
    """Few distinct values: all of them; else quantiles, among which are all heavy atoms."""
    seen = values[~np.isnan(values)]
    distinct = np.unique(seen)
    if len(distinct) <= 4 * BINS:
        return distinct
    return np.unique(_at(np.sort(seen), np.linspace(0, 1, BINS + 1)))


def _at(ordered: FloatArray, levels: FloatArray) -> FloatArray:
    """Quantiles without interpolation: infinite values may be among them."""
    return ordered[np.ceil(levels * (len(ordered) - 1)).astype(np.int64)]


def _telling(first: FloatArray, second: FloatArray, centres: Centres, most: int) -> list[int]:
    """The coordinates that seem to differ most, at most so many of them."""
    moved = np.abs(centres.gap)
    missing = np.abs(np.isnan(first).mean(axis=0) - np.isnan(second).mean(axis=0))
    widened = np.abs(_spread(first) - _spread(second)) / centres.scale
    order = np.argsort(-(moved + missing + widened), kind="stable")
    return sorted(int(j) for j in order[:most])


def _filled(values: FloatArray, missing: float) -> FloatArray:
    return np.asarray(np.where(np.isnan(values), missing, values))


def _total(values: FloatArray) -> FloatArray:
    return np.asarray(np.nansum(values, axis=1))


def _count(holds: npt.NDArray[np.bool_]) -> FloatArray:
    return np.asarray(holds.sum(axis=1), dtype=np.float64)


def _quantiles(outcomes: FloatArray, *levels: float) -> list[FloatArray]:
    """Quantiles of each coordinate over the outcomes that have it; NaN if none has."""
    ordered = np.sort(outcomes, axis=0)  # NaN last
    present = (~np.isnan(outcomes)).sum(axis=0)
    at = [np.clip((level * present).astype(int), 0, np.maximum(present - 1, 0)) for level in levels]
    columns = np.arange(outcomes.shape[1])
    return [np.asarray(ordered[index, columns]) for index in at]


def _median(outcomes: FloatArray) -> FloatArray:
    return _quantiles(outcomes, 0.5)[0]


def _spread(outcomes: FloatArray) -> FloatArray:
    low, high = _quantiles(outcomes, 0.25, 0.75)
    return np.asarray(np.nan_to_num(high - low))


__all__ = ["Centres", "Mixture", "Statistic", "TurnedStatistic", "scores", "statistics", "thresholds"]
