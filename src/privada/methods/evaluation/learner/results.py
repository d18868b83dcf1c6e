"""Results of an evaluation, computed from noisy tables and sums. All post-processing.

Entries are used as they were released, unbiased, so some may be negative; only rates are clipped to 0 and 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import BoolArray, FloatArray
from privada.exceptions import InputError
from privada.methods.evaluation.learner import intervals
from privada.methods.evaluation.learner.intervals import CONFIDENCE, Estimate, NoisyCount
from privada.methods.evaluation.questions import ErrorMoments, OutcomeCounts
from privada.methods.forecast import CONFIDENCE as BAND
from privada.methods.forecast import Forecast, say_size
from privada.parties.protocol import AskOwner, Learner, one_round, only_releases
from privada.privacy.relation import Relation
from privada.privacy.release import Release

# Of a forecast: shares of wrong predictions, and squared errors over their bound.
LEAST_WRONG, LEAST_ERROR, MOST_ERROR, POINTS = 0.01, 0.001, 0.25, 41


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """The two rates of errors and hits if the class is predicted from this score on."""

    threshold: float
    false_positives: Estimate
    true_positives: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        return {
            "threshold": self.threshold,
            "false_positives": self.false_positives.to_dict(),
            "true_positives": self.true_positives.to_dict(),
        }


@dataclass(frozen=True, kw_only=True)
class CalibrationBin:
    """How often the class is the true one among rows whose score is between two edges."""

    low: float
    high: float
    rows: float
    share: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        return {"low": self.low, "high": self.high, "rows": self.rows, "share": self.share.to_dict()}


@dataclass(frozen=True, kw_only=True, eq=False)
class Classification:
    """How well a classifier does at an owner.

    Attributes
    ----------
    question : OutcomeCounts
    release : Release
        The owner's answer, from which everything here is computed.
    classes : tuple
        The public names of the classes.
    size : int or None
        The number of rows, where it is public.
    confidence : float
        Of each interval by itself.
    """

    question: OutcomeCounts
    release: Release
    classes: tuple[Any, ...]
    size: int | None = None
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        only_releases(self.release)
        if len(self.classes) != self.question.n_classes:
            raise InputError(f"Expected {self.question.n_classes} classes, got {len(self.classes)}.")

    @property
    def guarantee(self) -> Any:
        """The price of the answer."""
        return self.release.guarantee

    @cached_property
    def table(self) -> FloatArray:
        """Noisy counts by true class, prediction and bin of the score."""
        return np.asarray(self.release["table"], dtype=np.float64) * self._exists

    @cached_property
    def _exists(self) -> BoolArray:
        """Which entries of the table were released; the others are 0 for every data set."""
        if self.question.shape[1] > 1:
            return np.ones(self.question.shape, dtype=np.bool_)
        # For two classes, bins below the threshold predict the first class, the others the second.
        below = np.concatenate([[True], self.question.edges < self.question.threshold])
        return np.broadcast_to(np.stack([below, ~below])[None], (2, 2, len(below)))

    def _select(
        self, *, true: npt.ArrayLike = True, predicted: npt.ArrayLike = True, bins: npt.ArrayLike = True
    ) -> BoolArray:
        """Select entries of some true classes, predictions and bins; all by default."""
        rows, columns, depth = (
            np.broadcast_to(np.asarray(part, dtype=np.bool_), length)
            for part, length in zip((true, predicted, bins), self.table.shape, strict=True)
        )
        return rows[:, None, None] & columns[None, :, None] & depth[None, None, :]

    def _count(self, entries: BoolArray) -> NoisyCount:
        """The sum of some entries, with the noise of those that were released."""
        return NoisyCount(
            value=float(self.table[entries].sum()),
            entries=int((self._exists & entries).sum()),
            draw=self.question.plan.lattice("table"),
        )

    def _rate(self, hits: BoolArray, among: BoolArray | None = None, total: int | None = None) -> Estimate:
        """The share of some entries among others, by default all."""
        misses = ~hits if among is None else among & ~hits
        return intervals.rate(self._count(hits), self._count(misses), total=total, confidence=self.confidence)

    @property
    def _diagonal(self) -> BoolArray:
        """One row for each class, which selects it."""
        return np.eye(len(self.classes), dtype=np.bool_)

    @cached_property
    def accuracy(self) -> Estimate:
        """Share of rows whose class is predicted."""
        return self._rate(np.broadcast_to(self._diagonal[:, :, None], self.table.shape), total=self.size)

    @cached_property
    def confusion(self) -> FloatArray:
        """Noisy counts by true class (rows) and prediction (columns)."""
        return np.asarray(self.table.sum(axis=2))

    @cached_property
    def recalls(self) -> tuple[Estimate, ...]:
        """For each true class, the share of its rows that is predicted."""
        return tuple(
            self._rate(self._select(true=one, predicted=one), self._select(true=one))
            for one in self._diagonal
        )

    @cached_property
    def precisions(self) -> tuple[Estimate, ...]:
        """For each prediction, the share that is true."""
        return tuple(
            self._rate(self._select(true=one, predicted=one), self._select(predicted=one))
            for one in self._diagonal
        )

    @property
    def _has_curve(self) -> bool:
        """Whether the score of one class was binned."""
        return len(self.question.edges) > 0 and (
            self.question.n_classes == 2 or self.question.positive is not None
        )

    @property
    def positive(self) -> int:
        """The class whose score was binned; `InputError` if it was that of the predicted one."""
        if not len(self.question.edges):
            raise InputError("Scores were not asked for: ask with edges, or with bins above 1.")
        if self.question.n_classes == 2:
            return 1
        if self.question.positive is None:
            raise InputError("A ROC curve of several classes is that of one of them: ask with positive=.")
        return self.question.positive

    @cached_property
    def roc(self) -> tuple[CurvePoint, ...]:
        """Rates at every edge of the bins of scores, from the highest on."""
        positive = self._diagonal[self.positive]
        edges, bins = self.question.edges, np.arange(len(self.question.edges) + 1)
        points = []
        for i in range(len(edges) - 1, -1, -1):
            false, true = (
                self._rate(self._select(true=side, bins=bins > i), self._select(true=side))
                for side in (~positive, positive)
            )
            points.append(CurvePoint(threshold=float(edges[i]), false_positives=false, true_positives=true))
        return tuple(points)

    @cached_property
    def auc(self) -> Estimate:
        """Area under the ROC curve of the binned score: equal scores, in one bin, count half."""
        positive = self._diagonal[self.positive]
        by_bin, entries = self.table.sum(axis=1), self._exists.sum(axis=1)
        sides = (positive, ~positive)
        pos, neg = (by_bin[side].sum(axis=0) for side in sides)
        pos_noise, neg_noise = (
            self.question.plan.lattice("table").variance * entries[side].sum(axis=0) for side in sides
        )
        n_pos, n_neg = max(1.0, float(pos.sum())), max(1.0, float(neg.sum()))
        below = (np.cumsum(neg) - neg / 2) / n_neg  # the share of the others that a score of this bin exceeds
        above = 1 - (np.cumsum(pos) - pos / 2) / n_pos
        area = float(pos @ below) / n_pos
        # Variances of noise by the delta method, of sampling as DeLong's.
        noise = float(pos_noise @ ((below - area) / n_pos) ** 2 + neg_noise @ ((above - area) / n_neg) ** 2)
        sampling = _weighted_variance(pos, below) / n_pos + _weighted_variance(neg, above) / n_neg
        return intervals.normal(
            area, variance=noise + sampling, low=0.0, high=1.0, confidence=self.confidence
        )

    @cached_property
    def calibration(self) -> tuple[CalibrationBin, ...]:
        """For each bin of scores, how often the class that is scored is the true one."""
        if not len(self.question.edges):
            raise InputError("Scores were not asked for: ask with edges, or with bins above 1.")
        if self._has_curve:
            hits = self._select(true=self._diagonal[self.positive])
        else:  # the score is that of the predicted class
            hits = np.broadcast_to(self._diagonal[:, :, None], self.table.shape)
        ends = np.concatenate([[-np.inf], self.question.edges, [np.inf]])
        bins = []
        for i in range(len(ends) - 1):
            inside = self._select(bins=np.arange(len(ends) - 1) == i)
            bins.append(
                CalibrationBin(
                    low=float(ends[i]),
                    high=float(ends[i + 1]),
                    rows=self._count(inside).value,
                    share=self._rate(inside & hits, inside),
                )
            )
        return tuple(bins)

    def plot(self) -> Any:
        """A matplotlib figure: confusion matrix and, where scores were asked for, ROC and calibration.

        Needs ``pip install 'privada[plot]'``.
        """
        from privada import _plot

        binned = len(self.question.edges) > 0
        figure, panels = _plot.new_figure(1 + binned + self._has_curve)
        names = [str(name) for name in self.classes]
        _plot.draw_table(panels[0], self.confusion, rows=names, columns=names)
        _plot.name_axes(panels[0], title="rows by class (noisy counts)", x="predicted", y="true")
        if self._has_curve:
            _draw_curve(panels[1], self)
        if binned:
            _draw_calibration(panels[-1], self)
        stamps = "".join(f"  [{stamp}]" for stamp in self.release.stamps)
        title = f"accuracy {self.accuracy}; {self.release.guarantee}{stamps}"
        figure.suptitle(title, color=_plot.INK, fontsize=11, x=0.02, ha="left", parse_math=False)
        return figure

    def to_dict(self) -> dict[str, Any]:
        """Plain form for reports."""
        names = [str(name) for name in self.classes]
        plain: dict[str, Any] = {
            "guarantee": str(self.release.guarantee),
            "stamps": list(self.release.stamps),
            "accuracy": self.accuracy.to_dict(),
            "confusion": {
                true: dict(zip(names, row, strict=True))
                for true, row in zip(names, self.confusion.tolist(), strict=True)
            },
            "recall": {name: share.to_dict() for name, share in zip(names, self.recalls, strict=True)},
            "precision": {name: share.to_dict() for name, share in zip(names, self.precisions, strict=True)},
        }
        if len(self.question.edges):
            plain["calibration"] = [part.to_dict() for part in self.calibration]
        if self._has_curve:
            plain |= {"auc": self.auc.to_dict(), "roc": [point.to_dict() for point in self.roc]}
        return plain


def _weighted_variance(counts: FloatArray, values: FloatArray) -> float:
    """Variance of values that have noisy counts."""
    weights = np.maximum(counts, 0.0)
    weights = weights / weights.sum() if weights.sum() > 0 else np.full(len(counts), 1 / len(counts))
    mean = float(weights @ values)
    return min(0.25, float(weights @ (values - mean) ** 2))


def _draw_curve(axes: Any, result: Classification) -> None:
    """Draw the ROC curve, and for each point the rectangle of its two intervals."""
    from matplotlib.patches import Rectangle

    from privada import _plot

    points = [(point.false_positives, point.true_positives) for point in result.roc]
    for across, up in points:
        corner, size = (across.low, up.low), (across.high - across.low, up.high - up.low)
        axes.add_patch(Rectangle(corner, *size, color=_plot.ACCENT, alpha=0.12, linewidth=0))
    x = [0.0, *(across.value for across, _ in points), 1.0]
    y = [0.0, *(up.value for _, up in points), 1.0]
    axes.plot([0, 1], [0, 1], color=_plot.LINE, linewidth=1.5, zorder=0)
    axes.plot(x, y, "o-", color=_plot.ACCENT, markersize=4, linewidth=1.5)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    title = f"ROC of {result.classes[result.positive]}: area {result.auc.value:.3f}"
    _plot.name_axes(axes, title=title, x="false positives", y="true positives")


def _draw_calibration(axes: Any, result: Classification) -> None:
    """Draw the share that is true for each bin of scores."""
    from privada import _plot

    # From 0 to 1, or a little beyond the edges if these are elsewhere.
    edges, bins = result.question.edges, result.calibration
    low, high = min(0.0, float(edges[0]) - 0.1), max(1.0, float(edges[-1]) + 0.1)
    ends = np.clip([(part.low, part.high) for part in bins], low, high)
    shares = np.array([(part.share.value, part.share.low, part.share.high) for part in bins])
    axes.plot([0, 1], [0, 1], color=_plot.LINE, linewidth=1.5, zorder=0)
    axes.hlines(shares[:, 0], ends[:, 0], ends[:, 1], color=_plot.ACCENT, alpha=0.35, linewidth=1.5)
    _plot.draw_intervals(axes, ends.mean(axis=1), shares[:, 0], shares[:, 1], shares[:, 2])
    axes.set_ylim(-0.02, 1.02)
    _plot.name_axes(axes, title="calibration", x="score", y="share that is true")


@dataclass(frozen=True, kw_only=True, eq=False)
class Regression:
    """How well a regressor does at an owner.

    Attributes
    ----------
    question : ErrorMoments
    release : Release
    size : int or None
        The number of rows, where it is public: needed under replace-one.
    confidence : float
        Of each interval by itself.
    """

    question: ErrorMoments
    release: Release
    size: int | None = None
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        only_releases(self.release)
        if self.size is None and not self.question.counts_rows:
            raise InputError("Expected size, which is public under replace-one: rows were not counted.")

    @property
    def guarantee(self) -> Any:
        """The price of the answer."""
        return self.release.guarantee

    @property
    def rows(self) -> float:
        """The number of rows: the public one, or an estimate that is at least 1."""
        return float(self.size) if self.size is not None else max(1.0, float(self.release["rows"][0]))

    @cached_property
    def squared_error(self) -> Estimate:
        """Mean squared error, each error clipped to the public bound."""
        plan, rows = self.question.plan, self.rows
        mean = float(self.release["errors"][0]) / rows
        inside = min(1.0, max(0.0, mean))
        square = float(self.release["squares"][0]) / rows
        spread = min(0.25, max(0.0, square - inside**2), inside * (1 - inside))
        noise = plan.lattice("errors").variance
        if self.size is None:
            noise += inside**2 * plan.lattice("rows").variance
        share = intervals.normal(
            mean, variance=spread / rows + noise / rows**2, low=0.0, high=1.0, confidence=self.confidence
        )
        value, low, high = (end * self.question.largest for end in (share.value, share.low, share.high))
        return Estimate(value=value, low=low, high=high, confidence=self.confidence)

    @property
    def root(self) -> Estimate:
        """Root of the mean squared error, in the label's units."""
        square = self.squared_error
        value, low, high = (math.sqrt(end) for end in (square.value, square.low, square.high))
        return Estimate(value=value, low=low, high=high, confidence=self.confidence)

    def to_dict(self) -> dict[str, Any]:
        """Plain form for reports."""
        return {
            "guarantee": str(self.release.guarantee),
            "stamps": list(self.release.stamps),
            "squared_error": self.squared_error.to_dict(),
            "root_squared_error": self.root.to_dict(),
            "rows": self.rows,
        }


Evaluation = Classification | Regression


@one_round
def learn(
    owner: str,
    question: OutcomeCounts | ErrorMoments,
    *,
    classes: tuple[Any, ...] = (),
    size: int | None = None,
    confidence: float = CONFIDENCE,
) -> Learner[Evaluation]:
    """Ask one owner once.

    Parameters
    ----------
    owner : str
    question : OutcomeCounts or ErrorMoments
    classes : tuple, default=()
        Public names of the classes; by default their codes.
    size : int, optional
        The declared number of rows. It is used where it is the true one, under replace-one.
    confidence : float, default=0.95
        Of every interval.
    """
    _check.probability(confidence=confidence)
    release = yield AskOwner(owner, question)
    return read_release(question, release, classes=classes, size=size, confidence=confidence)


def read_release(
    question: OutcomeCounts | ErrorMoments,
    release: Release,
    *,
    classes: tuple[Any, ...] = (),
    size: int | None = None,
    confidence: float = CONFIDENCE,
) -> Evaluation:
    """Read a release as an evaluation."""
    if not isinstance(question, (OutcomeCounts, ErrorMoments)):
        raise InputError(f"Expected a question of evaluation, got {type(question).__name__}.")
    exact = size if question.guarantee.relation is not Relation.ADD_REMOVE else None
    if isinstance(question, ErrorMoments):
        return Regression(question=question, release=release, size=exact, confidence=confidence)
    return Classification(
        question=question,
        release=release,
        classes=tuple(classes) or tuple(range(question.n_classes)),
        size=exact,
        confidence=confidence,
    )


def forecast_interval(
    question: OutcomeCounts | ErrorMoments, *, size: int | None, confidence: float = CONFIDENCE
) -> Forecast:
    """Expected half-width of the accuracy's interval, or of the squared error's over its bound.

    The noise and the number of rows are public, so the interval can be computed for every true accuracy.
    Nobody knows the true one beforehand. Models that are evaluated are mostly good, so the share of wrong
    predictions is taken to lie anywhere between 1 % and chance, evenly in its logarithm.

    Parameters
    ----------
    question : OutcomeCounts or ErrorMoments
    size : int or None
        Announced number of rows.
    confidence : float, default=0.95
        Of the interval.
    """
    rows, words = say_size(size)
    if isinstance(question, ErrorMoments):
        # The interval of a mean of errors that are spread as an exponential law's.
        expected, plan = [], question.plan
        for error in np.geomspace(LEAST_ERROR, MOST_ERROR, POINTS):
            noise = plan.lattice("errors").variance
            if question.counts_rows:
                noise += error**2 * plan.lattice("rows").variance
            variance = min(error**2, error * (1 - error)) / rows + noise / rows**2
            expected.append(
                intervals.normal(error, variance=variance, low=0.0, high=1.0, confidence=confidence)
            )
        measure = "half the width of the squared error's interval, over its bound"
    else:
        # The interval where the noise happens to be 0.
        public = size if question.guarantee.relation is not Relation.ADD_REMOVE else None
        classes, predictions, bins = question.shape
        draw, entries = question.plan.lattice("table"), math.prod(question.shape)
        right = classes * bins if predictions > 1 else bins
        expected = []
        for wrong in np.geomspace(LEAST_WRONG, 1 - 1 / question.n_classes, POINTS):
            hits = NoisyCount(value=(1 - wrong) * rows, entries=right, draw=draw)
            misses = NoisyCount(value=(1 - (1 - wrong)) * rows, entries=entries - right, draw=draw)
            expected.append(intervals.rate(hits, misses, total=public, confidence=confidence))
        measure = "half the width of the accuracy's interval"
    halves = [(estimate.high - estimate.low) / 2 for estimate in expected]
    low, middle, high = np.quantile(halves, [(1 - BAND) / 2, 0.5, (1 + BAND) / 2])
    return Forecast(
        ratio=float(middle),
        low=float(low),
        high=float(high),
        measure=f"{measure} ({confidence:.0%}), {words}",
        nothing=0.5,  # from 0 to 1, without asking
    )


__all__ = [
    "CalibrationBin",
    "Classification",
    "CurvePoint",
    "Evaluation",
    "Regression",
    "forecast_interval",
    "learn",
    "read_release",
]
