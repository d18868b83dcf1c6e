"""The private Wasserstein distance: error against noise, whole sets and batches, through an owner.

Every distance is asked of an owner and charged; only the true ones are computed beside. The noise ratio is
σ/w: the noise on a number over how far *one unit* of an attribute moves a projected row. In case (i) an
attribute of raw features moves by at most 1; what is charged is the whole attribute, which lies in
[0, 50] and so costs 50 times that μ. In case (ii) features are scaled publicly to [0, 1] and one unit is
the whole attribute.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from privada._arrays import FloatArray
from privada.methods.transport.learner.rows import NoisyRows, plain_distance
from privada.methods.transport.questions.features import FeatureMap
from privada.methods.transport.wasserstein import private_wasserstein
from privada.parties.one_process.process_ledger import public_rows
from privada.report.exhibit import Curves, Exhibit, Figure, Series
from privada.report.tables import Table
from privada_lab.datasets.adaptation import BENCHMARKS, Domain
from privada_lab.experiments.registry import Track
from privada_lab.experiments.transport.accuracies import QUICK
from privada_lab.experiments.transport.case import LARGE

BATCH, SHRUNK = 128, 10  # rows in a batch; features over components
RATIOS = (0.5, 0.7, 1.0, 1.3, 2.0)
QUICK_RATIOS = (0.7, 1.0, 1.3)
KINDS = ("projection only", "uncorrected", "corrected")
HIGH = BENCHMARKS["googlenet"].high
SAMPLED = 8  # batches of one sampled question
SAMPLED_EPSILONS = (4.0, 8.0, 16.0)


def distances(domains: dict[str, Domain], runs: int, track: Track) -> Iterator[Figure | Exhibit]:
    """Cases (i) and (ii) at ratio 1 over batches; sampled batches, if not quick."""
    source, target = domains["amazon"].X, domains["webcam"].X
    errors = {case: [] for case in ("i", "ii")}  # type: dict[str, list[FloatArray]]
    for seed in track(range(5 * runs), "batches"):
        S, T = _batch(source, target, seed)
        errors["i"].append(relative_errors(S, T, ratio=1.0, high=HIGH, seed=seed))
        errors["ii"].append(relative_errors(S / HIGH, T / HIGH, ratio=1.0, high=1.0, seed=seed))
    for case, goal in (("i", 1.3), ("ii", None)):
        projected, plain, corrected = np.mean(errors[case], axis=0)
        figure = "wasserstein_error_vs_projection_only" + ("" if case == "i" else "_case_ii")
        beside = f"errors: projected {projected:.3f}, uncorrected {plain:.3f}, corrected {corrected:.3f}"
        yield Figure(figure, float(corrected / projected), goal, "lower", beside, 5 * runs)
    if runs > QUICK:
        yield _sampled(source / HIGH, target / HIGH, runs)


def curves(name: str, title: str, domains: dict[str, Domain], runs: int, track: Track) -> Iterator[Curves]:
    """Figure 2 on a benchmark's first pair: batches, and whole sets if they are not too large.

    One unit of an attribute is that of raw features in [0, 50], and a fiftieth of its range in wider ones.
    """
    first, second = list(domains.values())[:2]
    high = min(HIGH, BENCHMARKS[name].high)  # wider features are scaled publicly: no ledger counts their ρ
    S, T = (each.X * (high / BENCHMARKS[name].high) for each in (first, second))
    few = QUICK_RATIOS if runs <= QUICK else RATIOS
    what = f"{title}, {first.name} to {second.name}"
    yield _curves(S, T, max(runs, 2), track, high=high, what=what, ratios=few)
    if len(S) * len(T) <= LARGE:
        yield _curves(S, T, max(1, runs // 2), track, high=high, what=what, ratios=few, whole=True)


@public_rows()
def relative_errors(S: FloatArray, T: FloatArray, *, ratio: float, high: float, seed: int) -> FloatArray:
    """Of the squared-cost distance: projection only, uncorrected, corrected."""
    components = max(1, S.shape[1] // SHRUNK)
    mu = high / ratio  # of a whole attribute in [0, high], where one unit of it is to have 1/ratio
    found = private_wasserstein(
        S,
        T,
        bounds=(0.0, high),
        norm_bound=1.0,
        rho=mu**2 / 2,
        relation="attribute",
        n_components=components,
        random_state=seed,
    )
    features = FeatureMap.random(S.shape[1], components, seed=seed)
    true, projected = _exact(S, T), _exact(features.spread(S), features.spread(T))
    return np.abs(np.array([projected, found.uncorrected, found.distance]) - true) / true


def _exact(S: FloatArray, T: FloatArray) -> float:
    return plain_distance(NoisyRows(rows=S, sigma=0.0), T)


def _batch(source: FloatArray, target: FloatArray, seed: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    S, T = (rows[rng.permutation(len(rows))[:BATCH]] for rows in (source, target))
    return S, T


def _curves(
    source: FloatArray,
    target: FloatArray,
    runs: int,
    track: Track,
    *,
    high: float,
    what: str,
    ratios: tuple[float, ...],
    whole: bool = False,
) -> Curves:
    """Error against noise ratio, case (i)."""
    found = []
    for seed in track(range(runs), "whole sets" if whole else "batches by noise"):
        S, T = (source, target) if whole else _batch(source, target, 10_000 + seed)
        found.append([relative_errors(S, T, ratio=r, high=high, seed=seed) for r in ratios])
    values = np.array(found)
    roles = ("bound", "baseline", "ours")
    series = tuple(
        Series.over_runs(kind, ratios, values[:, :, i], role=roles[i]) for i, kind in enumerate(KINDS)
    )
    kind = "whole sets" if whole else f"batches of {BATCH}"
    return Curves(
        title=f"Wasserstein error, {kind}: {what}",
        xlabel="noise ratio",
        ylabel="relative error",
        series=series,
    )


@public_rows()
def _sampled(source: FloatArray, target: FloatArray, runs: int) -> Table:
    """Sampled batches of one question, beside the mean distance of batches in the clear; case (ii).

    At attribute level sampling does not amplify: earlier figures of this table had too little noise.
    """
    rng, clear = np.random.default_rng(7), []
    for _ in range(5 * SAMPLED):
        some = [rows[rng.permutation(len(rows))[:BATCH]] for rows in (source, target)]
        clear.append(_exact(some[0], some[1]))
    true, size, rows = float(np.mean(clear)), min(BATCH, len(source)), []
    for epsilon in SAMPLED_EPSILONS:
        found = [
            private_wasserstein(
                source,
                target,
                bounds=(0.0, 1.0),
                norm_bound=1.0,
                epsilon=epsilon,
                delta=1 / (10 * len(source)),
                relation="attribute",
                batch_size=size,
                batches=SAMPLED,
                random_state=seed,
            )
            for seed in range(max(2, runs // 3))
        ]
        sigma = float(found[0].release.noise["rows.0"]["scale"])
        answers = np.array([[each.uncorrected, each.distance] for each in found])
        errors = np.mean(np.abs(answers - true) / true, axis=0)
        rows.append((f"{epsilon:g}", f"{sigma:.3g}", f"{errors[0]:.3g}", f"{errors[1]:.3g}", str(len(found))))
    columns = ("epsilon, one attribute", "noise", "error, uncorrected", "error, corrected", "runs")
    return Table(title=f"Wasserstein error, {SAMPLED} sampled batches", columns=columns, rows=tuple(rows))


__all__ = ["curves", "distances", "relative_errors"]
