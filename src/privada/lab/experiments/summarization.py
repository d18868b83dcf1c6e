"""``privada reproduce summarization``: how well a summary matches a private validation set.

The guarantees are true ones: (1.4, 0.01) for the validation set and (0.5, 1e-4) for every owner, both
replace-one. Releases of one study serve every size p, which is post-processing. *Greedy* sees everything and
matches the exact random-feature mean; *printed* is Algorithm 3 with the paper's parameters. Constants (shares
of an owner's budget, background, groups of the denoising) were set by argument and on draws of the same
images with seeds from 100 on; the figures use seeds below.
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import PrivacyLeakWarning
from privada.lab.baselines.private.logistic import DPLogisticRegression
from privada.lab.baselines.summaries import fourier_threshold, kernel_greedy, uniform_sample
from privada.lab.datasets.shift import Shift, adult_shift, mnist_shift
from privada.lab.experiments.intervals import mean_interval
from privada.lab.experiments.registry import Track, untracked
from privada.lab.papers.summarization import paper_features, paper_summary, printed_total, true_total
from privada.methods.summarization import (
    Consumer,
    Curator,
    FourierEmbedding,
    Matching,
    OwnerNode,
    gather,
    herd,
    match,
    mmd2,
)
from privada.methods.summarization.questions.round_plan import RoundPlan
from privada.parties.owner import Owner
from privada.parties.permissions.policy import Policy
from privada.parties.schema import Category, Schema
from privada.privacy.guarantee import Approximate
from privada.privacy.relation import Relation
from privada.report.figure import Figure

FloatArray = npt.NDArray[np.float64]
Rows = tuple[FloatArray, npt.NDArray[Any]]
SIZES = (50, 100, 200, 400)
OWNERS = (4, 16, 64, 256)
TRIVIAL = ("uniform", "one owner", "threshold")  # rivals that ask nothing, or for one noisy mean
FEATURES = 140
VALIDATION = Approximate(epsilon=1.4, delta=0.01, relation=Relation.REPLACE_ONE)
PRIVATE_TRAINING = (8.0, 1e-4)
STRICT = Approximate(epsilon=1.4, delta=1e-4, relation=Relation.REPLACE_ONE)
OWNER = Approximate(epsilon=0.5, delta=1e-4, relation=Relation.REPLACE_ONE)


class Scores:
    """MMD² and accuracies of each method, size and number of owners, over runs."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int, int, str], list[float]] = defaultdict(list)

    def add(self, method: str, p: int, k: int, **values: float) -> None:
        """One run's scores."""
        for name, value in values.items():
            self._seen[method, p, k, name].append(value)

    def values(self, method: str, p: int, k: int, name: str) -> FloatArray:
        """A score of all runs."""
        return np.array(self._seen[method, p, k, name])

    def mean(self, method: str, p: int, k: int, name: str = "mmd2") -> float:
        """A score's mean."""
        return float(self.values(method, p, k, name).mean())


class Market:
    """The parties of one shift, in one process, with secure noise and ledgers of their own."""

    def __init__(self, shift: Shift, *, seed: int, validation: Approximate = VALIDATION) -> None:
        self.shift = shift
        self.embedding = FourierEmbedding.of(
            width=shift.validation.shape[1], n_features=FEATURES, gamma=shift.gamma, random_state=seed
        )
        self.matching = Matching(
            embedding=self.embedding, size=max(SIZES), validation=validation, owners=OWNER
        )
        self.curator = Curator()
        consumer = Consumer("consumer", self._owner(shift.validation, None, "validation", validation))
        owners = [
            OwnerNode(f"owner-{k}", self._owner(X, y, f"owner-{k}", OWNER))
            for k, (X, y) in enumerate(shift.owners)
        ]
        self.nodes = {node.name: node for node in (consumer, *owners)}
        sizes = {node.name: node.size for node in owners}
        learner = match(consumer.name, consumer.size, sizes, self.matching)
        self.allocation = self.curator.drive(learner, self.nodes)

    def _owner(self, X: FloatArray, y: Any, name: str, budget: Approximate) -> Owner:
        label = None if y is None else Category(name="label", values=self.shift.classes)
        schema = Schema.of_numbers(bounds=self.shift.bounds, width=X.shape[1], size=len(X), label=label)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)  # the δ is the paper's
            return Owner(
                X,
                y=y,
                schema=schema,
                dataset=name,
                budget=budget,
                policy=Policy(curators=(self.curator.name,)),
                accounting="gaussian",
            )

    def summary(self, p: int, *, denoised: bool = True) -> tuple[Rows, int]:
        """A summary of p rows, and how many points the curator saw."""
        from dataclasses import replace

        matching = replace(self.matching, size=p, denoised=denoised)
        made = self.curator.drive(gather(self.allocation.resized(p), matching), self.nodes)
        assert made.y is not None
        return (made.X, np.asarray(self.shift.classes)[made.y]), made.points_seen


def run(*, runs: int = 10, data: Path | None = None, track: Track = untracked) -> Iterator[Figure]:
    """Yield the figures; the real sets need ``--data`` or ``PRIVADA_DATA``."""
    yield from _printed_privacy()
    yield from _asking()
    if data is None:
        return
    scores = Scores()
    for seed in track(range(runs), "MNIST shift"):
        _measure_mnist(scores, data, seed)
    yield from _mnist_figures(scores, runs)
    scores = Scores()
    for seed in track(range(runs), "Adult shift"):
        _measure_adult(scores, data, seed)
    yield from _adult_figures(scores, runs)


def _measure_mnist(scores: Scores, data: Path, seed: int) -> None:
    for k in OWNERS:
        shift = mnist_shift(data, seed=seed, owners=k)
        market = Market(shift, seed=seed)
        for p in SIZES:
            found, seen = market.summary(p)
            _score(scores, "ours", p, k, shift, found, svm=p == 400 and k == 4)
            scores.add("ours", p, k, seen=seen / p)
            _score(scores, "uniform", p, k, shift, _uniform(shift, p, seed))
            if k == 4:
                _beside(scores, market, p)
            if k == 4 and p == 400:
                scores.add("ours", p, k, private=_trained_privately(found, shift))
    shift = mnist_shift(data, seed=seed)
    strict = Market(shift, seed=seed, validation=STRICT)
    _score(scores, "strict", 400, 4, shift, strict.summary(400)[0])
    _score(scores, "printed", 400, 4, shift, _printed(shift, 400, seed))


def _beside(scores: Scores, market: Market, p: int) -> None:
    """What else could be done at K = 4."""
    shift, last = market.shift, p == 400
    X, y = np.vstack([X for X, _ in shift.owners]), np.concatenate([y for _, y in shift.owners])
    H, target = market.embedding.transform(X), market.embedding.mean(shift.validation)
    chosen = herd(H, target, p)
    _score(scores, "greedy", p, 4, shift, (X[chosen], y[chosen]), svm=last)
    _trivial(scores, market, p)
    if last:
        _score(scores, "plain", p, 4, shift, market.summary(p, denoised=False)[0], svm=True)
        exact = kernel_greedy(X, shift.validation, p, gamma=shift.gamma)
        _score(scores, "exact greedy", p, 4, shift, (X[exact], y[exact]), svm=True)
        _score(scores, "each", p, 4, shift, _each_owner(market, p), svm=True)


def _trivial(scores: Scores, market: Market, p: int) -> None:
    """Rows of the largest owner alone, and rows that agree most with the noisy validation mean."""
    shift = market.shift
    largest = max(shift.owners, key=lambda owner: len(owner[1]))
    drawn = np.random.default_rng(p).permutation(len(largest[1]))[:p]
    _score(scores, "one owner", p, 4, shift, (largest[0][drawn], largest[1][drawn]))
    X, y = np.vstack([X for X, _ in shift.owners]), np.concatenate([y for _, y in shift.owners])
    near = fourier_threshold(market.embedding.transform(X), market.allocation.target, p)
    _score(scores, "threshold", p, 4, shift, (X[near], y[near]))


def _each_owner(market: Market, p: int) -> Rows:
    """Herding at each owner, with as many points from each."""
    parts = []
    for X, y in market.shift.owners:
        chosen = herd(market.embedding.transform(X), market.allocation.target, p // len(market.shift.owners))
        parts.append((X[chosen], y[chosen]))
    return np.vstack([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def _uniform(shift: Shift, p: int, seed: int) -> Rows:
    parts = uniform_sample([len(y) for _, y in shift.owners], p, random_state=seed)
    pairs = list(zip(shift.owners, parts, strict=True))
    return np.vstack([X[i] for (X, _), i in pairs]), np.concatenate([y[i] for (_, y), i in pairs])


def _printed(shift: Shift, p: int, seed: int) -> Rows:
    def features(X: FloatArray) -> FloatArray:
        made: FloatArray = paper_features(X, dimension=FEATURES, gamma=shift.gamma, random_state=seed)
        return made

    owners = [features(X) for X, _ in shift.owners]
    made = paper_summary(owners, features(shift.validation), features(shift.seed_set), p, rehearsal=seed)
    pairs = list(zip(made.owner.tolist(), made.index.tolist(), strict=True))
    return np.array([shift.owners[k][0][i] for k, i in pairs]), np.array(
        [shift.owners[k][1][i] for k, i in pairs]
    )


def _score(
    scores: Scores, method: str, p: int, k: int, shift: Shift, found: Rows, *, svm: bool = False
) -> None:
    scores.add(method, p, k, mmd2=mmd2(found[0], shift.validation, gamma=shift.gamma))
    if svm:
        scores.add(method, p, k, svm=_accuracy("svm", found, shift))


def _accuracy(name: str, found: Rows, shift: Shift) -> float:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.svm import LinearSVC
    from sklearn.tree import DecisionTreeClassifier

    makers: dict[str, Callable[[], Any]] = {
        "svm": lambda: LinearSVC(C=1.0, max_iter=5000),
        "boosting": lambda: HistGradientBoostingClassifier(max_iter=50, random_state=0),
        "tree": lambda: DecisionTreeClassifier(random_state=0),
    }
    if len(np.unique(found[1])) < 2:
        return 100 * float(np.mean(shift.test[1] == found[1][0]))
    return 100 * float(makers[name]().fit(*found).score(*shift.test))


def _trained_privately(found: Rows, shift: Shift) -> float:
    """Accuracy of noisy-gradient logistic regression on the summary: one gathered point is the unit."""
    model = DPLogisticRegression(
        epsilon=PRIVATE_TRAINING[0],
        delta=PRIVATE_TRAINING[1],
        classes=shift.classes,
        norm_bound=shift.bounds[1] * math.sqrt(shift.validation.shape[1]) / 2,  # public: half the box
        relation="replace-one",
        size=len(found[1]),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return 100 * float(model.fit(*found).score(*shift.test))


def _mnist_figures(scores: Scores, runs: int) -> Iterator[Figure]:
    beside = "greedy {:.2g}, printed {:.2g}".format(
        *(scores.mean(name, 400, 4) for name in ("greedy", "printed"))
    )
    yield _figure("mmd2_p400", scores.values("ours", 400, 4, "mmd2"), 9e-3, beside, runs)
    below = scores.values("greedy", 400, 4, "svm") - scores.values("ours", 400, 4, "svm")
    yield _figure("svm_points_below_greedy_p400", below, 2.5, "linear SVM on greedy's summary", runs)
    seen = np.array([scores.values("ours", p, k, "seen").max() for p in SIZES for k in OWNERS])
    yield Figure("points_seen_over_p", float(seen.max()), 1.0, "lower", "worst of all p and K", runs)
    margins = {
        (p, k): scores.mean("uniform", p, k) / scores.mean("ours", p, k) for p in SIZES for k in OWNERS
    }
    worst = min(margins, key=lambda pair: margins[pair])
    said = f"uniform sampling; worst at p={worst[0]}, K={worst[1]}"
    yield Figure("worst_margin_over_uniform", margins[worst], 1.0, "higher", said, runs)
    yield _worst_rank(scores, runs)
    names = {"plain": "without_denoising", "strict": "delta_1e-4", "printed": "printed", "each": "each_owner"}
    names |= {
        "greedy": "greedy",
        "exact greedy": "exact_greedy",
        "threshold": "threshold",
        "uniform": "uniform",
    }
    for name, label in names.items():
        values = scores.values(name, 400, 4, "mmd2")
        yield _figure(f"mmd2_p400_{label}", values, None, "MNIST shift, K=4", runs)
    beside = "(8, 1e-4) for a gathered point; linear SVM {:.1f}".format(scores.mean("ours", 400, 4, "svm"))
    private = scores.values("ours", 400, 4, "private")
    yield _figure("private_training_accuracy_p400", private, None, beside, runs, better="higher")
    for k in OWNERS:
        yield _figure(
            f"mmd2_p400_owners_{k}", scores.values("ours", 400, k, "mmd2"), None, "MNIST shift", runs
        )
    for name in ("ours", "uniform"):
        for p in SIZES:
            yield _increase(scores, name, p, runs)


def _worst_rank(scores: Scores, runs: int, label: str = "mnist") -> Figure:
    """Rank of ours by MMD² among trivial rivals at K = 4, the worst over the sizes p."""
    ranks = {
        p: 1 + sum(scores.mean(name, p, 4) < scores.mean("ours", p, 4) for name in TRIVIAL) for p in SIZES
    }
    worst = max(ranks, key=lambda p: ranks[p])
    told = ", ".join(f"{name} {scores.mean(name, worst, 4):.2g}" for name in ("ours", *TRIVIAL))
    return Figure(f"{label}_worst_rank", float(ranks[worst]), 1.0, "lower", f"p={worst}: {told}", runs)


def _increase(scores: Scores, name: str, p: int, runs: int, label: str = "mnist") -> Figure:
    """Figure 1 of the paper: 100 (MMD² - greedy's) / MMD²."""
    ours, greedy = scores.mean(name, p, 4), scores.mean("greedy", p, 4)
    value = 100 * (ours - greedy) / ours
    return Figure(f"{label}_increase_{name}_p{p}", value, None, "lower", "percent over greedy, K=4", runs)


def _measure_adult(scores: Scores, data: Path, seed: int) -> None:
    shift = adult_shift(data, seed=seed)
    market = Market(shift, seed=seed)
    X, y = np.vstack([X for X, _ in shift.owners]), np.concatenate([y for _, y in shift.owners])
    H, target = market.embedding.transform(X), market.embedding.mean(shift.validation)
    for p in SIZES:
        chosen = herd(H, target, p)
        made = {
            "ours": market.summary(p)[0],
            "greedy": (X[chosen], y[chosen]),
            "uniform": _uniform(shift, p, seed),
        }
        _trivial(scores, market, p)
        for name, found in made.items():
            _score(scores, name, p, 4, shift, found)
            for model in ("svm", "boosting", "tree") if p == 400 else ():
                scores.add(name, p, 4, **{model: _accuracy(model, found, shift)})


def _adult_figures(scores: Scores, runs: int) -> Iterator[Figure]:
    for name in ("ours", "greedy", "uniform"):
        values = scores.values(name, 400, 4, "mmd2")
        yield _figure(f"adult_mmd2_p400_{name}", values, None, "Adult shift, K=4", runs)
    for model in ("svm", "boosting", "tree"):
        for name in ("greedy", "uniform"):
            gap = scores.values("ours", 400, 4, model) - scores.values(name, 400, 4, model)
            beside = f"{model} on the {name} summary"
            yield _figure(f"adult_{model}_points_over_{name}_p400", gap, None, beside, runs, better="higher")
    yield _worst_rank(scores, runs, "adult")
    for name in ("ours", "uniform"):
        for p in SIZES:
            yield _increase(scores, name, p, runs, "adult")


def _printed_privacy() -> Iterator[Figure]:
    """What the printed parameters claim, and true bounds for the same noise."""
    cases = {"validation": (0.01, 1656, 0.01), "summary": (0.01 / math.sqrt(500), 500, 1e-4)}
    reaches = {
        "validation": {"add_remove": (1, 1), "exact_q": (1, 2), "replace_one": (2, 2)},
        "summary": {"add_remove": (2, 2), "replace_one": (4, 4)},
    }
    for name, case in cases.items():
        claimed = printed_total(*case)
        for relation, (total, score) in reaches[name].items():
            value = true_total(*case, sum_reach=total, score_reach=score)
            beside = f"claimed {claimed:.4g}"
            yield Figure(f"printed_true_epsilon_{name}_{relation}", value, None, "lower", beside, 1)


def _asking() -> Iterator[Figure]:
    """Points that the round protocol would see beside p, if few owners were asked."""
    guarantee = Approximate(epsilon=3, delta=1e-5, relation=Relation.ADD_REMOVE)
    plan = RoundPlan(size=100, batch=10, dimension=FEATURES, guarantee=guarantee, ask_share=0.5)
    for k in OWNERS:
        value = plan.rule.expected_asked(k)
        beside = "(3, 1e-5), 10 rounds, half of the budget; herding asks for p"
        yield Figure(f"rounds_owners_asked_of_{k}", value, None, "lower", beside, 1)


def _figure(
    name: str, values: FloatArray, goal: float | None, beside: str, runs: int, *, better: str = "lower"
) -> Figure:
    found = mean_interval(values.tolist())
    return Figure(name, found.mean, goal, better, beside, runs, found.ends)


__all__ = ["Market", "Scores", "run"]
