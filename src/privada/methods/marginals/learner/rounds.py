"""Hypotheses submitted round by round, and what their errors say of the source's labels. All post-processing.

The paper's method, made sound: tables of counts instead of ratios. A round's tables may be subsampled, chosen
from what was heard before, or cut elsewhere; stopping early is free, because it looks at releases only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.cells.questions.partition import Bins, GridCells, Partition
from privada.methods.hypotheses.forms import Constant, Hypothesis
from privada.methods.marginals.learner.fitted import MarginalFit
from privada.methods.marginals.learner.learn import LEAST_RATIO, Public, class_probabilities
from privada.methods.marginals.learner.smoothing import process
from privada.methods.marginals.learner.smoothing.process import Smoothed
from privada.methods.marginals.learner.weights import importance, labels
from privada.methods.marginals.questions.outcomes import OutcomeTables, plan_name
from privada.parties.protocol import AskOwner, Inquiry, Learner, only_releases
from privada.privacy.guarantee import Guarantee
from privada.privacy.release import Release

ESTIMATES = ("smooth", "cumulative", "instantaneous")
MOST_RATIO = 10.0  # of a weight to the average one


@dataclass(frozen=True, kw_only=True, eq=False)
class Rounds:
    """A plan of rounds, fixed in advance.

    Parameters
    ----------
    questions : tuple of tuple of Partition
        Tables of each round: features may be subsampled, and bins varied, from round to round.
    guarantees : tuple of Guarantee
        Price of each round.
    count : "errors", "signed" or "classes"
        Joint tables hold the X-marginals, so importance weights need no query of their own. More than
        two classes are heard by "classes".
    size : float, optional
        Announced number of rows; signed tables without an importance query need it.
    estimate : "smooth", "cumulative" or "instantaneous"
        How labels are found: a Gaussian process, or the paper's least squares over all rounds or the last.
    reweight : bool
        Whether to estimate importance weights.
    importance : Guarantee, optional
        Price of the paper's separate query for the X-marginals, asked before the first round.
    chosen : int, optional
        How many tables later rounds ask about: those whose first answer stood out most from noise. Every
        round is then over the same features.
    stop : float
        Stop when fewer than this share of source labels changed in a round; 0 never stops early.
    """

    questions: tuple[tuple[Partition, ...], ...]
    guarantees: tuple[Any, ...]
    count: str = "errors"
    size: float | None = None
    estimate: str = "smooth"
    reweight: bool = True
    importance: Guarantee | None = None
    chosen: int | None = None
    stop: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "questions", tuple(_tables(tables) for tables in self.questions))
        object.__setattr__(self, "guarantees", tuple(self.guarantees))
        if not self.questions or len(self.guarantees) != len(self.questions):
            raise InputError(
                "Expected questions of at least one round and as many guarantees, "
                f"got {len(self.questions)} and {len(self.guarantees)}."
            )
        self._check_guarantees()
        _check.one_of(("errors", "signed", "classes"), count=self.count)
        _check.one_of(ESTIMATES, estimate=self.estimate)
        if self.count == "classes" and self.estimate != "smooth":
            raise InputError(f'Expected estimate="smooth" for count="classes", got {self.estimate!r}.')
        if self.size is not None:
            _check.positive(size=self.size)
        elif self.count == "signed" and self.importance is None:
            raise InputError('Expected size, or an importance query, for count="signed".')
        if not isinstance(self.reweight, (bool, np.bool_)):
            raise InputError(f"Expected reweight to be true or false, got {self.reweight!r}.")
        _check.share(stop=self.stop)
        if self.chosen is not None:
            self._check_chosen()

    def _check_guarantees(self) -> None:
        """Each round's price is a guarantee, all under one relation and unit."""
        prices = [*self.guarantees, *([] if self.importance is None else [self.importance])]
        for price in prices:
            if not isinstance(price, Guarantee):
                raise InputError(f"Expected guarantees and importance to be guarantees, got {price!r}.")
        if len({(price.relation, price.unit) for price in prices}) > 1:
            raise InputError("Expected guarantees and importance of one relation and unit.")

    def _check_chosen(self) -> None:
        """Tables are chosen by their place, so a place has to mean the same features in every round."""
        _check.count(chosen=self.chosen)
        first, *later = ([_features(table) for table in tables] for tables in self.questions)
        if any(features != first for features in later):
            raise InputError("Expected questions over the same features in every round, beside chosen.")

    def name(self, seed: int) -> str:
        """What owners know the plan by."""
        return plan_name(self.questions, self.guarantees, seed)

    def fits(self, width: int, n_classes: int) -> None:
        """Check every round against the public rows and classes, before anything is asked."""
        for tables in self.questions:
            for table in tables:
                table.fits(width)
        if n_classes != 2 and self.count != "classes":
            raise InputError(f'Expected count="classes" for {n_classes} classes, got {self.count!r}.')


def _tables(tables: Any) -> tuple[Partition, ...]:
    """The tables of one round."""
    if isinstance(tables, Partition):
        raise InputError("Expected questions to have a tuple of partitions for each round.")
    made = tuple(tables)
    if not made or not all(isinstance(table, Partition) for table in made):
        raise InputError("Expected questions to have at least one partition for each round.")
    return made


def _features(table: Partition) -> Any:
    """What a table is over, whatever its edges are."""
    if isinstance(table, Bins):
        return table.feature
    return tuple(map(_features, table.factors)) if isinstance(table, GridCells) else type(table)


@dataclass(eq=False)
class _Heard:
    """What the rounds so far have said of public points; one entry for each round."""

    incidence: list[FloatArray] = field(default_factory=list)
    codes: list[npt.NDArray[np.int64]] = field(default_factory=list)
    entries: list[FloatArray] = field(default_factory=list)
    variances: list[float] = field(default_factory=list)
    marginals: tuple[FloatArray, FloatArray, float] | None = None  # of the importance query

    def add(self, question: OutcomeTables, release: Release, source: FloatArray) -> None:
        """Read one release."""
        only_releases(release)
        incidence = incidence_of(question.tables, source)
        entries = np.concatenate([release[name] for name in question.names()])
        variance = question.plan.lattice(question.names()[0]).variance
        if question.count == "rows":
            self.marginals = incidence, entries, variance
            return
        assert question.hypothesis is not None
        self.incidence.append(incidence)
        self.codes.append(question.hypothesis.codes(source))
        self.entries.append(entries)
        self.variances.append(variance)

    def totals(self) -> tuple[FloatArray, FloatArray, float] | None:
        """Incidence, noisy rows and their variance: of the importance query, or of joint tables."""
        if self.marginals is not None:
            return self.marginals
        if self.entries[0].ndim == 1:
            return None
        totals = [part.reshape(len(part), -1).sum(axis=1) for part in self.entries]
        each = self.entries[0][0].size
        return np.vstack(self.incidence), np.concatenate(totals), each * float(np.mean(self.variances))

    def against(self, code: int, n_classes: int) -> tuple[list[FloatArray], list[FloatArray], list[float]]:
        """Rows of the design, observations and variances for one class against the others, by round."""
        parts = zip(self.incidence, self.codes, self.entries, self.variances, strict=True)
        found = [_against(*part, code, n_classes) for part in parts]
        return [part[0] for part in found], [part[1] for part in found], [part[2] for part in found]


def _against(
    incidence: FloatArray,
    said: npt.NDArray[np.int64],
    entries: FloatArray,
    variance: float,
    code: int,
    n_classes: int,
) -> tuple[FloatArray, FloatArray, float]:
    """What one round says of g = 2 P(class) - 1: sums of ±g over bins, or of P over parts of bins."""
    if n_classes == 2 and entries.ndim < 3:
        signs = np.where(said == code, -1.0, 1.0)
        joint = entries.ndim == 2
        observed = entries[:, 0] - entries[:, 1] if joint else entries
        return incidence * signs, observed, variance * (2 if joint else 1)
    mine = (said == code).astype(np.float64)
    parts = np.vstack([incidence * mine, incidence * (1 - mine)])
    return parts, np.concatenate([entries[:, code, 1], entries[:, code, 0]]), variance


def incidence_of(tables: tuple[Partition, ...], source: FloatArray) -> FloatArray:
    """One row for each cell of each table: which public points lie in it."""
    parts = []
    for table in tables:
        part = np.zeros((table.n_cells, len(source)), dtype=np.float32)
        part[table.assign(source), np.arange(len(source))] = 1
        parts.append(part)
    return np.asarray(np.vstack(parts), dtype=np.float64)


def learn_rounds(owner: str, plan: Rounds, public: Public) -> Inquiry[MarginalFit]:
    """Ask round by round: submit a hypothesis, hear its errors, label the source, train the next.

    Plan and classifier are checked, the latter by a trial on public rows, before anything is asked.
    """
    plan.fits(public.source.shape[1], len(public.classes))
    public.check(travels=len(plan.questions) > 1)
    questions = [_question(plan, public, number, Constant(code=1)) for number in range(len(plan.questions))]
    if plan.importance is not None:
        questions.insert(0, _question(plan, public, 0, None))
    asks = tuple(AskOwner(owner, question) for question in questions)
    return Inquiry(asks, lambda: _rounds(owner, plan, public))


def _rounds(owner: str, plan: Rounds, public: Public) -> Learner[MarginalFit]:
    heard, releases, submitted = _Heard(), [], []
    if plan.importance is not None:
        asked = _question(plan, public, 0, None)
        releases.append((yield AskOwner(owner, asked)))
        heard.add(asked, releases[-1], public.source)
    hypothesis: Hypothesis = Constant(code=1)
    before = np.ones(len(public.source), dtype=np.int64)
    fit: MarginalFit | None = None
    for number in range(len(plan.questions)):
        if fit is not None:
            hypothesis = fit.hypothesis()
        asked = _question(plan, public, number, hypothesis, heard)
        releases.append((yield AskOwner(owner, asked)))
        submitted.append(hypothesis)
        heard.add(asked, releases[-1], public.source)
        fit = _labelled(plan, heard, public, tuple(releases), tuple(submitted))
        now = fit.codes(public.source)
        if number and np.mean(now != before) < plan.stop:
            break
        before = now
    assert fit is not None
    return fit


def _question(
    plan: Rounds, public: Public, number: int, hypothesis: Hypothesis | None, heard: _Heard | None = None
) -> OutcomeTables:
    """A round's question; the importance query where there is no hypothesis.

    Before anything was heard, the first tables stand in for those that will be chosen: they cost the same.
    """
    tables, guarantee = plan.questions[number], plan.guarantees[number]
    if plan.chosen is not None and number:
        chosen = range(min(plan.chosen, len(tables))) if heard is None else _telling(plan, heard)
        tables = tuple(tables[index] for index in chosen)
    first = hypothesis is None
    return OutcomeTables(
        tables=tables,
        n_classes=len(public.classes),
        hypothesis=hypothesis,
        count="rows" if first else plan.count,
        round=number,
        rounds=len(plan.questions),
        guarantee=plan.importance if first and plan.importance is not None else guarantee,
        salt=plan.name(public.seed),
    )


def _telling(plan: Rounds, heard: _Heard) -> list[int]:
    """Tables of the first round whose answers stood out most from noise and chance."""
    entries = heard.entries[0]
    if entries.ndim == 2:
        entries = entries[:, :1] - entries[:, 1:]
    by_class = entries.sum(axis=2) if entries.ndim == 3 else entries.reshape(len(entries), 1)
    starts = np.cumsum([0, *(table.n_cells for table in plan.questions[0])])[:-1]
    power = np.add.reduceat(((by_class - by_class.mean(axis=0)) ** 2).sum(axis=1), starts)
    return sorted(np.argsort(-power, kind="stable")[: plan.chosen].tolist())


def _labelled(
    plan: Rounds,
    heard: _Heard,
    public: Public,
    releases: tuple[Release, ...],
    submitted: tuple[Hypothesis, ...],
) -> MarginalFit:
    """Weights, then labels, then a classifier, from all that was heard."""
    rows, weights = _weights(plan, heard, public)
    smoothed: Smoothed | None = None
    if plan.estimate != "smooth":
        first = len(heard.entries) - 1 if plan.estimate == "instantaneous" else 0
        probabilities = _least_squares(heard, weights, rows, first)
    elif len(public.classes) == 2:
        smoothed = _smooth_rounds(heard, public, rows, weights, 1)
        probabilities = class_probabilities(smoothed(public.standard))
    else:
        each = [_smooth_rounds(heard, public, rows, weights, code) for code in range(len(public.classes))]
        probabilities = class_probabilities(np.hstack([one(public.standard) for one in each]))
    return public.fit(probabilities, weights, releases=releases, smoothed=smoothed, hypotheses=submitted)


def _weights(plan: Rounds, heard: _Heard, public: Public) -> tuple[float, FloatArray]:
    """Estimated number of rows, and importance weights from the totals of all rounds."""
    n, known = len(public.source), heard.totals()
    if known is None:
        assert plan.size is not None
        return plan.size, np.ones(n)
    incidence, totals, variance = known
    tables = float(incidence.sum(axis=0).mean())
    rows = max(float(totals.sum()) / tables, 1.0)
    if not plan.reweight:
        return rows, np.ones(n)
    if plan.estimate == "smooth":
        weights = _smooth_ratio(incidence, totals, variance, rows, public)
    else:
        weights = importance(incidence, totals, noise=math.sqrt(variance))
    return rows, np.maximum(weights / max(weights.mean(), 1e-9), LEAST_RATIO)


def _smooth_ratio(
    incidence: FloatArray, totals: FloatArray, variance: float, rows: float, public: Public
) -> FloatArray:
    """Weights of public points as 1 and a Gaussian process, seen through bins that hold more or less."""
    n = len(public.source)
    kept = process.representatives(np.zeros(n, dtype=np.int64), public.seed)
    expected = incidence.sum(axis=1) * (rows / n)
    moved = process.smooth(
        public.standard[kept],
        incidence[:, kept] * (rows / len(kept)),
        (totals - expected)[:, None],
        released=np.full(len(totals), variance),
        sampling=incidence @ incidence.T * (rows / n),
    )
    return np.clip(1 + moved(public.standard)[:, 0], 0.0, MOST_RATIO)


def _smooth_rounds(heard: _Heard, public: Public, rows: float, weights: FloatArray, code: int) -> Smoothed:
    """The Gaussian process over all rounds; records that fall into several bins make them covary."""
    kept = process.representatives(np.zeros(len(public.source), dtype=np.int64), public.seed)
    parts, observed, variances = heard.against(code, len(public.classes))
    stacked, seen = np.vstack(parts), np.concatenate(observed)
    spread = np.concatenate([np.full(len(o), v) for o, v in zip(observed, variances, strict=True)])
    if heard.entries[0].ndim == 3:  # twice the class's count less the rows, a random number, is a sum of g
        held = stacked @ weights * (rows / weights.sum())
        seen, spread = 2 * seen - held, 4 * spread + held
    design = stacked[:, kept] * (weights[kept] * rows / weights[kept].sum())
    sampling = (stacked * weights) @ stacked.T * (rows / weights.sum())
    return process.smooth(
        public.standard[kept],
        design,
        seen[:, None],
        released=spread,
        sampling=sampling,
    )


def _least_squares(heard: _Heard, weights: FloatArray, rows: float, first: int) -> FloatArray:
    """The paper's label estimate from the rounds ``first`` onward."""
    incidence = np.vstack(heard.incidence[first:])
    signs = np.vstack(
        [
            np.broadcast_to(1.0 - 2.0 * said, part.shape)
            for said, part in zip(heard.codes[first:], heard.incidence[first:], strict=True)
        ]
    )
    _, observed, _ = heard.against(1, 2)
    share = np.concatenate(observed[first:]) / rows
    y = np.clip(labels(incidence, signs, share, weights / weights.sum()), 1e-3, 1 - 1e-3)
    return np.column_stack([1 - y, y])


__all__ = ["ESTIMATES", "Rounds", "incidence_of", "learn_rounds"]
