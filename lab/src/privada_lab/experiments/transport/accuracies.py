"""Accuracy on a benchmark's ordered pairs: ours at every budget, beside everybody else."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.util import find_spec

import numpy as np
import numpy.typing as npt

from privada.methods.transport.estimator import TransportClassifier
from privada.methods.transport.questions.statistics import ClassStatistics
from privada.report.exhibit import Curves, Series
from privada.report.tables import Table
from privada_lab.baselines import DPLogisticRegression
from privada_lab.experiments.transport.case import Case, Scores, accuracy
from privada_lab.experiments.transport.contenders import (
    few_labels_only,
    has_network,
    in_the_clear,
    minibatched,
    one_label_a_class,
    otda_network,
    otda_with_labels,
    ours,
    pate,
    printed,
    printed_in_batches,
    private_logistic,
    quickly_in_the_clear,
    target_folds,
    trivial_rivals,
    untransported,
)

UNTRANSPORTED = "same release, no transport"  # of reviews: class means of as much budget
EPSILONS = (1.0, 2.0, 4.0, 8.0)
MAIN = 4.0  # where everybody is measured
TRIVIAL = "trivial: "
FEW = 2  # runs of what is slow and only stands beside
QUICK = 1  # run of a quick look: everybody on the first pair; on others ours, noisy gradients, a coupling
SMALL, ABLATION = ("dslr", "webcam"), (10.0, 20.0)  # the paper's two budgets for its small sources


def named(method: str, epsilon: float) -> str:
    """A method at a budget.

    >>> named("ours", 4.0)
    'ours, eps 4'
    """
    return f"{method}, eps {epsilon:g}"


@dataclass
class Trained:
    """Private models of single sources, each trained once and used for every target."""

    runs: int
    found: dict[tuple[str, float], list[DPLogisticRegression]] = field(default_factory=dict)

    def logistic(self, case: Case, epsilon: float) -> list[DPLogisticRegression]:
        """All runs of one source at one budget."""
        key, runs = (case.names[0], epsilon), self.runs if epsilon == MAIN else min(self.runs, FEW)
        if key not in self.found:
            self.found[key] = [
                private_logistic(case.source, n_classes=case.n_classes, epsilon=epsilon) for _ in range(runs)
            ]
        return self.found[key]


def measured(cases: Iterable[Case], runs: int) -> Scores:
    """Every contender on every pair."""
    scores, trained = Scores(), Trained(runs)
    with warnings.catch_warnings():
        for kind in (RuntimeWarning, UserWarning):  # POT's, where a coupling underflows or is not finished
            warnings.simplefilter("ignore", kind)
        for number, case in enumerate(cases):
            unsupervised(scores, case, runs, trained)
            trivial(scores, case, runs)
            if runs <= QUICK and number:
                _note_clear(scores, case, quickly_in_the_clear(case))
                continue
            beside(scores, case, runs)
            semi_supervised(scores, case, runs)
            if case.names[0] in SMALL:
                small_source(scores, case, runs)
    return scores


def unsupervised(scores: Scores, case: Case, runs: int, trained: Trained) -> None:
    """Ours, the same release without transport, and noisy gradients, at every budget."""
    for epsilon in EPSILONS:
        for _ in range(runs):
            model = ours(case, epsilon)
            _note(scores, named("ours", epsilon), case, model.model_.probabilities)
            _note(scores, named(UNTRANSPORTED, epsilon), case, untransported(case, _by_means(case, model)))
        for model in trained.logistic(case, epsilon) if runs > QUICK or epsilon == MAIN else ():
            table = model.predict_proba(case.target.rows)
            _note(scores, named("DP logistic", epsilon), case, table)
            smoothed = case.target.propagation.smooth(table)
            _note(scores, named("DP logistic, propagated", epsilon), case, smoothed)


def trivial(scores: Scores, case: Case, runs: int) -> None:
    """Every trivial rival at every budget; only at the main one in a quick look."""
    for epsilon in EPSILONS if runs > QUICK else (MAIN,):
        for _ in range(min(runs, FEW)):
            for name, codes in trivial_rivals(case, epsilon):
                scores.add(named(f"{TRIVIAL}{name}", epsilon), case.names, case.accuracy(codes))


def _by_means(case: Case, model: TransportClassifier) -> TransportClassifier:
    """The model itself if class statistics were asked for; else one of as much budget that did."""
    if isinstance(model.question_, ClassStatistics):
        return model
    assert model.epsilon is not None
    return ours(case, model.epsilon, algorithm="statistics")


def beside(scores: Scores, case: Case, runs: int) -> None:
    """PATE, rows made sound and rows as printed, and what needs no privacy."""
    for seed in range(min(runs, FEW)):
        _note(scores, named("PATE", MAIN), case, pate(case, MAIN))
        _note(
            scores,
            named("DPDA made sound", MAIN),
            case,
            ours(case, MAIN, algorithm="rows").model_.probabilities,
        )
        _printed(scores, case, seed)
        _note(scores, named("DPDA made sound, minibatches", MAIN), case, minibatched(case, MAIN))
        if has_network():
            table = minibatched(case, MAIN, network=True)
            _note(scores, named("DPDA made sound, minibatches, network", MAIN), case, table)
    if has_network() and case.small:
        _note(scores, "OTDA, network (not private)", case, otda_network(case))
    _note_clear(scores, case, in_the_clear(case))
    _note(scores, "target only, 5 folds (not private)", case, target_folds(case))


def _printed(scores: Scores, case: Case, seed: int) -> None:
    """The printed algorithm: whole sets or minibatches, linear model or network, raw or unit rows."""
    tables = {
        "": printed(case, seed),
        ", rows of norm 1": printed(case, seed, unit=True),
        ", minibatches": printed_in_batches(case, seed),
    }
    if has_network():
        tables[", network"] = printed(case, seed, network=True)
        tables[", minibatches, network"] = printed_in_batches(case, seed, network=True)
    for name, table in tables.items():
        _note(scores, f"DPDA as printed{name} (attribute level)", case, table)


def semi_supervised(scores: Scores, case: Case, runs: int) -> None:
    """One labelled target point a class; scored on the others."""
    for seed in range(min(runs, FEW)):
        known = one_label_a_class(case, seed)
        tables = {
            named("ours, 1 label a class", MAIN): ours(case, MAIN, labels=known).model_.probabilities,
            named("DPDA made sound, 1 label a class", MAIN): ours(
                case, MAIN, labels=known, algorithm="rows"
            ).model_.probabilities,
            "DPDA as printed, 1 label a class (attribute level)": printed(case, seed, known=known),
            "target only, 1 label a class": few_labels_only(case, known),
        }
        if case.small and find_spec("ot"):
            tables["OTDA, 1 label a class (not private)"] = otda_with_labels(case, known)
        for method, table in tables.items():
            rest = known < 0
            value = accuracy(table.argmax(axis=1)[rest], case.labels[1][rest])
            scores.add(method, case.names, value)


def small_source(scores: Scores, case: Case, runs: int) -> None:
    """The paper's ablation of its budget for small sources, at record level."""
    for epsilon in ABLATION:
        for _ in range(min(runs, FEW)):
            rows = ours(case, epsilon, algorithm="rows")
            _note(scores, named("ours", epsilon), case, ours(case, epsilon).model_.probabilities)
            _note(scores, named("DPDA made sound", epsilon), case, rows.model_.probabilities)
            _note(scores, named("PATE", epsilon), case, pate(case, epsilon))


def _note(scores: Scores, method: str, case: Case, table: npt.NDArray[np.float64]) -> None:
    scores.add(method, case.names, case.accuracy(table.argmax(axis=1)))


def _note_clear(scores: Scores, case: Case, tables: dict[str, npt.NDArray[np.float64]]) -> None:
    for method, table in tables.items():
        _note(scores, f"{method} (not private)", case, table)


def table(scores: Scores, *, title: str) -> Table:
    """All methods by all pairs; a mean is over the pairs that a method was run on."""
    pairs = list(dict.fromkeys(pair for found in scores.found.values() for pair in found))
    rows = []
    for method, found in scores.found.items():
        cells = [f"{np.mean(found[pair]):.1f}" if pair in found else "" for pair in pairs]
        runs = max(len(values) for values in found.values())
        rows.append((method, *cells, f"{scores.mean(method):.2f}", f"{scores.error(method):.2f}", str(runs)))
    names = tuple(f"{source} to {target}" for source, target in pairs)
    return Table(title=title, columns=("method", *names, "mean", "standard error", "runs"), rows=tuple(rows))


def accuracy_curves(scores: Scores, *, title: str) -> Curves:
    """Mean accuracy over the pairs against epsilon, beside what keeps no guarantee."""
    lines = []
    for method, role in (("ours", "ours"), (UNTRANSPORTED, "baseline"), ("DP logistic", "baseline")):
        at = [epsilon for epsilon in EPSILONS if named(method, epsilon) in scores.found]
        means = [scores.mean(named(method, epsilon)) for epsilon in at]
        errors = [scores.error(named(method, epsilon)) for epsilon in at]
        lines.append(Series(name=method, x=at, mean=means, error=errors, role=role))
    clear = scores.mean("source only (not private)")
    lines.append(Series.over_runs("source only (not private)", EPSILONS, [[clear] * len(EPSILONS)], "bound"))
    label = "accuracy on the target (%)"
    return Curves(
        title=f"{title}, mean over pairs",
        xlabel="epsilon (replace one row)",
        ylabel=label,
        series=tuple(lines),
        logx=True,
    )


__all__ = [
    "EPSILONS",
    "MAIN",
    "QUICK",
    "TRIVIAL",
    "Trained",
    "accuracy_curves",
    "measured",
    "named",
    "table",
    "trivial",
]
