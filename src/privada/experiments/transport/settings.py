"""``privada reproduce transport-settings``: the public map's settings on pairs that no figure scores.

`TransportClassifier` asks through 20 principal components of the target, clipped at the median norm. Both
were first tried on GoogLeNet pairs, whose labels score. Here they are chosen afresh on `unscored_pairs`: each
is varied while the other stands, at ε = 1 and 4, record level, δ = 1/(10 n). Noise is seeded, so
that anybody gets the same numbers; with ``--data`` real pairs are added to the generated ones.

Read it so: a setting is the default's equal unless it is ahead by more than two standard errors of the
difference, which are over pairs, since pairs, not runs, are what another user's data would be drawn from.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from privada.datasets.unscored_pairs import UnscoredPair, unscored_pairs
from privada.experiments.intervals import mean_interval
from privada.experiments.registry import Track, untracked
from privada.experiments.transport.case import accuracy
from privada.methods.transport.default import COMPONENTS, default_rescale
from privada.methods.transport.estimator import TransportClassifier
from privada.methods.transport.features import FeatureMap
from privada.report.exhibit import Exhibit
from privada.report.figure import Figure
from privada.report.tables import Table

FloatArray = npt.NDArray[np.float64]
EPSILONS = (1.0, 4.0)


@dataclass(frozen=True)
class Setting:
    """Of the public map: its components, and the quantile of the target's norms that rows are clipped to."""

    components: int = COMPONENTS
    quantile: float = 0.5

    @property
    def name(self) -> str:
        """As a row of the table says it.

        >>> Setting(40).name
        '40 components, clipped at quantile 0.5'
        """
        return f"{self.components} components, clipped at quantile {self.quantile:g}"


DEFAULT = Setting()
COMPONENT_CHOICES = tuple(replace(DEFAULT, components=count) for count in (10, 20, 40, 80))
QUANTILE_CHOICES = tuple(replace(DEFAULT, quantile=share) for share in (0.25, 0.5, 0.75, 0.95))
SETTINGS = tuple(dict.fromkeys(COMPONENT_CHOICES + QUANTILE_CHOICES))
Found = dict[tuple[Setting, float], list[float]]


def run(*, runs: int, data: Path | None = None, track: Track = untracked) -> Iterator[Figure | Exhibit]:
    """Yield how far each default is behind the best of its alternatives, then the table."""
    logging.getLogger("privada").setLevel(logging.ERROR)
    found: Found = {}
    pairs = list(unscored_pairs(data))
    for pair in track(pairs, "pairs that no figure scores"):
        for setting in SETTINGS:
            for epsilon, value in measured(pair, setting, runs).items():
                found.setdefault((setting, epsilon), []).append(value)
    for name, choices in (("components", COMPONENT_CHOICES), ("clipping", QUANTILE_CHOICES)):
        for epsilon in EPSILONS:
            yield behind(name, choices, found, epsilon, runs)
    yield table(found, runs)
    yield by_pair([pair.name for pair in pairs], found)


def measured(pair: UnscoredPair, setting: Setting, runs: int) -> dict[float, float]:
    """Mean accuracy in percent on a pair's target, by ε. Rows are mapped once, as in `Case`."""
    width = pair.target.X.shape[1]
    features = FeatureMap.of_target(
        pair.target.X,
        components=setting.components,
        rescale=default_rescale(np.full(width, pair.low), width),
        quantile=setting.quantile,
    )
    Z, points = features.spread(pair.source.X), features.spread(pair.target.X)
    inside = FeatureMap(
        projection=np.eye(features.components),
        centre=np.zeros(features.components),
        radius=features.radius,
    )
    reach = 2 * max(1.0, -pair.low * np.sqrt(width))  # no row of either side is farther from the centre

    def once(epsilon: float, seed: int) -> float:
        model = TransportClassifier(
            features=inside,
            epsilon=epsilon,
            delta=1 / (10 * len(Z)),
            classes=tuple(range(pair.n_classes)),
            bounds=(-reach, reach),
            rehearsal=seed,
        ).fit(Z, pair.source.y, points)
        return accuracy(model.transduction_, pair.target.y)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the rehearsal
        return {each: float(np.mean([once(each, seed) for seed in range(runs)])) for each in EPSILONS}


def behind(name: str, choices: tuple[Setting, ...], found: Found, epsilon: float, runs: int) -> Figure:
    """Points by which the best of some settings is ahead of the default, with an interval over pairs."""
    best = max(choices, key=lambda setting: float(np.mean(found[setting, epsilon])))
    gaps = np.subtract(found[best, epsilon], found[DEFAULT, epsilon])
    interval = mean_interval(gaps.tolist())
    words = f"best: {best.name}; {len(gaps)} pairs"
    figure = f"transport_default_{name}_behind_best_eps{epsilon:g}"
    return Figure(figure, interval.mean, None, "lower", words, runs, interval.ends)


def table(found: Found, runs: int) -> Table:
    """Mean accuracies, and differences from the default with their standard errors over pairs."""
    rows, pairs = [], len(found[DEFAULT, EPSILONS[0]])
    for setting in SETTINGS:
        cells = []
        for epsilon in EPSILONS:
            gaps = np.subtract(found[setting, epsilon], found[DEFAULT, epsilon])
            error = float(gaps.std(ddof=1)) / np.sqrt(pairs)
            beside = "the default" if setting == DEFAULT else f"{gaps.mean():+.1f} ± {error:.1f}"
            cells += [f"{np.mean(found[setting, epsilon]):.1f}", beside]
        rows.append((setting.name, *cells))
    heads = [(f"ε = {epsilon:g} (%)", f"ε = {epsilon:g}, less default") for epsilon in EPSILONS]
    return Table(
        title=f"Settings on {pairs} pairs that no figure scores: accuracy on the target, {runs} runs",
        columns=("setting", *(head for two in heads for head in two)),
        rows=tuple(rows),
    )


def by_pair(names: list[str], found: Found) -> Table:
    """Every pair's accuracies."""
    heads = tuple(f"{setting.name}, ε = {epsilon:g}" for setting, epsilon in found)
    rows = tuple(
        (name, *(f"{values[index]:.1f}" for values in found.values())) for index, name in enumerate(names)
    )
    return Table(title="Settings pair by pair", columns=("pair", *heads), rows=rows)


__all__ = ["DEFAULT", "SETTINGS", "Setting", "behind", "by_pair", "measured", "run", "table"]
