"""What is made of tables of outcomes: labels of a public source, and a classifier. All post-processing.

Learners are generators: `learn_cells` and `learn_embedding` ask once, `learn_rounds` asks as
often as was planned, or stops early, which is free because it looks at releases only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.methods.cells.partition import Partition
from privada.methods.marginals import smoothing
from privada.methods.marginals.fitted import MarginalFit, SyntheticTarget
from privada.methods.marginals.hypothesis import Constant, Hypothesis, of_classifier
from privada.methods.marginals.question import OutcomeTables
from privada.methods.marginals.question_features import FeatureSums, fourier
from privada.methods.marginals.smoothing import Smoothed
from privada.methods.marginals.weights import importance, labels
from privada.parties.protocol import Ask, Learner, only_releases
from privada.privacy.mechanism import KNorm, Lattice, Mechanism
from privada.privacy.release import Release

FloatArray = npt.NDArray[np.float64]
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
    """

    source: FloatArray
    classes: tuple[Any, ...]
    classifier: Any = None
    seed: int = 0
    mean: FloatArray = field(init=False)
    scale: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        spread = self.source.std(axis=0)
        object.__setattr__(self, "mean", self.source.mean(axis=0))
        object.__setattr__(self, "scale", np.where(spread > 0, spread, 1.0))

    @property
    def standard(self) -> FloatArray:
        """Source rows by their own mean and spread."""
        return (self.source - self.mean) / self.scale

    def trained(self, synthetic: SyntheticTarget) -> Any:
        """The classifier on likeliest labels, weighted by how sure they are."""
        from sklearn.base import clone
        from sklearn.dummy import DummyClassifier

        codes, weights = synthetic.codes, synthetic.margins + 1e-3
        if len(np.unique(codes)) < 2:
            return DummyClassifier(strategy="constant", constant=int(codes[0])).fit(self.standard, codes)
        return clone(self.model()).fit(self.standard, codes, sample_weight=weights / weights.mean())

    def model(self) -> Any:
        """The hypothesis class."""
        if self.classifier is not None:
            return self.classifier
        from sklearn.neural_network import MLPClassifier

        return MLPClassifier((32, 32), max_iter=40, n_iter_no_change=40, random_state=self.seed)

    def fit(self, probabilities: FloatArray, weights: FloatArray, **rest: Any) -> MarginalFit:
        """Train on the weighted, labelled source."""
        import warnings

        from sklearn.exceptions import ConvergenceWarning

        synthetic = SyntheticTarget(
            X=self.source,
            probabilities=probabilities,
            weights=weights / weights.mean(),
            guarantees=tuple(str(release.guarantee) for release in rest["releases"]),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = self.trained(synthetic)
        return MarginalFit(
            model=model, mean=self.mean, scale=self.scale, synthetic=synthetic, classes=self.classes, **rest
        )


def learn_cells(owner: str, question: OutcomeTables, public: Public) -> Learner[MarginalFit]:
    """Ask once for labels over cells, and smooth them."""
    release = yield Ask(owner, question)
    return from_cells(question, release, public)


def from_cells(question: OutcomeTables, release: Release, public: Public) -> MarginalFit:
    """Labels and weights of the source from one table of labels over cells."""
    only_releases(release)
    counts, table = release[question.names()[0]], question.tables[0]
    variance = _variance(question.plan.draws[question.names()[0]])
    groups = table.assign(public.source)
    sizes, ratio = _cell_sizes(counts, groups, variance)
    kept = smoothing.representatives(groups, public.seed)
    design = _averages(groups[kept], sizes)
    smoothed = smoothing.smooth(
        public.standard[kept],
        design,
        _signed(counts),
        released=np.full(len(sizes), counts.shape[1] * variance),
        sampling=np.maximum(sizes, 0.5),
    )
    return public.fit(
        _probabilities(smoothed(public.standard)), ratio[groups], releases=(release,), smoothed=smoothed
    )


def _cell_sizes(
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


def _averages(groups: npt.NDArray[np.int64], sizes: FloatArray) -> FloatArray:
    """Design of cell totals: each cell's rows behave like the average of its public points."""
    design = np.zeros((len(sizes), len(groups)))
    held = np.bincount(groups, minlength=len(sizes))
    design[groups, np.arange(len(groups))] = sizes[groups] / held[groups]
    return design


def _signed(counts: FloatArray) -> FloatArray:
    """Each class against the others; one column alone for two classes."""
    if counts.shape[1] == 2:
        return np.asarray(counts[:, 1:] - counts[:, :1])
    return np.asarray(2 * counts - counts.sum(axis=1, keepdims=True))


def _probabilities(signed: FloatArray) -> FloatArray:
    """Class probabilities from posterior means of 2 P - 1."""
    half = np.clip((1 + signed) / 2, 1e-3, 1 - 1e-3)
    if half.shape[1] == 1:
        return np.hstack([1 - half, half])
    return np.asarray(half / half.sum(axis=1, keepdims=True), dtype=np.float64)


def _variance(draw: Mechanism) -> float:
    assert isinstance(draw, Lattice)
    return draw.variance


def learn_embedding(owner: str, question: FeatureSums, public: Public) -> Learner[MarginalFit]:
    """Ask once for sums of designed features by class, and smooth them."""
    release = yield Ask(owner, question)
    only_releases(release)
    sums, draw = release["sums"], question.plan.draws["sums"]
    size = question.dimension * question.n_classes
    if isinstance(draw, KNorm):
        variance = draw.sensitivity**2 * (size + 1) / draw.budget**2
    else:
        variance = _variance(draw)
    waves = fourier(public.source, question.frequencies)
    rows = max(float(_estimated_rows(waves, sums, variance)), 1.0)
    kept = smoothing.representatives(np.zeros(len(waves), dtype=np.int64), public.seed)
    sampling = rows * (waves.T @ waves) / len(waves)
    smoothed = smoothing.smooth(
        public.standard[kept],
        waves[kept].T * (rows / len(kept)),
        _signed(sums.T),
        released=np.full(question.dimension, question.n_classes * variance),
        sampling=sampling,
    )
    return public.fit(
        _probabilities(smoothed(public.standard)),
        np.ones(len(public.source)),
        releases=(release,),
        smoothed=smoothed,
    )


def _estimated_rows(waves: FloatArray, sums: FloatArray, variance: float) -> float:
    """Number of the owner's rows: the source's mean feature scaled to fit the released sums."""
    mean = waves.mean(axis=0)
    noise = variance * len(sums)
    return float(mean @ sums.sum(axis=0)) / (float(mean @ mean) + noise / max(len(waves), 1) ** 2)


@dataclass(frozen=True, kw_only=True, eq=False)
class Rounds:
    """A plan of rounds, fixed in advance.

    Parameters
    ----------
    questions : tuple of tuple of Partition
        Tables of each round: features may be subsampled, and bins varied, from round to round.
    guarantees : tuple of Guarantee
        Price of each round.
    count : "errors" or "signed"
        Joint tables hold the X-marginals, so importance weights need no query of their own.
    size : float, optional
        Announced number of rows, needed for signed tables.
    estimate : "smooth", "cumulative" or "instantaneous"
        How labels are found: a Gaussian process, or the paper's least squares over all rounds or the last.
    reweight : bool
        Whether to estimate importance weights.
    stop : float
        Stop when fewer than this share of source labels changed in a round; 0 never stops early.
    """

    questions: tuple[tuple[Partition, ...], ...]
    guarantees: tuple[Any, ...]
    count: str = "errors"
    size: float | None = None
    estimate: str = "smooth"
    reweight: bool = True
    stop: float = 0.0


@dataclass(eq=False)
class _Heard:
    """What the rounds so far have said of public points."""

    incidence: list[FloatArray] = field(default_factory=list)
    signs: list[FloatArray] = field(default_factory=list)
    signed: list[FloatArray] = field(default_factory=list)
    totals: list[FloatArray] = field(default_factory=list)
    variances: list[float] = field(default_factory=list)

    def add(self, question: OutcomeTables, release: Release, source: FloatArray) -> None:
        """Read one release."""
        only_releases(release)
        assert question.hypothesis is not None
        entries = np.concatenate([release[name] for name in question.names()])
        variance = _variance(question.plan.draws[question.names()[0]])
        self.incidence.append(_incidence(question.tables, source))
        self.signs.append(np.asarray(1.0 - 2.0 * question.hypothesis.codes(source), dtype=np.float64))
        joint = entries.ndim == 2
        self.signed.append(entries[:, 0] - entries[:, 1] if joint else entries)
        self.totals.append(entries.sum(axis=1) if joint else np.zeros(0))
        self.variances.append(variance * (2 if joint else 1))


def _incidence(tables: tuple[Partition, ...], source: FloatArray) -> FloatArray:
    """One row for each cell of each table: which public points lie in it."""
    parts = []
    for table in tables:
        part = np.zeros((table.n_cells, len(source)), dtype=np.float32)
        part[table.assign(source), np.arange(len(source))] = 1
        parts.append(part)
    return np.asarray(np.vstack(parts), dtype=np.float64)


def learn_rounds(owner: str, plan: Rounds, public: Public) -> Learner[MarginalFit]:
    """Ask round by round: submit a hypothesis, hear its errors, label the source, train the next."""
    heard, releases, submitted = _Heard(), [], []
    hypothesis: Hypothesis = Constant(code=1)
    before = np.ones(len(public.source), dtype=np.int64)
    fit: MarginalFit | None = None
    for number, question in enumerate(_questions(plan, public)):
        asked = question(hypothesis)
        release = yield Ask(owner, asked)
        releases.append(release)
        submitted.append(hypothesis)
        heard.add(asked, release, public.source)
        fit = _labelled(plan, heard, public, tuple(releases), tuple(submitted))
        now = fit.codes(public.source)
        if number and np.mean(now != before) < plan.stop:
            break
        before = now
        hypothesis = of_classifier(fit.model, mean=public.mean, scale=public.scale)
    assert fit is not None
    return fit


def _questions(plan: Rounds, public: Public) -> Iterator[Any]:
    for number, (tables, guarantee) in enumerate(zip(plan.questions, plan.guarantees, strict=True)):

        def made(
            hypothesis: Hypothesis, number: int = number, tables: Any = tables, guarantee: Any = guarantee
        ) -> Any:
            return OutcomeTables(
                tables=tables,
                n_classes=len(public.classes),
                hypothesis=hypothesis,
                count=plan.count,
                round=number,
                rounds=len(plan.questions),
                guarantee=guarantee,
                salt=f"seed {public.seed}" if public.seed else "",
            )

        yield made


def _labelled(
    plan: Rounds,
    heard: _Heard,
    public: Public,
    releases: tuple[Release, ...],
    submitted: tuple[Hypothesis, ...],
) -> MarginalFit:
    """Weights, then labels, then a classifier, from all that was heard."""
    rows, weights = _weights(plan, heard, public)
    if plan.estimate == "smooth":
        smoothed, probabilities = _smooth_rounds(heard, public, rows, weights)
    else:
        first = len(heard.signed) - 1 if plan.estimate == "instantaneous" else 0
        smoothed, probabilities = None, _least_squares(heard, weights, rows, first)
    return public.fit(probabilities, weights, releases=releases, smoothed=smoothed, hypotheses=submitted)


def _weights(plan: Rounds, heard: _Heard, public: Public) -> tuple[float, FloatArray]:
    """Estimated number of rows, and importance weights from the totals of all rounds."""
    n = len(public.source)
    if plan.count == "signed":
        assert plan.size is not None
        return plan.size, np.ones(n)
    incidence, totals = np.vstack(heard.incidence), np.concatenate(heard.totals)
    tables = float(incidence.sum(axis=0).mean())
    rows = max(float(totals.sum()) / tables, 1.0)
    if not plan.reweight:
        return rows, np.ones(n)
    noise = math.sqrt(float(np.mean(heard.variances)))
    weights = importance(incidence, totals, noise=noise)
    return rows, np.maximum(weights / max(weights.mean(), 1e-9), LEAST_RATIO)


def _smooth_rounds(
    heard: _Heard, public: Public, rows: float, weights: FloatArray
) -> tuple[Smoothed, FloatArray]:
    """The Gaussian process over all rounds; records that fall into several bins make them covary."""
    n = len(public.source)
    kept = smoothing.representatives(np.zeros(n, dtype=np.int64), public.seed)
    stacked = np.vstack([part * sign for part, sign in zip(heard.incidence, heard.signs, strict=True)])
    design = stacked[:, kept] * (weights[kept] * rows / weights[kept].sum())
    sampling = (stacked * weights) @ stacked.T * (rows / weights.sum())
    released = np.concatenate(
        [np.full(len(part), variance) for part, variance in zip(heard.signed, heard.variances, strict=True)]
    )
    smoothed = smoothing.smooth(
        public.standard[kept],
        design,
        np.concatenate(heard.signed)[:, None],
        released=released,
        sampling=sampling,
    )
    return smoothed, _probabilities(smoothed(public.standard))


def _least_squares(heard: _Heard, weights: FloatArray, rows: float, first: int) -> FloatArray:
    """The paper's label estimate from the rounds ``first`` onward."""
    incidence = np.vstack(heard.incidence[first:])
    signs = np.vstack(
        [
            np.broadcast_to(sign, part.shape)
            for sign, part in zip(heard.signs[first:], heard.incidence[first:], strict=True)
        ]
    )
    observed = np.concatenate(heard.signed[first:]) / rows
    y = labels(incidence, signs, observed, weights / weights.sum())
    y = np.clip(y, 1e-3, 1 - 1e-3)
    return np.column_stack([1 - y, y])


__all__ = ["Public", "Rounds", "from_cells", "learn_cells", "learn_embedding", "learn_rounds"]
