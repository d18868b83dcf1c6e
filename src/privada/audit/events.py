"""Where two output distributions may differ: statistics of an outcome, events made of them, and their bounds.

A *statistic* is one number per outcome. A *score* turns it into something
whose large values are suspicious: the number itself, its opposite, or how much
more often its histogram bin occurs on one data set than on the other. An
*event* is "the score is at least t".

Statistics are fitted on a first part of the outcomes and compared on a second,
so that a histogram that remembers its own outcomes is not preferred to one that
tells the data sets apart. Which event is chosen has no influence on the validity of a
bound from other outcomes, only on how good it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada.exceptions import InputError

LEAST_OUTCOMES = 40
MOST_COORDINATES = 32
BINS = 48
CAUTION = 0.05  # events are compared by bounds of a smaller error, since the best of many flatters


@dataclass(frozen=True, kw_only=True)
class Point:
    """The claim "(ε, δ)-private"; ``first`` marks the point that the guarantee itself names."""

    epsilon: float
    delta: float
    first: bool = False

    @property
    def claimed(self) -> float:
        """What a bound must not exceed."""
        return self.epsilon

    def bounds(self, lows: FloatArray, highs: FloatArray) -> FloatArray:
        """Compute lower bounds on ε at δ, from bounds on the two probabilities of events."""
        return np.log(np.maximum(lows - self.delta, 1e-300) / highs)


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The claim "μ-Gaussian private": all points of a Gaussian profile at once."""

    mu: float

    @property
    def claimed(self) -> float:
        """What a bound must not exceed."""
        return self.mu

    def bounds(self, lows: FloatArray, highs: FloatArray) -> FloatArray:
        """Compute lower bounds on μ, from bounds on the two probabilities of events."""
        from scipy.special import ndtri

        return ndtri(np.maximum(lows, 1e-300)) - ndtri(np.minimum(highs, 1 - 1e-16))


Claim = Point | Curve


@dataclass(frozen=True, kw_only=True, eq=False)
class Statistic:
    """A named number of each outcome (outcomes are rows; missing coordinates are NaN)."""

    name: str
    of: Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, kw_only=True, eq=False)
class TurnedStatistic:
    """A statistic that is turned so that large values are evidence for one data set."""

    name: str
    statistic: Statistic
    turn: Callable[[FloatArray], FloatArray]

    def of(self, outcomes: FloatArray) -> FloatArray:
        """Compute the score of each outcome."""
        return self.turn(self.statistic.of(outcomes))


@dataclass(frozen=True, kw_only=True, eq=False)
class Centres:
    """Where the outcomes of the two data sets lie, coordinate by coordinate, and how widely they spread.

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
        medians = _quantiles(first, 0.5)[0], _quantiles(second, 0.5)[0]
        centres = medians if exact is None else exact
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
        """Compute the logarithm of the densities' ratio, the second data set's over the first's."""
        rows = outcomes[:, self.at].reshape(-1, self.width)
        gain = self._log_density(rows, self.second) - self._log_density(rows, self.first)
        return np.asarray(np.nan_to_num(gain).reshape(len(outcomes), -1).sum(axis=1))

    def _log_density(self, rows: FloatArray, centres: FloatArray) -> FloatArray:
        from scipy.special import logsumexp

        distinct, counts = np.unique(centres, axis=0, return_counts=True)
        nearness = rows @ distinct.T - np.square(distinct).sum(axis=1) / 2  # |row|² cancels in a ratio
        return logsumexp(nearness / self.scale**2 + np.log(counts / len(centres)), axis=1)


@dataclass(frozen=True, eq=False, repr=False)
class Outcomes:
    """Outcomes of D and of D', one per row, and the exact values if they are known."""

    first: FloatArray
    second: FloatArray
    exact: tuple[FloatArray, FloatArray] | None = None
    mixture: Mixture | None = None

    @classmethod
    def of(
        cls,
        first: npt.ArrayLike,
        second: npt.ArrayLike,
        *,
        exact: tuple[FloatArray, FloatArray] | None = None,
        resolution: float | None = None,
    ) -> Outcomes:
        """Make matrices of one width; missing numbers of an outcome are NaN."""
        sides = []
        for outcomes in (first, second):
            array = np.asarray(outcomes, dtype=np.float64)
            array = array.reshape(len(array), int(np.prod(array.shape[1:])))
            sides.append(array if resolution is None else np.round(array / resolution) * resolution)
        if len(sides[0]) != len(sides[1]) or len(sides[0]) < LEAST_OUTCOMES:
            raise InputError(f"Expected as many outcomes of both data sets, at least {LEAST_OUTCOMES} each.")
        width = max(side.shape[1] for side in sides)
        centres = None if exact is None else (pad(exact[0][None], width)[0], pad(exact[1][None], width)[0])
        return cls(pad(sides[0], width), pad(sides[1], width), centres)

    def halves(self) -> tuple[Outcomes, Outcomes]:
        """Split them into two independent halves."""
        middle = len(self.first) // 2
        early, late = slice(0, middle), slice(middle, 2 * middle)
        return (
            replace(self, first=self.first[early], second=self.second[early]),
            replace(self, first=self.first[late], second=self.second[late]),
        )


def pad(outcomes: FloatArray, width: int) -> FloatArray:
    """Fill outcomes with NaN up to a width."""
    return np.pad(outcomes, ((0, 0), (0, width - outcomes.shape[1])), constant_values=np.nan)


def statistics(
    first: FloatArray,
    second: FloatArray,
    centres: Centres,
    mixture: Mixture | None = None,
    coordinates: int = MOST_COORDINATES,
) -> Iterator[Statistic]:
    """Yield every statistic that is tried on outcomes of two data sets."""
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
    # The coordinates that seem to differ most: by their medians, how often they are missing, or their spread
    missing = np.abs(np.isnan(first).mean(axis=0) - np.isnan(second).mean(axis=0))
    widened = np.abs(_spread(first) - _spread(second)) / scale
    order = np.argsort(-(np.abs(gap) + missing + widened), kind="stable")
    for j in sorted(order[:coordinates].tolist()):
        yield Statistic(name=f"coordinate {j}", of=lambda x, j=j: x[:, j])  # type: ignore[misc]


def scores(statistic: Statistic, first: FloatArray, second: FloatArray) -> Iterator[TurnedStatistic]:
    """Yield the scores of a statistic: rising, falling, and the ratio of its histograms in both directions.

    ``first`` and ``second`` are its values on the two data sets.
    """
    values = np.concatenate([first, second])
    values = np.sort(values[~np.isnan(values)])
    edges = np.unique(values)
    # Few distinct values are all edges; otherwise quantiles are, among which all heavy atoms are
    if len(edges) > 4 * BINS:
        edges = np.unique(_pick_quantiles(values, np.linspace(0, 1, BINS + 1)))

    def find_bins(values: FloatArray) -> npt.NDArray[np.int64]:
        # An edge is a bin of its own, and so are missing values
        bins = np.searchsorted(edges, values, side="right") + np.searchsorted(edges, values, side="left")
        return np.where(np.isnan(values), 2 * len(edges) + 1, bins).astype(np.int64)

    counts = [np.bincount(find_bins(side), minlength=2 * len(edges) + 2) for side in (first, second)]
    ratios = np.log((counts[0] + 0.5) / (counts[1] + 0.5))

    def ratio(values: FloatArray) -> FloatArray:
        return ratios[find_bins(values)]

    name = statistic.name
    yield TurnedStatistic(name=name, statistic=statistic, turn=lambda v: _filled(v, -np.inf))
    yield TurnedStatistic(name=f"minus {name}", statistic=statistic, turn=lambda v: _filled(-v, -np.inf))
    yield TurnedStatistic(name=f"histogram of {name}", statistic=statistic, turn=ratio)
    yield TurnedStatistic(name=f"minus histogram of {name}", statistic=statistic, turn=lambda v: -ratio(v))


def thresholds(first: FloatArray, second: FloatArray) -> FloatArray:
    """Choose the levels of a score to try: quantiles of both data sets together, dense at the ends."""
    ordered = np.sort(np.concatenate([first, second]))
    tail = 2.0 ** -np.arange(3, 17)
    levels = np.concatenate([np.linspace(0, 1, 101), tail, 1 - tail])
    return np.unique(_pick_quantiles(ordered, levels))


def _pick_quantiles(ordered: FloatArray, levels: FloatArray) -> FloatArray:
    """Take quantiles without interpolation: infinite values may be among them."""
    return ordered[np.ceil(levels * (len(ordered) - 1)).astype(np.int64)]


def _filled(values: FloatArray, missing: float) -> FloatArray:
    return np.asarray(np.where(np.isnan(values), missing, values))


def _total(values: FloatArray) -> FloatArray:
    return np.asarray(np.nansum(values, axis=1))


def _count(holds: npt.NDArray[np.bool_]) -> FloatArray:
    return np.asarray(holds.sum(axis=1), dtype=np.float64)


def _quantiles(outcomes: FloatArray, *levels: float) -> list[FloatArray]:
    """Compute quantiles of each coordinate over the outcomes that have it; NaN if none has."""
    ordered = np.sort(outcomes, axis=0)  # NaN last
    present = (~np.isnan(outcomes)).sum(axis=0)
    at = [np.clip((level * present).astype(int), 0, np.maximum(present - 1, 0)) for level in levels]
    columns = np.arange(outcomes.shape[1])
    return [np.asarray(ordered[index, columns]) for index in at]


def _spread(outcomes: FloatArray) -> FloatArray:
    low, high = _quantiles(outcomes, 0.25, 0.75)
    return np.asarray(np.nan_to_num(high - low))


@dataclass(frozen=True, kw_only=True, eq=False)
class Guess:
    """An event, and the part of the claim that it tries."""

    score: TurnedStatistic
    threshold: float
    direction: int
    claim: Claim
    bound: float  # by the outcomes on which it was chosen

    @property
    def rank(self) -> tuple[bool, float]:
        """The size of a violation if there is one; otherwise how tight the claim is."""
        excess = self.bound - self.claim.claimed
        if excess > 0:
            return True, excess
        is_secondary = isinstance(self.claim, Point) and not self.claim.first
        return False, -math.inf if is_secondary else self.bound


def guess_events(
    outcomes: Outcomes, claims: tuple[Claim, ...], error: float, *, coordinates: int = MOST_COORDINATES
) -> list[Guess]:
    """Choose the best event of each direction, for points and for a curve."""
    best: dict[tuple[int, type[Claim]], Guess] = {}
    fitted, compared = outcomes.halves()
    lows, highs = clopper_pearson(len(compared.first), error * CAUTION / 4)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        centres = Centres.of(fitted.first, fitted.second, fitted.exact)
        for statistic in statistics(fitted.first, fitted.second, centres, fitted.mixture, coordinates):
            values = statistic.of(compared.first), statistic.of(compared.second)
            for score in scores(statistic, statistic.of(fitted.first), statistic.of(fitted.second)):
                turned = [score.turn(side) for side in values]
                levels = thresholds(*turned)
                # How many outcomes reach each level, on either data set
                counts = [len(side) - np.searchsorted(np.sort(side), levels, side="left") for side in turned]
                for direction, claim in product((0, 1), claims):
                    bounds = claim.bounds(lows[counts[direction]], highs[counts[1 - direction]])
                    top = int(np.argmax(bounds))
                    level, bound = float(levels[top]), float(bounds[top])
                    guess = Guess(score=score, threshold=level, direction=direction, claim=claim, bound=bound)
                    kind = direction, type(claim)
                    if kind not in best or guess.rank > best[kind].rank:
                        best[kind] = guess
    return list(best.values())


def bound_event(guess: Guess, outcomes: Outcomes, error: float) -> float:
    """Bound a claim by a chosen event and other outcomes; half of ``error`` is this direction's."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        sides = [guess.score.of(side) >= guess.threshold for side in (outcomes.first, outcomes.second)]
        counts = [int(np.sum(side)) for side in sides]
        lows, highs = clopper_pearson(len(outcomes.first), error / 4)
        bounds = guess.claim.bounds(lows[[counts[guess.direction]]], highs[[counts[1 - guess.direction]]])
    return float(bounds[0])


@lru_cache(maxsize=16)
def clopper_pearson(n: int, error: float) -> tuple[FloatArray, FloatArray]:
    """Compute one-sided exact bounds on a probability for every count from 0 to ``n``, each with this error.

    >>> lows, highs = clopper_pearson(100, 0.025)
    >>> f"{lows[10]:.4f} {highs[10]:.4f}"
    '0.0490 0.1762'
    """
    from scipy.special import betaincinv

    k = np.arange(n + 1)
    lows, highs = np.zeros(n + 1), np.ones(n + 1)
    lows[1:] = betaincinv(k[1:], n - k[1:] + 1.0, error)
    highs[:-1] = betaincinv(k[:-1] + 1.0, n - k[:-1], 1 - error)
    return lows, highs
