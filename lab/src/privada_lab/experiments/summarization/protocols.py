"""``privada reproduce summarization-protocols``: the paper's Figure 1, with every protocol side by side.

=============  ==============================================================================
protocol       what it is
=============  ==============================================================================
greedy         sees everything: not private
uniform        as many random rows from each owner
herding        the default: local matching with a private allocation
rounds         the paper's protocol made sound, everyone asked, ten rounds
printed        Algorithm 3 as printed, with seeded noise: not private as claimed
=============  ==============================================================================

Herding and rounds have true guarantees, (1.4, 0.01) for the validation set and (0.5, 1e-4) for each owner,
both replace-one; the printed protocol claims (1.4, 0.01) and (0.043, 1e-4). Beside these: how many raw points
the curator saw, a curator that receives hashes of the same points only (section F), and how far the sets are
from the conditions of Theorems 1 and 2.

*Rounds at a large budget* shows what the noise on the broadcasts costs: at ε = 0.5 it drowns them, so each
round takes the points nearest to the validation mean, and rows at the edges are missing from the summary (on
adult 4 to 5 % of its rows have the rarer label, of the test rows 10 %).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.summarization import herd, mmd2
from privada.privacy.guarantee import ApproxDP
from privada.privacy.relation import Relation
from privada.report.exhibit import Curves, Exhibit, Figure, Series
from privada_lab.datasets.shift import Shift, adult_shift, insurance_shift, mnist_shift
from privada_lab.experiments.intervals import mean_interval
from privada_lab.experiments.registry import Track, untracked
from privada_lab.experiments.summarization.market import OWNER, SIZES, VALIDATION, Market
from privada_lab.experiments.summarization.scores import Scores, accuracy, printed_rows, uniform_rows
from privada_lab.papers.summarization_theorems import prescribed_sizes, submodular_condition

READERS: dict[str, Callable[..., Shift]] = {
    "mnist": mnist_shift,
    "adult": adult_shift,
    "insurance": insurance_shift,
}
PROTOCOLS = {
    "greedy": "bound",
    "herding": "ours",
    "rounds": "ours",
    "printed": "paper",
    "uniform": "baseline",
}
LAST = max(SIZES)
FOUR = 4  # owners, as in the paper
LARGE = ApproxDP(epsilon=1000.0, delta=1e-4, relation=Relation.REPLACE_ONE)  # next to no noise


def run(*, runs: int = 10, data: Path | None = None, track: Track = untracked) -> Iterator[Figure | Exhibit]:
    """Yield the figures of every set whose files are there."""
    if data is None:
        raise InputError("Expected --data or PRIVADA_DATA: the sets are read from local copies.")
    for name, read in READERS.items():
        try:
            shifts = [read(data, seed=seed, owners=FOUR) for seed in range(runs)]
        except InputError:
            if name == "insurance":  # of a closed competition: few have the file
                continue
            raise
        scores = Scores()
        for seed in track(range(runs), f"{name} shift"):
            _measure(scores, shifts[seed], seed)
        yield from _show(name, scores, runs)
        yield from _theorems(name, shifts[0])


def _measure(scores: Scores, shift: Shift, seed: int) -> None:
    market = Market(shift, seed=seed)
    X, y = np.vstack([X for X, _ in shift.owners]), np.concatenate([y for _, y in shift.owners])
    H, target = market.embedding.transform(X), market.embedding.mean(shift.validation)
    for p in SIZES:
        chosen = herd(H, target, p)
        herded, herding_saw = market.summary(p)
        gathered, rounds_saw = market.rounds(p)
        printed, printed_saw = printed_rows(shift, p, seed)
        made = {
            "greedy": (X[chosen], y[chosen]),
            "uniform": uniform_rows(shift, p, seed),
            "herding": herded,
            "rounds": gathered,
            "printed": printed,
        }
        for name, found in made.items():
            distance = mmd2(found[0], shift.validation, gamma=shift.gamma)
            scores.add(name, p, FOUR, mmd2=distance, svm=accuracy("svm", found, shift))
        seen = {"herding": herding_saw, "rounds": rounds_saw, "printed": printed_saw}
        for name, points in seen.items():
            scores.add(name, p, FOUR, seen=points / p)
    scores.add("hashed", LAST, FOUR, svm=_hashed_accuracy(market))
    rich, _ = Market(shift, seed=seed, owners=LARGE).rounds(LAST)
    distance = mmd2(rich[0], shift.validation, gamma=shift.gamma)
    scores.add("rich", LAST, FOUR, mmd2=distance, svm=accuracy("svm", rich, shift))


def _hashed_accuracy(market: Market) -> float:
    """Accuracy of a model of the hashes alone: the curator receives no row."""
    hashed, _ = market.summary(LAST, embedded=True)
    shift = market.shift
    tested = market.embedding.transform(shift.test[0]), shift.test[1]
    return accuracy("svm", hashed, shift, test=tested)


def _show(where: str, scores: Scores, runs: int) -> Iterator[Figure | Exhibit]:
    for name in PROTOCOLS:
        said = f"{where} shift, K = {FOUR}; greedy {scores.mean('greedy', LAST, FOUR):.2g}"
        found = mean_interval(scores.values(name, LAST, FOUR, "mmd2").tolist())
        yield Figure(f"{where}_mmd2_{name}_p{LAST}", found.mean, None, "lower", said, runs, found.ends)
        found = mean_interval(scores.values(name, LAST, FOUR, "svm").tolist())
        said = f"linear SVM, percent; greedy {scores.mean('greedy', LAST, FOUR, 'svm'):.1f}"
        yield Figure(f"{where}_svm_{name}_p{LAST}", found.mean, None, "higher", said, runs, found.ends)
    for name in ("herding", "rounds", "printed"):
        seen = max(float(scores.values(name, p, FOUR, "seen").max()) for p in SIZES)
        yield Figure(f"{where}_points_seen_{name}", seen, None, "lower", "over p, the worst p", runs)
    found = mean_interval(scores.values("hashed", LAST, FOUR, "svm").tolist())
    said = f"hashes of the same points; rows {scores.mean('herding', LAST, FOUR, 'svm'):.1f}"
    yield Figure(f"{where}_svm_hashes_only_p{LAST}", found.mean, None, "higher", said, runs, found.ends)
    for score, better in (("mmd2", "lower"), ("svm", "higher")):
        found = mean_interval(scores.values("rich", LAST, FOUR, score).tolist())
        said = f"owners at ε = {LARGE.epsilon:g} instead of {OWNER.epsilon:g}, the validation set as before"
        figure = f"{where}_{score}_rounds_large_budget_p{LAST}"
        yield Figure(figure, found.mean, None, better, said, runs, found.ends)
    yield _curves(where, scores, "increase", "MMD² above greedy's, %")
    yield _curves(where, scores, "svm", "accuracy of a linear SVM, %")


def _curves(where: str, scores: Scores, what: str, label: str) -> Curves:
    """One row of Figure 1: all protocols against p."""
    series = []
    for name, role in PROTOCOLS.items():
        if what == "increase":
            if name == "greedy":
                continue
            columns = [_increases(scores, name, p) for p in SIZES]
        else:
            columns = [scores.values(name, p, FOUR, what) for p in SIZES]
        series.append(Series.over_runs(name, SIZES, np.array(columns).T, role=role))
    return Curves(
        title=f"Figure 1 on the {where} shift: {what}", xlabel="p", ylabel=label, series=tuple(series)
    )


def _increases(scores: Scores, name: str, p: int) -> FloatArray:
    """100 (MMD² - greedy's) / MMD² of each run."""
    mine, greedy = (scores.values(each, p, FOUR, "mmd2") for each in (name, "greedy"))
    return np.asarray(100 * (mine - greedy) / mine)


def _theorems(where: str, shift: Shift) -> Iterator[Figure]:
    points = np.vstack([*(X for X, _ in shift.owners), shift.validation])
    found = submodular_condition(points, gamma=shift.gamma)
    said = f"allowed by Theorem 1: {found.allowed_kernel:.1e} for {found.points} points"
    yield Figure(f"{where}_largest_kernel", found.largest_kernel, found.allowed_kernel, "lower", said, 1)
    rule = prescribed_sizes(epsilon=VALIDATION.epsilon, delta=VALIDATION.delta, size=LAST, points=len(points))
    said = (
        f"Theorem 2, also {rule.seed_rows:.1e} seed rows and {rule.dimension} features; used: 150, 150, 140"
    )
    yield Figure(f"{where}_theorem_2_validation_rows", float(rule.validation_rows), None, "lower", said, 1)


__all__ = ["PROTOCOLS", "run"]
