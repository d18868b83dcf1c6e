"""What is made of tables of outcomes: labels of a public source, and a classifier. All post-processing.

Learners are generators: `learn_cells` asks once; `learner.rounds` has
those that ask again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from privada._arrays import FloatArray
from privada.methods.marginals.learner.classifiers.translated import check_classifier
from privada.methods.marginals.learner.fitted import MarginalFit, SyntheticTarget
from privada.methods.marginals.learner.public import EVENNESS, FINE, whitening
from privada.methods.marginals.learner.smoothing import log_odds, process
from privada.methods.marginals.learner.smoothing.counts import NoisyCounts
from privada.methods.marginals.learner.smoothing.log_odds import Cells
from privada.methods.marginals.learner.smoothing.process import Smoothed, mapped
from privada.methods.marginals.questions.outcomes import OutcomeTables
from privada.methods.scaling import PublicScale
from privada.parties.protocol import AskOwner, Learner, one_round, only_releases
from privada.privacy.release import Release

FEW_ROWS = 100  # a cell, on average: beyond it a normal law says all that an exact one does
LEAST_RATIO = 0.15  # no cell's public rows weigh less than this share of an average row


@dataclass(frozen=True, kw_only=True, eq=False)
class Public:
    """What the learner has: unlabelled source rows, the classes, and how it trains.

    Parameters
    ----------
    source : array
    classes : tuple
        Public names of the classes.
    classifier : scikit-learn classifier with ``sample_weight``, optional
        By default a small network.
    seed : int
        Of public randomness only.
    missing : mapping of int to int
        Which feature marks that another one is missing: `missing_marks` of a schema.
    """

    source: FloatArray
    classes: tuple[Any, ...]
    classifier: Any = None
    seed: int = 0
    missing: Mapping[int, int] = field(default_factory=dict)

    @cached_property
    def _scaling(self) -> PublicScale:
        return PublicScale.of(self.source)

    @property
    def mean(self) -> FloatArray:
        """Of the source's columns."""
        return self._scaling.mean

    @property
    def scale(self) -> FloatArray:
        """Deviations of the source's columns, 1 for a constant one."""
        return self._scaling.spread

    def check(self, *, travels: bool = False) -> None:
        """Refuse, before any asking, a classifier that would fail after it, or cannot travel but must."""
        if self.classifier is not None:
            check_classifier(
                self.classifier,
                self.source,
                mean=self.mean,
                scale=self.scale,
                n_classes=len(self.classes),
                travels=travels,
            )

    @property
    def standard(self) -> FloatArray:
        """Source rows by their own mean and spread."""
        return self.standardised(self.source)

    def standardised(self, X: FloatArray) -> FloatArray:
        """Any rows by the source's mean and spread."""
        return self._scaling.standardise(X)

    def measures(self, cells: int) -> FloatArray | None:
        """The map of standardised rows into coordinates whose distances smooth so many cells."""
        return whitening(self.standard, EVENNESS) if cells >= FINE else None

    def trained(self, synthetic: SyntheticTarget) -> Any:
        """The classifier on likeliest labels, weighted by how sure they are."""
        from sklearn.base import clone
        from sklearn.dummy import DummyClassifier

        codes, weights = synthetic.codes, synthetic.margins + 1e-3
        rows = self.standardised(synthetic.X).astype(
            np.float32
        )  # half the time, and far finer than the noise
        if len(np.unique(codes)) < 2:
            return DummyClassifier(strategy="constant", constant=int(codes[0])).fit(rows, codes)
        weights = (weights / weights.mean()).astype(np.float32)
        return clone(self.model()).fit(rows, codes, sample_weight=weights)

    def model(self) -> Any:
        """The hypothesis class."""
        if self.classifier is not None:
            return self.classifier
        from sklearn.neural_network import MLPClassifier

        return MLPClassifier((32, 32), max_iter=40, n_iter_no_change=40, random_state=self.seed)

    def fit(
        self, probabilities: FloatArray, weights: FloatArray, X: FloatArray | None = None, **rest: Any
    ) -> MarginalFit:
        """Train on weighted, labelled public points: the source, and any that come after it in ``X``."""
        import warnings

        from sklearn.exceptions import ConvergenceWarning

        whole = SyntheticTarget(
            X=self.source if X is None else X,
            probabilities=probabilities,
            weights=weights / weights.mean(),
            guarantees=tuple(str(release.guarantee) for release in rest["releases"]),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = self.trained(whole)
        rest["synthetic"] = whole.first(len(self.source))
        return MarginalFit(model=model, mean=self.mean, scale=self.scale, classes=self.classes, **rest)


@one_round
def learn_cells(
    owner: str, question: OutcomeTables, public: Public, *, size: float = 0.0
) -> Learner[MarginalFit]:
    """Ask once for labels over cells, and smooth them."""
    public.check()
    release = yield AskOwner(owner, question)
    return from_cells(question, release, public, size=size)


def from_cells(
    question: OutcomeTables, release: Release, public: Public, *, size: float = 0.0
) -> MarginalFit:
    """Labels and weights of the source from one table of labels over cells.

    A signed table says no number of rows: ``size``, the announced one, is spread as the source is. Where
    cells hold few rows, the linear model's kernel goes on to log-odds and the counts' exact law.
    """
    only_releases(release)
    entries, groups = release[question.names()[0]], question.tables[0].assign(public.source)
    draw = question.plan.lattice(question.names()[0])
    variance = draw.variance
    if question.count == "signed":
        sizes = size * np.bincount(groups, minlength=len(entries)) / len(groups)
        observed, ratio = entries[:, None], np.ones(len(entries))
    else:
        sizes, ratio = cell_sizes(entries, groups, variance)
        observed, variance = against_others(entries), entries.shape[1] * variance
    smoothed = smooth_cells(public, groups, sizes, observed, variance)
    points = public.standard
    if sizes.mean() > FEW_ROWS:
        probabilities, weights = class_probabilities(smoothed(points)), ratio[groups]
    else:
        probabilities, weights = _by_counts(public, points, groups, entries, draw, smoothed, size)
    return public.fit(probabilities, weights, public.source, releases=(release,), smoothed=smoothed)


def _by_counts(
    public: Public,
    points: FloatArray,
    groups: npt.NDArray[np.int64],
    entries: FloatArray,
    draw: Any,
    like: Smoothed,
    size: float,
) -> tuple[FloatArray, FloatArray]:
    """Class probabilities and weights of standardised points, by the exact law of the counts."""
    whole = process.representatives(groups, public.seed, process.WHOLE)
    few = process.representatives(groups[whole], public.seed)
    signed = entries.ndim == 1
    cells = Cells.spread(
        mapped(public.standard, like.coordinates),
        groups,
        len(entries),
        size if signed else entries.sum(),
    ).among(whole)
    if signed:
        counts = NoisyCounts(observed=entries, draw=draw)
        odds = [log_odds.of_differences(cells, counts, like=like, few=few)]
        return _squeezed([each(points) for each in odds]), np.ones(len(points))
    totals, times = entries.sum(axis=1), entries.shape[1]
    ratio = log_odds.log_ratio(
        cells, NoisyCounts(observed=totals, draw=draw, times=times), like=like, few=few
    )
    cells = cells.times(log_odds.ratio_of(ratio(public.standard[whole])[:, 0]))
    odds = []
    for code in range(1 if times == 2 else 0, times):
        mine = NoisyCounts(observed=entries[:, code], draw=draw)
        others = NoisyCounts(observed=totals - entries[:, code], draw=draw, times=times - 1)
        odds.append(log_odds.of_counts(cells, mine, others, like=like, few=few))
    weights = np.maximum(log_odds.ratio_of(ratio(points)[:, 0]), LEAST_RATIO)
    return _squeezed([each(points) for each in odds]), weights


def _squeezed(odds: list[FloatArray]) -> FloatArray:
    """Class probabilities from log-odds of each class, of one alone for two classes."""
    return class_probabilities(2 * expit(np.hstack(odds)) - 1)


def smooth_cells(
    public: Public, groups: npt.NDArray[np.int64], sizes: FloatArray, observed: FloatArray, variance: float
) -> Smoothed:
    """The Gaussian process through cells: compared on some points, solved through nearly all."""
    kept = process.representatives(groups, public.seed)
    whole = process.representatives(groups, public.seed, process.WHOLE)
    return process.smooth(
        public.standard[kept],
        averages(groups[kept], sizes),
        observed,
        released=np.full(len(sizes), variance),
        sampling=np.maximum(sizes, 0.5),
        whole=(public.standard[whole], averages(groups[whole], sizes)),
        coordinates=public.measures(len(sizes)),
    )


def cell_sizes(
    counts: FloatArray, groups: npt.NDArray[np.int64], variance: float
) -> tuple[FloatArray, FloatArray]:
    """Rows of each cell, drawn from the noisy total toward the source's share; and their ratio."""
    totals = counts.sum(axis=1)
    noise = counts.shape[1] * variance
    expected = np.bincount(groups, minlength=len(counts)) / len(groups) * max(float(totals.sum()), 1.0)
    expected = np.maximum(expected, 1e-3)
    moved = np.mean((totals - expected) ** 2 - noise - expected) / np.mean(expected**2)
    prior = max(float(moved), 0.05) * expected**2
    sizes = expected + prior / (prior + noise) * (totals - expected)
    sizes = np.maximum(sizes, LEAST_RATIO * expected)
    return sizes, sizes / expected


def averages(groups: npt.NDArray[np.int64], sizes: FloatArray) -> FloatArray:
    """Design of cell totals: each cell's rows behave like the average of its public points."""
    design = np.zeros((len(sizes), len(groups)))
    held = np.bincount(groups, minlength=len(sizes))
    design[groups, np.arange(len(groups))] = sizes[groups] / held[groups]
    return design


def against_others(counts: FloatArray) -> FloatArray:
    """Each class against the others; one column alone for two classes."""
    if counts.shape[1] == 2:
        return np.asarray(counts[:, 1:] - counts[:, :1])
    return np.asarray(2 * counts - counts.sum(axis=1, keepdims=True))


def class_probabilities(signed: FloatArray) -> FloatArray:
    """Class probabilities from posterior means of 2 P - 1."""
    half = np.clip((1 + signed) / 2, 1e-3, 1 - 1e-3)
    if half.shape[1] == 1:
        return np.hstack([1 - half, half])
    return np.asarray(half / half.sum(axis=1, keepdims=True), dtype=np.float64)


__all__ = ["Public", "from_cells", "learn_cells"]
