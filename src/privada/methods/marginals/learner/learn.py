"""Labels of a public source, and a classifier, from one noisy table of labels over cells.

All of it is post-processing. `learn_cells` asks once; `learner.rounds` has the learner that asks again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.methods.hypotheses.forms import Constant
from privada.methods.marginals.learner import public as public_cells
from privada.methods.marginals.learner import smoothing
from privada.methods.marginals.learner.classifiers import check_classifier
from privada.methods.marginals.learner.fitted import MarginalFit, SyntheticTarget
from privada.methods.marginals.learner.public import EVENNESS, FINE, whitening
from privada.methods.marginals.learner.smoothing import Cells, NoisyCounts, Smoothed
from privada.methods.marginals.questions import OutcomeTables
from privada.methods.scaling import PublicScale
from privada.parties.protocol import AskOwner, Learner, one_round, only_releases
from privada.privacy.guarantee import Guarantee
from privada.privacy.release import Release

FEW_ROWS = 100  # a cell, on average: beyond it a normal law is as good as the exact one
LEAST_RATIO = 0.15  # no cell's public rows weigh less than this share of an average row


@dataclass(frozen=True, kw_only=True, eq=False)
class Public:
    """The learner's own side: unlabelled source rows, the classes, and the model that it trains.

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
        """Refuse, before anything is asked, a classifier that would fail later, or cannot travel but must."""
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

    def train(self, synthetic: SyntheticTarget) -> Any:
        """Train the classifier on likeliest labels, weighted by how sure they are."""
        from sklearn.base import clone
        from sklearn.dummy import DummyClassifier

        codes, weights = synthetic.codes, synthetic.margins + 1e-3
        # Single precision takes half the time, and is far finer than the noise.
        rows = self.standardised(synthetic.X).astype(np.float32)
        if len(np.unique(codes)) < 2:
            return DummyClassifier(strategy="constant", constant=int(codes[0])).fit(rows, codes)
        weights = (weights / weights.mean()).astype(np.float32)
        if self.classifier is not None:
            return clone(self.classifier).fit(rows, codes, sample_weight=weights)
        from sklearn.neural_network import MLPClassifier

        network = MLPClassifier((32, 32), max_iter=40, n_iter_no_change=40, random_state=self.seed)
        return network.fit(rows, codes, sample_weight=weights)

    def fit(
        self, probabilities: FloatArray, weights: FloatArray, X: FloatArray | None = None, **rest: Any
    ) -> MarginalFit:
        """Train on weighted, labelled public points: the source, and any that follow it in ``X``."""
        import warnings

        from sklearn.exceptions import ConvergenceWarning

        synthetic = SyntheticTarget(
            X=self.source if X is None else X,
            probabilities=probabilities,
            weights=weights / weights.mean(),
            guarantees=tuple(str(release.guarantee) for release in rest["releases"]),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = self.train(synthetic)
        rest["synthetic"] = synthetic.first(len(self.source))
        return MarginalFit(model=model, mean=self.mean, scale=self.scale, classes=self.classes, **rest)


def default_cells(
    source: FloatArray,
    *,
    guarantee: Guarantee,
    size: int,
    n_classes: int,
    seed: int,
    cells: int | None = None,
    reweight: bool = True,
) -> OutcomeTables:
    """One round of labels over cells, whose noise does not grow with the features.

    Where the domains agree (``reweight=False``) and there are two classes, one signed number is asked for
    each cell, not two counts: the expected rows of a cell are public then, and the noise on the difference
    of the classes is 1/√2 of what it would be.
    """
    signed = n_classes == 2 and not reweight
    if cells is None:
        # The noise of one class against the others.
        noise = public_cells.noise_of(guarantee, 1, signed=signed) * (1 if signed else math.sqrt(n_classes))
        cells = public_cells.cell_count(size=size, n_source=len(source), noise=noise)
    count = min(_check.count(least=2, cells=cells), len(np.unique(source, axis=0)))
    return OutcomeTables(
        tables=(public_cells.cells(source, count, seed),),
        n_classes=n_classes,
        count="signed" if signed else "labels",
        hypothesis=Constant(code=0) if signed else None,
        guarantee=guarantee,
    )


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

    A signed table has no number of rows: ``size``, the announced one, is spread as the source is. Where
    cells hold few rows, the linear model's kernel is used for log-odds and the counts' exact law.
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
        probabilities, weights = _label_by_counts(public, points, groups, entries, draw, smoothed, size)
    return public.fit(probabilities, weights, public.source, releases=(release,), smoothed=smoothed)


def _label_by_counts(
    public: Public,
    points: FloatArray,
    groups: IntArray,
    entries: FloatArray,
    draw: Any,
    like: Smoothed,
    size: float,
) -> tuple[FloatArray, FloatArray]:
    """Class probabilities and weights of standardised points, by the exact law of the counts."""
    most = smoothing.representatives(groups, public.seed, smoothing.ALL_POINTS)
    few = smoothing.representatives(groups[most], public.seed)
    signed = entries.ndim == 1
    cells = Cells.spread(
        smoothing.transform(public.standard, like.coordinates),
        groups,
        len(entries),
        size if signed else entries.sum(),
    ).among(most)
    if signed:
        counts = NoisyCounts(observed=entries, draw=draw)
        odds = smoothing.log_odds_of_differences(cells, counts, like=like, few=few)(points)
        return class_probabilities(2 * expit(odds) - 1), np.ones(len(points))
    totals, times = entries.sum(axis=1), entries.shape[1]
    counts = NoisyCounts(observed=totals, draw=draw, times=times)
    ratio = smoothing.log_ratio(cells, counts, like=like, few=few)
    cells = cells.times(smoothing.ratio_of(ratio(public.standard[most])[:, 0]))
    columns = []
    for code in range(1 if times == 2 else 0, times):  # of two classes, the second tells both
        counts = NoisyCounts(observed=entries[:, code], draw=draw)
        others = NoisyCounts(observed=totals - entries[:, code], draw=draw, times=times - 1)
        columns.append(smoothing.log_odds_of_counts(cells, counts, others, like=like, few=few)(points))
    weights = np.maximum(smoothing.ratio_of(ratio(points)[:, 0]), LEAST_RATIO)
    return class_probabilities(2 * expit(np.hstack(columns)) - 1), weights


def smooth_cells(
    public: Public, groups: IntArray, sizes: FloatArray, observed: FloatArray, variance: float
) -> Smoothed:
    """The Gaussian process through cells: compared on some points, solved through nearly all."""
    few = smoothing.representatives(groups, public.seed)
    most = smoothing.representatives(groups, public.seed, smoothing.ALL_POINTS)
    return smoothing.smooth(
        public.standard[few],
        average_design(groups[few], sizes),
        observed,
        released=np.full(len(sizes), variance),
        sampling=np.maximum(sizes, 0.5),
        further=(public.standard[most], average_design(groups[most], sizes)),
        coordinates=public.measures(len(sizes)),
    )


def cell_sizes(counts: FloatArray, groups: IntArray, variance: float) -> tuple[FloatArray, FloatArray]:
    """Rows of each cell, shrunk from the noisy total toward the source's share; and their ratio."""
    totals = counts.sum(axis=1)
    noise = counts.shape[1] * variance
    expected = np.bincount(groups, minlength=len(counts)) / len(groups) * max(float(totals.sum()), 1.0)
    expected = np.maximum(expected, 1e-3)
    shift = np.mean((totals - expected) ** 2 - noise - expected) / np.mean(expected**2)
    prior = max(float(shift), 0.05) * expected**2
    sizes = expected + prior / (prior + noise) * (totals - expected)
    sizes = np.maximum(sizes, LEAST_RATIO * expected)
    return sizes, sizes / expected


def average_design(groups: IntArray, sizes: FloatArray) -> FloatArray:
    """Design of cell totals: the rows of a cell behave like the average of its public points."""
    design = np.zeros((len(sizes), len(groups)))
    points = np.bincount(groups, minlength=len(sizes))
    design[groups, np.arange(len(groups))] = sizes[groups] / points[groups]
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


__all__ = ["Public", "default_cells", "from_cells", "learn_cells"]
