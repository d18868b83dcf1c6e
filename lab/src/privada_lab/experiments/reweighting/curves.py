"""Figures 1 to 4, and Theorem 4's measure: errors against n and epsilon, gradients against steps.

The paper draws n rows with replacement, up to 35,000 from 613 people: some are then there 85 times, and an
epsilon of 1 a row is one of some 400 a person. Here all rows are distinct, so n ends where the data end.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from privada.report.exhibit import Curves, Series
from privada_lab.datasets import domain_pairs
from privada_lab.datasets.domain_pairs import DomainPair, Part
from privada_lab.experiments.registry import Track
from privada_lab.experiments.reweighting import algorithms
from privada_lab.experiments.reweighting.contenders import (
    cnvx,
    error,
    gas_settings,
    ours,
    private_baselines,
    public_ridge,
    squared,
    with_constant,
)
from privada_lab.experiments.reweighting.tables import nonconvex

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
    if "Adap" in name and "," in name:
        return "paper"
    return "bound" if name in ("CnvxAdap", "NCnvxAdap", "public-only") else "baseline"


def _drawn(title: str, ylabel: str, sizes: tuple[int, ...], points: Points) -> Curves:
    series = tuple(Series.over_runs(name, sizes, found, role=_role(name)) for name, found in points.items())
    return Curves(title=title, xlabel="private rows n", ylabel=ylabel, series=series, logx=True, logy=True)


def gas_curves(data: Path, seeds: range, track: Track) -> Iterator[Curves]:
    """Figure 1 (epsilons), 2 (beside noisy SGD) and 3 (beside private DM), all on gas."""
    points: Points = {}
    settings, sizes = gas_settings(data), SIZES
    for seed in track(seeds[:MOST_RUNS], "gas, Figures 1 to 3"):
        pair = domain_pairs.gas(data, seed)
        found: dict[str, list[float]] = {}
        for n in sizes:
            for name, value in _at(pair, _first(pair.train, n), settings, seed):
                found.setdefault(name, []).append(value)
        for name, values in found.items():
            points.setdefault(name, []).append(values)
    for epsilon in EPSILONS:
        end = f"epsilon {epsilon:g}"
        one = _of_epsilon(points, end)
        own = {name: found for name, found in one.items() if _role(name) != "baseline" and "α" not in name}
        yield _drawn(f"Figure 1: gas, MSE against n, {end}", "test MSE", sizes, own)
        for number, other, alpha in ((2, "minibatch SGD", False), (3, "private DM", True)):
            beside = {
                name: found
                for name, found in one.items()
                if _role(name) == "ours"
                or other in name
                or (_role(name) == "paper" and ("α" in name) == alpha)
            }
            yield _drawn(f"Figure {number}: gas, beside {other}, {end}", "test MSE", sizes, beside)


def _of_epsilon(points: Points, end: str) -> Points:
    """The lines of one epsilon, and those that have none.

    >>> _of_epsilon({"ours, epsilon 1": [[0.3]], "ours, epsilon 15": [[0.1]], "DM": [[0.2]]}, "epsilon 1")
    {'ours': [[0.3]], 'DM': [[0.2]]}
    """
    chosen = (name for name in points if name.endswith(end) or "epsilon" not in name)
    return {_short(name): points[name] for name in chosen}


def _short(name: str) -> str:
    """The name of a line without its epsilon, which the title has.

    >>> _short("PCnvxAdap, sound, epsilon 4")
    'PCnvxAdap, sound'
    """
    return name.split(", epsilon", maxsplit=1)[0]


def _at(
    pair: DomainPair, train: Part, settings: tuple[float, float, float], seed: int
) -> Iterator[tuple[str, float]]:
    for epsilon in EPSILONS:
        yield f"ours, epsilon {epsilon:g}", ours(pair, epsilon, train)
        for name, predicted in private_baselines(pair, epsilon, train, deep=False):
            if name in ("minibatch SGD", "private DM 0.001"):
                yield f"{name}, epsilon {epsilon:g}", error(pair, predicted)
        for name, value in _papers(pair, epsilon, train, seed):
            yield f"PCnvxAdap, {name}, epsilon {epsilon:g}", value
    yield "CnvxAdap", squared(cnvx(pair.source, train, *settings), pair.test)
    yield "public-only", squared(public_ridge(pair.source), pair.test)


def _papers(pair: DomainPair, epsilon: float, train: Part, seed: int) -> Iterator[tuple[str, float]]:
    """The paper's algorithm, sound and printed; α = 1 is named."""
    for alpha in (algorithms.ALPHA, 1.0):
        suffix = " (α = 1)" if alpha == 1 else ""
        yield f"sound{suffix}", algorithms.sound(pair, epsilon, train, alpha=alpha)
        yield f"printed{suffix}", algorithms.printed(pair, epsilon, train, alpha=alpha, seed=seed)


def adult_curve(data: Path, seeds: range, track: Track) -> Iterator[Curves]:
    """Figure 4: error on adult against n and epsilon."""
    points: dict[float, Points] = {epsilon: {} for epsilon in EPSILONS}
    for seed in track(seeds[: MOST_RUNS - 1], "adult, Figure 4"):
        pair = domain_pairs.adult(data, seed)
        w = nonconvex(pair, alpha=0.02, steps=STEPS)[0]
        wrong = error(pair, (with_constant(pair.test.X) @ w > 0).astype(np.int64))
        for epsilon, found in points.items():
            for name, row in _adult_lines(pair, epsilon, seed):
                found.setdefault(name, []).append(row)
            found.setdefault("NCnvxAdap", []).append([wrong] * len(ADULT_SIZES))
    for epsilon, found in points.items():
        title = f"Figure 4: adult, error against n, epsilon {epsilon:g}"
        yield _drawn(title, "share of errors", ADULT_SIZES, found)


def _adult_lines(pair: DomainPair, epsilon: float, seed: int) -> Iterator[tuple[str, list[float]]]:
    parts = [_first(pair.train, n) for n in ADULT_SIZES]
    yield "ours", [ours(pair, epsilon, part) for part in parts]
    yield "PNCnvxAdap, sound", [algorithms.sound(pair, epsilon, part) for part in parts]
    yield "PNCnvxAdap, printed", [algorithms.printed(pair, epsilon, part, seed=seed) for part in parts]


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
