"""What few runs measure beside the headline: the paper's other rows and perspectives, and curves."""

from __future__ import annotations

from typing import Any

import numpy as np

from privada.methods.marginals.learner.asking import ErrorTables
from privada.report.exhibit import Curves, Series
from privada_lab.datasets.hidden_target import HiddenTarget
from privada_lab.experiments.marginals.contenders import (
    NO_PRIVACY,
    ROUNDS,
    accuracy,
    baselines,
    expril,
    learner,
)
from privada_lab.experiments.marginals.sets import Setting

CURVE_ROUNDS = 3
PRINTED_CURVES = {  # name: epsilon, and whether all rounds count
    "printed C-EXPRIL": (1.0, True),
    "printed I-EXPRIL": (1.0, False),
    "C-EXPRIL, no privacy": (NO_PRIVACY, True),
    "I-EXPRIL, no privacy": (NO_PRIVACY, False),
}
RULES = (2, 8)  # rows of a bin over its noise, beside the paper's 4


def paper_rows(data: HiddenTarget, setting: Setting, seed: int) -> dict[str, float]:
    """Accuracy in percent of the paper's other rows."""
    found = {
        "printed, instantaneous": accuracy(expril(data, setting, seed, cumulative=False), data),
        "C-EXPRIL, no privacy": accuracy(expril(data, setting, seed, NO_PRIVACY), data),
        "I-EXPRIL, no privacy": accuracy(expril(data, setting, seed, NO_PRIVACY, cumulative=False), data),
    }
    if setting.reweight:
        found["printed, weighted bins"] = accuracy(expril(data, setting, seed, weighted_bins=True), data)
    return {name: 100 * value for name, value in found.items()}


def beside(data: HiddenTarget, setting: Setting, seed: int) -> dict[str, float]:
    """Accuracy in percent of baselines and of perspectives."""
    found = {"trained on the synthetic target": synthetic(data, setting, seed)}
    if setting.marginal_goal is not None:
        for name, settings in _perspectives(data).items():
            fitted = learner(
                data, setting, seed, algorithm=ErrorTables(reweight=setting.reweight, **settings)
            )
            found[name] = fitted.score(data.X_test, data.y_test)
    return {name: 100 * float(value) for name, value in found.items()} | baselines(data, setting, seed)


def _perspectives(data: HiddenTarget) -> dict[str, dict[str, Any]]:
    """Settings of single-feature tables."""
    half = data.source.shape[1] // 2
    found: dict[str, dict[str, Any]] = {
        f"marginal, {ROUNDS} rounds": {"rounds": ROUNDS},
        "features subsampled": {"rounds": ROUNDS, "features": half},
        "features chosen": {"rounds": ROUNDS, "chosen": half},
        "bins varied": {"rounds": ROUNDS, "vary": True},
        "importance query": {"separate": True},
    }
    noise = data.source.shape[1] * np.sqrt(2)  # √2 λ at ε = 1, one round
    for rule in RULES:
        count = max(2, round(len(data.X) / (rule * noise)))
        found[f"rows a bin {rule} times its noise"] = {"bins": count}
    return found


def synthetic(data: HiddenTarget, setting: Setting, seed: int) -> float:
    """A forest trained on the weighted, labelled source: another learner can use it."""
    from sklearn.ensemble import RandomForestClassifier

    made = learner(data, setting, seed).synthetic_target_
    forest = RandomForestClassifier(100, random_state=seed)
    forest.fit(made.X, made.codes, sample_weight=made.weights)
    return float(forest.score(data.X_test, data.y_test))


def learning(data: HiddenTarget, setting: Setting, seed: int, best: float) -> dict[str, list[float]]:
    """Accuracy after each round less that of the model trained on the target, as in the paper's figure 1."""
    asked = ErrorTables(rounds=CURVE_ROUNDS, reweight=setting.reweight)
    ours = learner(data, setting, seed, algorithm=asked).fit_
    heard = [(each.codes(data.X_test) == data.y_test).mean() for each in ours.hypotheses[1:]]
    heard.append((ours.codes(data.X_test) == data.y_test).mean())
    found = {"error tables, rounds": [100 * float(value) - best for value in heard]}
    for name, (epsilon, cumulative) in PRINTED_CURVES.items():
        fit = expril(data, setting, seed, epsilon, cumulative=cumulative, rounds=CURVE_ROUNDS)
        found[name] = [100 * accuracy(fit, data, round=number) - best for number in range(CURVE_ROUNDS)]
    return found


def curves(name: str, runs: list[dict[str, list[float]]], one_round: list[float]) -> Curves:
    """Learning curves of one set; ours over cells is one round, drawn as a level."""
    x = list(range(1, CURVE_ROUNDS + 1))
    roles = {"error tables, rounds": "ours"}
    roles |= {each: "bound" for each, (epsilon, _) in PRINTED_CURVES.items() if epsilon == NO_PRIVACY}
    series = [
        Series.over_runs(each, x, [run[each] for run in runs], role=roles.get(each, "paper"))
        for each in runs[0]
    ]
    level = np.repeat(np.asarray(one_round)[:, None], len(x), axis=1)
    series.insert(0, Series.over_runs("cells, one round", x, level, role="ours"))
    return Curves(
        title=f"{name}: learning curves at ε = 1",
        xlabel="round",
        ylabel="points over the target-trained model",
        series=tuple(series),
    )


__all__ = ["CURVE_ROUNDS", "beside", "curves", "learning", "paper_rows", "synthetic"]
