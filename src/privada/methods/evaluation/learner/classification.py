"""What a noisy table of outcomes says of a classifier. All post-processing.

Entries are used as they were released, unbiased, so some may be negative; only what is shown as a share is
held between 0 and 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.evaluation.learner import intervals
from privada.methods.evaluation.learner.intervals import CONFIDENCE, Estimate, NoisyCount
from privada.methods.evaluation.questions.outcomes import OutcomeCounts
from privada.parties.protocol import only_releases
from privada.privacy.release import Release


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """What happens if the class is predicted from this score on: two rates."""

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
        What the owner answered; everything here is computed from it.
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
        """What the answer cost."""
        return self.release.guarantee

    @cached_property
    def table(self) -> FloatArray:
        """Noisy counts by true class, prediction and bin of the score."""
        counts = np.asarray(self.release["table"], dtype=np.float64)
        return counts if counts.shape[1] > 1 else self._by_prediction(counts)

    def _by_prediction(self, counts: FloatArray) -> FloatArray:
        """Of two classes: the bins below the threshold predict the first one; other entries do not exist."""
        upper = self._edges >= self.question.threshold
        below = np.concatenate([[True], ~upper])
        return np.stack([counts[:, 0] * below, counts[:, 0] * ~below], axis=1)

    @property
    def _edges(self) -> FloatArray:
        return self.question.edges

    @property
    def _exists(self) -> npt.NDArray[np.bool_]:
        """Which entries of the table were released, the others being 0 for everybody."""
        if self.question.shape[1] > 1:
            return np.ones(self.table.shape, dtype=np.bool_)
        below = np.concatenate([[True], self._edges < self.question.threshold])
        return np.broadcast_to(np.stack([below, ~below])[None], self.table.shape)

    def _count(self, chosen: npt.NDArray[np.bool_]) -> NoisyCount:
        """The sum of some entries."""
        entries = int((self._exists & chosen).sum())
        draw = self.question.plan.lattice("table")
        return NoisyCount(value=float(self.table[chosen].sum()), entries=entries, draw=draw)

    def _chosen(self, **parts: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Entries of some true classes, predictions and bins; all where nothing is said."""
        axes = [
            np.asarray(parts.get(name, np.ones(length)), dtype=np.bool_)
            for name, length in zip(("true", "said", "bins"), self.table.shape, strict=True)
        ]
        return axes[0][:, None, None] & axes[1][None, :, None] & axes[2][None, None, :]

    @cached_property
    def accuracy(self) -> Estimate:
        """Share of rows whose class is predicted."""
        right = np.broadcast_to(np.eye(len(self.classes), dtype=np.bool_)[:, :, None], self.table.shape)
        return intervals.rate(
            self._count(right), self._count(~right), total=self.size, confidence=self.confidence
        )

    @cached_property
    def confusion(self) -> FloatArray:
        """Noisy counts by true class (rows) and prediction (columns)."""
        return np.asarray(self.table.sum(axis=2))

    @cached_property
    def recalls(self) -> tuple[Estimate, ...]:
        """Of each true class: the share that is predicted."""
        return tuple(self._share(true=mine, said=mine, among={"true": mine}) for mine in self._singles())

    @cached_property
    def precisions(self) -> tuple[Estimate, ...]:
        """Of each prediction: the share that is true."""
        return tuple(self._share(true=mine, said=mine, among={"said": mine}) for mine in self._singles())

    def _singles(self) -> npt.NDArray[np.bool_]:
        return np.eye(len(self.classes), dtype=np.bool_)

    def _share(self, *, among: dict[str, npt.ArrayLike], **parts: npt.ArrayLike) -> Estimate:
        """The share of some entries among more of them."""
        hits, whole = self._chosen(**parts), self._chosen(**among)
        return intervals.rate(self._count(hits), self._count(whole & ~hits), confidence=self.confidence)

    @property
    def positive(self) -> int:
        """The class whose score was binned; `InputError` if it was that of the predicted one."""
        if not len(self._edges):
            raise InputError("Scores were not asked for: ask with edges, or with bins above 1.")
        if self.question.n_classes == 2:
            return 1
        if self.question.positive is None:
            raise InputError("A ROC curve of several classes is that of one of them: ask with positive=.")
        return self.question.positive

    @cached_property
    def roc(self) -> tuple[CurvePoint, ...]:
        """Rates at every edge of the bins of scores, from the highest on."""
        mine = self._singles()[self.positive]
        bins = np.arange(len(self._edges) + 1)
        return tuple(
            CurvePoint(
                threshold=float(self._edges[at]),
                false_positives=self._share(true=~mine, bins=bins > at, among={"true": ~mine}),
                true_positives=self._share(true=mine, bins=bins > at, among={"true": mine}),
            )
            for at in range(len(self._edges) - 1, -1, -1)
        )

    @cached_property
    def auc(self) -> Estimate:
        """Area under the ROC curve of the binned score: equal scores, in one bin, count half."""
        mine = self._singles()[self.positive]
        by_bin = self.table.sum(axis=1)
        draw = self.question.plan.lattice("table")
        entries = self._exists.sum(axis=1)
        return _area(
            by_bin[mine].sum(axis=0),
            by_bin[~mine].sum(axis=0),
            noise=draw.variance * np.stack([entries[mine].sum(axis=0), entries[~mine].sum(axis=0)]),
            confidence=self.confidence,
        )

    @cached_property
    def calibration(self) -> tuple[CalibrationBin, ...]:
        """For each bin of scores, how often what the score is of is true."""
        if not len(self._edges):
            raise InputError("Scores were not asked for: ask with edges, or with bins above 1.")
        ends = np.concatenate([[-np.inf], self._edges, [np.inf]])
        found = []
        for at in range(len(ends) - 1):
            whole = self._chosen(bins=np.arange(len(ends) - 1) == at)
            hits = whole & self._meant()
            share = intervals.rate(self._count(hits), self._count(whole & ~hits), confidence=self.confidence)
            rows = self._count(whole).value
            found.append(
                CalibrationBin(low=float(ends[at]), high=float(ends[at + 1]), rows=rows, share=share)
            )
        return tuple(found)

    def _meant(self) -> npt.NDArray[np.bool_]:
        """Entries in which the class is true whose score was binned."""
        if self.question.n_classes == 2 or self.question.positive is not None:
            return self._chosen(true=self._singles()[self.positive])
        return np.broadcast_to(self._singles()[:, :, None], self.table.shape)

    def plot(self) -> Any:
        """A matplotlib figure: confusion matrix and, where scores were asked for, ROC and calibration.

        Needs ``pip install 'privada[plot]'``.
        """
        from privada.methods.evaluation.learner.pictures import draw_classification

        return draw_classification(self)

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
            "recall": {name: each.to_dict() for name, each in zip(names, self.recalls, strict=True)},
            "precision": {name: each.to_dict() for name, each in zip(names, self.precisions, strict=True)},
        }
        if not len(self._edges):
            return plain
        plain["calibration"] = [each.to_dict() for each in self.calibration]
        if self.question.n_classes == 2 or self.question.positive is not None:
            plain |= {"auc": self.auc.to_dict(), "roc": [point.to_dict() for point in self.roc]}
        return plain


def _area(pos: FloatArray, neg: FloatArray, *, noise: FloatArray, confidence: float) -> Estimate:
    """Area under a curve of binned counts; variances of noise (delta method) and of sampling (DeLong)."""
    n_pos, n_neg = max(1.0, float(pos.sum())), max(1.0, float(neg.sum()))
    below = (np.cumsum(neg) - neg / 2) / n_neg  # how many of the others a score of this bin exceeds
    above = 1 - (np.cumsum(pos) - pos / 2) / n_pos
    area = float(pos @ below) / n_pos
    shaken = float(noise[0] @ ((below - area) / n_pos) ** 2 + noise[1] @ ((above - area) / n_neg) ** 2)
    sampled = _spread(pos, below) / n_pos + _spread(neg, above) / n_neg
    return intervals.normal(area, variance=shaken + sampled, low=0.0, high=1.0, confidence=confidence)


def _spread(counts: FloatArray, values: FloatArray) -> float:
    """Variance of values that have noisy counts."""
    weights = np.maximum(counts, 0.0)
    weights = weights / weights.sum() if weights.sum() > 0 else np.full(len(counts), 1 / len(counts))
    mean = float(weights @ values)
    return min(0.25, float(weights @ (values - mean) ** 2))


__all__ = ["CalibrationBin", "Classification", "CurvePoint"]
