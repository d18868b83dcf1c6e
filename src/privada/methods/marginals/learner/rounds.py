"""Hypotheses submitted round by round, and the source's labels that their errors tell. All post-processing.

This is the paper's method, made sound: tables of counts instead of ratios. A round's tables may be
subsampled, chosen by earlier answers, or cut elsewhere; stopping early is free, because it depends on
releases only. Labels come from a Gaussian process, or from the paper's least squares.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada.methods.cells.questions.partition import Bins, GridCells, Partition
from privada.methods.hypotheses.forms import Constant, Hypothesis
from privada.methods.marginals.learner import public as public_bins
from privada.methods.marginals.learner.fitted import MarginalFit
from privada.methods.marginals.learner.learn import LEAST_RATIO, Public, class_probabilities
from privada.methods.marginals.learner.smoothing import Smoothed, representatives, smooth
from privada.methods.marginals.questions import OutcomeTables, plan_name
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
        Joint tables contain the X-marginals, so importance weights need no query of their own. More than
        two classes need "classes".
    size : float, optional
        Announced number of rows; signed tables without an importance query need it.
    estimate : "smooth", "cumulative" or "instantaneous"
        How labels are found: a Gaussian process, or the paper's least squares over all rounds or the last.
    reweight : bool
        Whether to estimate importance weights.
    importance : Guarantee, optional
        Price of the paper's separate query for the X-marginals, asked before the first round.
    chosen : int, optional
        How many tables later rounds ask about: those whose first answer differed most from noise. Every
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
        for tables in self.questions:
            if isinstance(tables, Partition):
                raise InputError("Expected questions to have a tuple of partitions for each round.")
        object.__setattr__(self, "questions", tuple(tuple(tables) for tables in self.questions))
        for tables in self.questions:
            if not tables or not all(isinstance(table, Partition) for table in tables):
                raise InputError("Expected questions to have at least one partition for each round.")
        object.__setattr__(self, "guarantees", tuple(self.guarantees))
        if not self.questions or len(self.guarantees) != len(self.questions):
            raise InputError(
                "Expected questions of at least one round and as many guarantees, "
                f"got {len(self.questions)} and {len(self.guarantees)}."
            )
        self._check_settings()

    def _check_settings(self) -> None:
        # Each round's price is a guarantee, all under one relation and unit.
        prices = [*self.guarantees, *([] if self.importance is None else [self.importance])]
        for price in prices:
            if not isinstance(price, Guarantee):
                raise InputError(f"Expected guarantees and importance to be guarantees, got {price!r}.")
        if len({(price.relation, price.unit) for price in prices}) > 1:
            raise InputError("Expected guarantees and importance of one relation and unit.")
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
            # Tables are chosen by their place, so a place has to mean the same features in every round.
            _check.count(chosen=self.chosen)
            first, *later = ([_list_features(table) for table in tables] for tables in self.questions)
            if any(features != first for features in later):
                raise InputError("Expected questions over the same features in every round, with chosen.")

    def name(self, seed: int) -> str:
        """The name by which owners know the plan."""
        return plan_name(self.questions, self.guarantees, seed)

    def fits(self, width: int, n_classes: int) -> None:
        """Check every round against the public rows and classes, before anything is asked."""
        for tables in self.questions:
            for table in tables:
                table.fits(width)
        if n_classes != 2 and self.count != "classes":
            raise InputError(f'Expected count="classes" for {n_classes} classes, got {self.count!r}.')


def _list_features(table: Partition) -> Any:
    """The features of a table, whatever its edges are."""
    if isinstance(table, Bins):
        return table.feature
    return tuple(map(_list_features, table.factors)) if isinstance(table, GridCells) else type(table)


@dataclass(eq=False)
class _Answers:
    """What the rounds so far tell about public points; one entry for each round."""

    incidence: list[FloatArray] = field(default_factory=list)
    codes: list[IntArray] = field(default_factory=list)
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
        size = self.entries[0][0].size
        return np.vstack(self.incidence), np.concatenate(totals), size * float(np.mean(self.variances))

    def against(self, code: int, n_classes: int) -> tuple[list[FloatArray], list[FloatArray], list[float]]:
        """Rows of the design, observations and variances of g = 2 P(class) - 1, by round.

        A round tells sums of ±g over bins for two classes, or of P over parts of bins.
        """
        designs, observations, variances = [], [], []
        rounds = zip(self.incidence, self.codes, self.entries, self.variances, strict=True)
        for incidence, codes, entries, variance in rounds:
            if n_classes == 2 and entries.ndim < 3:
                joint = entries.ndim == 2
                designs.append(incidence * np.where(codes == code, -1.0, 1.0))
                observations.append(entries[:, 0] - entries[:, 1] if joint else entries)
                variances.append(variance * (2 if joint else 1))
            else:
                predicted = (codes == code).astype(np.float64)
                designs.append(np.vstack([incidence * predicted, incidence * (1 - predicted)]))
                observations.append(np.concatenate([entries[:, code, 1], entries[:, code, 0]]))
                variances.append(variance)
        return designs, observations, variances


def incidence_of(tables: tuple[Partition, ...], source: FloatArray) -> FloatArray:
    """One row for each cell of each table: which public points lie in it."""
    parts = []
    for table in tables:
        part = np.zeros((table.n_cells, len(source)), dtype=np.float32)
        part[table.assign(source), np.arange(len(source))] = 1
        parts.append(part)
    return np.asarray(np.vstack(parts), dtype=np.float64)


def learn_rounds(owner: str, plan: Rounds, public: Public) -> Inquiry[MarginalFit]:
    """Ask round by round: submit a hypothesis, read its errors, label the source, train the next.

    Plan and classifier are checked, the latter by a trial on public rows, before anything is asked.
    """
    plan.fits(public.source.shape[1], len(public.classes))
    public.check(travels=len(plan.questions) > 1)
    questions = [
        _make_question(plan, public, number, Constant(code=1)) for number in range(len(plan.questions))
    ]
    if plan.importance is not None:
        questions.insert(0, _make_question(plan, public, 0, None))

    def start() -> Learner[MarginalFit]:
        answers, releases, submitted = _Answers(), [], []
        if plan.importance is not None:
            question = _make_question(plan, public, 0, None)
            releases.append((yield AskOwner(owner, question)))
            answers.add(question, releases[-1], public.source)
        hypothesis: Hypothesis = Constant(code=1)
        before = np.ones(len(public.source), dtype=np.int64)
        fit: MarginalFit | None = None
        for number in range(len(plan.questions)):
            if fit is not None:
                hypothesis = fit.hypothesis()
            question = _make_question(plan, public, number, hypothesis, answers)
            releases.append((yield AskOwner(owner, question)))
            submitted.append(hypothesis)
            answers.add(question, releases[-1], public.source)
            fit = _fit(plan, answers, public, tuple(releases), tuple(submitted))
            now = fit.codes(public.source)
            if number and np.mean(now != before) < plan.stop:
                break
            before = now
        assert fit is not None
        return fit

    return Inquiry(tuple(AskOwner(owner, question) for question in questions), start)


def _make_question(
    plan: Rounds, public: Public, number: int, hypothesis: Hypothesis | None, answers: _Answers | None = None
) -> OutcomeTables:
    """Make a round's question; the importance query where there is no hypothesis."""
    tables, guarantee = plan.questions[number], plan.guarantees[number]
    if plan.chosen is not None and number:
        # Before there are answers, the first tables represent those that will be chosen: they cost the same.
        chosen = range(min(plan.chosen, len(tables))) if answers is None else _choose_tables(plan, answers)
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


def _choose_tables(plan: Rounds, answers: _Answers) -> list[int]:
    """Choose tables of the first round whose answers differed most from noise and chance."""
    entries = answers.entries[0]
    if entries.ndim == 2:
        entries = entries[:, :1] - entries[:, 1:]
    by_class = entries.sum(axis=2) if entries.ndim == 3 else entries.reshape(len(entries), 1)
    starts = np.cumsum([0, *(table.n_cells for table in plan.questions[0])])[:-1]
    power = np.add.reduceat(((by_class - by_class.mean(axis=0)) ** 2).sum(axis=1), starts)
    return sorted(np.argsort(-power, kind="stable")[: plan.chosen].tolist())


def _fit(
    plan: Rounds,
    answers: _Answers,
    public: Public,
    releases: tuple[Release, ...],
    submitted: tuple[Hypothesis, ...],
) -> MarginalFit:
    """Estimate weights, then labels, then train a classifier, from all answers."""
    rows, weights = _estimate_weights(plan, answers, public)
    smoothed: Smoothed | None = None
    if plan.estimate != "smooth":
        first = len(answers.entries) - 1 if plan.estimate == "instantaneous" else 0
        probabilities = _solve_least_squares(answers, weights, rows, first)
    elif len(public.classes) == 2:
        smoothed = _smooth_rounds(answers, public, rows, weights, 1)
        probabilities = class_probabilities(smoothed(public.standard))
    else:
        columns = [
            _smooth_rounds(answers, public, rows, weights, code)(public.standard)
            for code in range(len(public.classes))
        ]
        probabilities = class_probabilities(np.hstack(columns))
    return public.fit(probabilities, weights, releases=releases, smoothed=smoothed, hypotheses=submitted)


def _estimate_weights(plan: Rounds, answers: _Answers, public: Public) -> tuple[float, FloatArray]:
    """Estimate the number of rows, and importance weights from the totals of all rounds."""
    n, marginals = len(public.source), answers.totals()
    if marginals is None:
        assert plan.size is not None
        return plan.size, np.ones(n)
    incidence, totals, variance = marginals
    tables = float(incidence.sum(axis=0).mean())
    rows = max(float(totals.sum()) / tables, 1.0)
    if not plan.reweight:
        return rows, np.ones(n)
    if plan.estimate == "smooth":
        # Weights are 1 and a Gaussian process, of which bins that hold more or less than expected are sums.
        few = representatives(np.zeros(n, dtype=np.int64), public.seed)
        expected = incidence.sum(axis=1) * (rows / n)
        shift = smooth(
            public.standard[few],
            incidence[:, few] * (rows / len(few)),
            (totals - expected)[:, None],
            released=np.full(len(totals), variance),
            sampling=incidence @ incidence.T * (rows / n),
        )
        weights = np.clip(1 + shift(public.standard)[:, 0], 0.0, MOST_RATIO)
    else:
        weights = importance(incidence, totals, noise=math.sqrt(variance))
    return rows, np.maximum(weights / max(weights.mean(), 1e-9), LEAST_RATIO)


def _smooth_rounds(
    answers: _Answers, public: Public, rows: float, weights: FloatArray, code: int
) -> Smoothed:
    """Smooth over all rounds; records that fall into several bins make them covary."""
    few = representatives(np.zeros(len(public.source), dtype=np.int64), public.seed)
    parts, observations, variances = answers.against(code, len(public.classes))
    stacked, observed = np.vstack(parts), np.concatenate(observations)
    released = np.concatenate([np.full(len(o), v) for o, v in zip(observations, variances, strict=True)])
    if answers.entries[0].ndim == 3:
        # Twice the class's count less the rows, a random number, is a sum of g.
        expected = stacked @ weights * (rows / weights.sum())
        observed, released = 2 * observed - expected, 4 * released + expected
    return smooth(
        public.standard[few],
        stacked[:, few] * (weights[few] * rows / weights[few].sum()),
        observed[:, None],
        released=released,
        sampling=(stacked * weights) @ stacked.T * (rows / weights.sum()),
    )


def _solve_least_squares(answers: _Answers, weights: FloatArray, rows: float, first: int) -> FloatArray:
    """The paper's label estimate from the rounds ``first`` onward."""
    incidence = np.vstack(answers.incidence[first:])
    signs = np.vstack(
        [
            np.broadcast_to(1.0 - 2.0 * codes, part.shape)
            for codes, part in zip(answers.codes[first:], answers.incidence[first:], strict=True)
        ]
    )
    _, observed, _ = answers.against(1, 2)
    share = np.concatenate(observed[first:]) / rows
    y = np.clip(labels(incidence, signs, share, weights / weights.sum()), 1e-3, 1 - 1e-3)
    return np.column_stack([1 - y, y])


def box_least_squares(
    matrix: FloatArray,
    target: FloatArray,
    *,
    centre: float,
    low: float,
    high: float,
    ridge: float,
    iterations: int = 300,
) -> FloatArray:
    """Minimise ``½ ||A x - b||² + ½ ridge ||x - centre||²`` over low <= x <= high.

    Accelerated projected gradient steps; the problem is strongly convex, so the
    answer is unique.

    >>> box_least_squares(np.eye(2), np.array([2.0, 0.25]), centre=0.0, low=0.0, high=1.0,
    ...                   ridge=1e-9).round(3).tolist()
    [1.0, 0.25]
    """
    lipschitz = float(np.linalg.norm(matrix @ matrix.T, 2)) + ridge
    x = np.full(matrix.shape[1], np.clip(centre, low, high))
    ahead, momentum = x, 1.0
    for _ in range(iterations):
        slope = matrix.T @ (matrix @ ahead - target) + ridge * (ahead - centre)
        new = np.clip(ahead - slope / lipschitz, low, high)
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / following * (new - x)
        x, momentum = new, following
    return x


def importance(
    incidence: FloatArray, counts: FloatArray, *, noise: float, most: float = 10.0, spread: float = 0.5
) -> FloatArray:
    """Weights of public points, around 1, whose bins hold what the owner's noisy counts say.

    The ridge is the ratio of two variances: of a count (noise and sampling) and of a weight
    (``spread`` squared), so that the solution is the most likely one under Gaussian priors.
    """
    total = max(float(counts.sum()), 1.0)
    tables = max(1.0, float(incidence.sum(axis=0).mean()))
    rows = incidence * (total / tables / incidence.shape[1])
    variance = noise**2 + np.maximum(rows.sum(axis=1), 1.0)
    scale = 1 / np.sqrt(variance)
    return box_least_squares(
        rows * scale[:, None], counts * scale, centre=1.0, low=0.0, high=most, ridge=1 / spread**2
    )


def labels(
    incidence: FloatArray,
    signs: FloatArray,
    observed: FloatArray,
    weights: FloatArray,
    *,
    ridge: float = 1e-3,
) -> FloatArray:
    """Label of each public point in [0, 1] from stacked error counts (the paper's equation 6).

    ``observed`` is errors minus correct in each bin, in units of the weighted incidence;
    ``signs`` is 1 where the hypothesis says 0 and -1 where it says 1.
    """
    rows = incidence * (signs * weights)
    scale = 1 / max(float(np.abs(rows).sum(axis=1).max(initial=0.0)), 1e-12)
    return box_least_squares(
        2 * rows * scale,
        (observed + rows.sum(axis=1)) * scale,
        centre=0.5,
        low=0.0,
        high=1.0,
        ridge=ridge,
    )


def default_rounds(
    source: FloatArray,
    *,
    guarantee: Guarantee,
    size: int,
    rounds: int = 1,
    bins: int | None = None,
    features: int | None = None,
    vary: bool = False,
    separate: bool = False,
    seed: int = 0,
    missing: Mapping[int, int] | None = None,
    **rest: Any,
) -> Rounds:
    """Single-feature marginals over planned rounds; ``features`` a round are drawn if given.

    The number of bins follows from public quantities alone. With ``vary`` the edges of bins move from round
    to round; with ``separate`` the importance weights have a query of their own, as in the paper, and each
    round's tables are signed. With ``chosen`` later rounds choose from the features that the first round has
    drawn. ``missing`` says which feature marks that another is missing.
    """
    shares = (public_bins.split_evenly(guarantee, _check.count(rounds=rounds) + separate),) * rounds
    choices = public_bins.list_features(source.shape[1], missing or {})
    width = len(choices) if features is None else min(_check.count(features=features), len(choices))
    if bins is None:
        bins = public_bins.bin_count(size=size, noise=public_bins.noise_of(shares[0], width))
    _check.count(least=2, bins=bins)
    rng = np.random.default_rng(seed)
    questions: list[tuple[Partition, ...]] = []
    columns: tuple[int, ...] = ()
    for number in range(rounds):
        if not number or rest.get("chosen") is None:
            columns = tuple(sorted(choices[i] for i in rng.permutation(len(choices))[:width]))
        shift = (number + 0.5) / rounds - 0.5 if vary else 0.0
        questions.append(public_bins.feature_bins(source, bins, columns, shift=shift, missing=missing))
    if separate:
        rest |= {"importance": shares[0], "count": "signed"}
    return Rounds(questions=tuple(questions), guarantees=shares, size=float(size), **rest)


__all__ = [
    "ESTIMATES",
    "Rounds",
    "box_least_squares",
    "default_rounds",
    "importance",
    "incidence_of",
    "labels",
    "learn_rounds",
]
