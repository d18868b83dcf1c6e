"""Figures 1 to 4, and Theorem 4's measure: errors against n and epsilon, gradients against steps.

The paper draws n rows with replacement, up to 35,000 from 613 people: some are then there 85 times, and an
epsilon of 1 a row is one of some 400 a person. Here all rows are distinct, so n ends where the data end.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from privada.lab.datasets import domain_pairs
from privada.lab.datasets.domain_pairs import DomainPair, Part
from privada.lab.experiments.registry import Track
from privada.lab.experiments.reweighting.contenders import (
    cnvx,
    error,
    gas_settings,
    ours,
    private_baselines,
    public_ridge,
    squared,
    with_constant,
)
from privada.lab.experiments.reweighting.tables import nonconvex, quick
from privada.report.exhibit import Curves, Series

EPSILONS = (1.0, 4.0, 15.0)
SIZES, ADULT_SIZES = (375, 750, 1500), (1250, 2500, 5000)
STEPS = 1000
MOST_RUNS = 3  # of the curves on gas; adult's takes a run less
Points = dict[str, list[list[float]]]


def _first(part: Part, n: int) -> Part:
    return Part(part.X[:n], part.y[:n])


def _role(name: str) -> str:
    if name.startswith("ours"):
        return "ours"
    return "bound" if name in ("CnvxAdap", "NCnvxAdap", "public-only") else "baseline"


def _drawn(title: str, ylabel: str, sizes: tuple[int, ...], points: Points) -> Curves:
    series = tuple(Series.over_runs(name, sizes, found, role=_role(name)) for name, found in points.items())
    return Curves(title=title, xlabel="private rows n", ylabel=ylabel, series=series, logx=True, logy=True)


def gas_curves(data: Path, seeds: range, track: Track) -> Iterator[Curves]:
    """Figure 1 (epsilons), 2 (beside noisy SGD) and 3 (beside private DM), all on gas."""
    points: Points = {}
    settings, sizes = gas_settings(data), SIZES[:: 2 if quick(seeds) else 1]
    for seed in track(seeds[:MOST_RUNS], "gas, Figures 1 to 3"):
        pair = domain_pairs.gas(data, seed)
        found: dict[str, list[float]] = {}
        for n in sizes:
            for name, value in _at(pair, _first(pair.train, n), settings, _epsilons(seeds)):
                found.setdefault(name, []).append(value)
        for name, values in found.items():
            points.setdefault(name, []).append(values)
    own = {name: values for name, values in points.items() if _role(name) != "baseline"}
    yield _drawn("Figure 1: gas, MSE against n and epsilon", "test MSE", sizes, own)
    for number, other in ((2, "minibatch SGD"), (3, "private DM")):
        beside = {name: values for name, values in points.items() if "ours" in name or other in name}
        yield _drawn(f"Figure {number}: gas, beside {other}", "test MSE", sizes, beside)


def _epsilons(seeds: range) -> tuple[float, ...]:
    return EPSILONS[:1] if quick(seeds) else EPSILONS


def _at(
    pair: DomainPair, train: Part, settings: tuple[float, float, float], epsilons: tuple[float, ...]
) -> Iterator[tuple[str, float]]:
    for epsilon in epsilons:
        yield f"ours, epsilon {epsilon:g}", ours(pair, epsilon, train)
        for name, predicted in private_baselines(pair, epsilon, train, deep=False):
            if name in ("minibatch SGD", "private DM 0.001"):
                yield f"{name}, epsilon {epsilon:g}", error(pair, predicted)
    yield "CnvxAdap", squared(cnvx(pair.source, train, *settings), pair.test)
    yield "public-only", squared(public_ridge(pair.source), pair.test)


def adult_curve(data: Path, seeds: range, track: Track) -> Iterator[Curves]:
    """Figure 4: error on adult against n and epsilon."""
    points: Points = {}
    for seed in track(seeds[: MOST_RUNS - 1], "adult, Figure 4"):
        pair = domain_pairs.adult(data, seed)
        for epsilon in _epsilons(seeds):
            row = [ours(pair, epsilon, _first(pair.train, n)) for n in ADULT_SIZES]
            points.setdefault(f"ours, epsilon {epsilon:g}", []).append(row)
        w = nonconvex(pair, alpha=0.02, steps=STEPS)[0]
        wrong = error(pair, (with_constant(pair.test.X) @ w > 0).astype(np.int64))
        points.setdefault("NCnvxAdap", []).append([wrong] * len(ADULT_SIZES))
    yield _drawn("Figure 4: adult, error against n and epsilon", "share of errors", ADULT_SIZES, points)


def gradient_curve(data: Path, seeds: range) -> Iterator[Curves]:
    """Theorem 4: the norm of the gradient mapping of NCnvxAdap against the number of steps."""
    pair = domain_pairs.adult(data, seeds[0])
    norms = nonconvex(pair, alpha=0.02, steps=STEPS)[1]
    at = [t for t in (1, 3, 10, 30, 100, 300, STEPS) if t <= len(norms)]
    lowest = np.minimum.accumulate(norms)
    series = (
        Series(name="at step T", x=at, mean=[norms[t - 1] for t in at], error=[0.0] * len(at), role="ours"),
        Series(name="least so far", x=at, mean=[float(lowest[t - 1]) for t in at], error=[0.0] * len(at)),
    )
    title = "Theorem 4: norm of the gradient mapping against T"
    yield Curves(title=title, xlabel="steps T", ylabel="norm", series=series, logx=True, logy=True)


__all__ = ["adult_curve", "gas_curves", "gradient_curve"]
