"""The figures and curves of summaries."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from privada._arrays import FloatArray
from privada.exceptions import PrivacyLeakWarning
from privada.methods.summarization import herd, mmd2
from privada.privacy.guarantee import ApproxDP
from privada.privacy.relation import Relation
from privada.report.exhibit import Curves, Exhibit, Figure, Series
from privada_lab.baselines.private.logistic import DPLogisticRegression
from privada_lab.baselines.summaries import fourier_threshold, kernel_greedy
from privada_lab.datasets.shift import Shift, adult_shift, mnist_shift
from privada_lab.experiments.intervals import mean_interval
from privada_lab.experiments.registry import Track, untracked
from privada_lab.experiments.summarization.market import SIZES, Market, Rows
from privada_lab.experiments.summarization.parameters import (
    OWNERS,
    asked_curve,
    asked_owners,
    printed_privacy,
)
from privada_lab.experiments.summarization.scores import Scores, accuracy, printed_rows, uniform_rows

TRIVIAL = ("uniform", "one owner", "threshold")  # rivals that ask nothing, or for one noisy mean
PRIVATE_TRAINING = (8.0, 1e-4)
STRICT = ApproxDP(epsilon=1.4, delta=1e-4, relation=Relation.REPLACE_ONE)


def run(*, runs: int = 10, data: Path | None = None, track: Track = untracked) -> Iterator[Figure | Exhibit]:
    """Yield the figures; the real sets need ``--data`` or ``PRIVADA_DATA``."""
    yield from printed_privacy()
    yield from asked_owners()
    yield asked_curve()
    if data is None:
        return
    scores = Scores()
    for seed in track(range(runs), "MNIST shift"):
        _measure_mnist(scores, data, seed)
    yield from _mnist_figures(scores, runs)
    yield _sizes_curve(scores, "MNIST shift")
    scores = Scores()
    for seed in track(range(runs), "Adult shift"):
        _measure_adult(scores, data, seed)
    yield from _adult_figures(scores, runs)
    yield _sizes_curve(scores, "Adult shift")


def _measure_mnist(scores: Scores, data: Path, seed: int) -> None:
    for k in OWNERS:
        shift = mnist_shift(data, seed=seed, owners=k)
        market = Market(shift, seed=seed)
        for p in SIZES:
            found, seen = market.summary(p)
            _score(scores, "ours", p, k, shift, found, svm=p == 400 and k == 4)
            scores.add("ours", p, k, seen=seen / p)
            _score(scores, "uniform", p, k, shift, uniform_rows(shift, p, seed))
            if k == 4:
                _beside(scores, market, p)
            if k == 4 and p == 400:
                scores.add("ours", p, k, private=_trained_privately(found, shift))
    shift = mnist_shift(data, seed=seed)
    strict = Market(shift, seed=seed, validation=STRICT)
    _score(scores, "strict", 400, 4, shift, strict.summary(400)[0])
    _score(scores, "printed", 400, 4, shift, printed_rows(shift, 400, seed)[0])


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


def _score(
    scores: Scores, method: str, p: int, k: int, shift: Shift, found: Rows, *, svm: bool = False
) -> None:
    scores.add(method, p, k, mmd2=mmd2(found[0], shift.validation, gamma=shift.gamma))
    if svm:
        scores.add(method, p, k, svm=accuracy("svm", found, shift))


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
            "uniform": uniform_rows(shift, p, seed),
        }
        _trivial(scores, market, p)
        for name, found in made.items():
            _score(scores, name, p, 4, shift, found)
            for model in ("svm", "boosting", "tree") if p == 400 else ():
                scores.add(name, p, 4, **{model: accuracy(model, found, shift)})


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


def _sizes_curve(scores: Scores, name: str) -> Curves:
    """MMD² against the summary's size, with four owners."""
    roles = {"ours": "ours", "greedy": "bound"} | dict.fromkeys(TRIVIAL, "baseline")
    series = tuple(
        Series.over_runs(
            method, SIZES, np.transpose([scores.values(method, p, 4, "mmd2") for p in SIZES]), role
        )
        for method, role in roles.items()
    )
    return Curves(
        title=f"{name}, four owners",
        xlabel="rows p of the summary",
        ylabel="MMD²",
        series=series,
        logx=True,
        logy=True,
    )


def _figure(
    name: str, values: FloatArray, goal: float | None, beside: str, runs: int, *, better: str = "lower"
) -> Figure:
    found = mean_interval(values.tolist())
    return Figure(name, found.mean, goal, better, beside, runs, found.ends)


__all__ = ["TRIVIAL", "run"]
