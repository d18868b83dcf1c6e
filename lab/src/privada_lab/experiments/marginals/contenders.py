"""Accuracy of each method on one set: ours, the printed one, baselines, and what bounds them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import RehearsalWarning
from privada.methods.marginals.estimator import MarginalClassifier
from privada.methods.marginals.learner.asking import CellCounts, ErrorTables
from privada.parties.one_process.process_ledger import public_rows
from privada_lab.baselines import PATE, DPLogisticRegression, Majority, PrivateWeighting, TargetTrained
from privada_lab.datasets.domain_pairs import Part
from privada_lab.datasets.hidden_target import HiddenTarget
from privada_lab.experiments.marginals.scores import ROUNDS
from privada_lab.experiments.marginals.sets import Setting
from privada_lab.experiments.rivals import Sides, predictions
from privada_lab.papers.marginals import PaperFit, paper_expril

LIMIT = 3.0  # public bound of every standardised feature: beyond three deviations of the source lie tails
STEPS = {2: 1200, 4: 600}  # of the optimiser by depth of the network, so that its training loss settles
BATCH, RATE = 200, 3e-3
DECAY = 2.0  # of weights, a row: few rows are fitted by small weights
NO_PRIVACY = 1e6
DELTA = 1e-5  # of noisy gradients and votes, which have no pure form that learns anything here
TEACHERS, VOTES = 25, 40
TRIVIAL = "trivial: "


def network(shape: tuple[int, ...], rows: int, seed: int) -> Any:
    """The paper's hypothesis class, trained for the same number of steps whatever the rows."""
    from sklearn.neural_network import MLPClassifier

    epochs = max(1, round(STEPS[len(shape)] * BATCH / rows))
    return MLPClassifier(
        shape,
        learning_rate_init=RATE,
        batch_size=min(BATCH, rows),
        alpha=DECAY * min(BATCH, rows) / rows,  # scikit-learn divides it by the rows of a batch
        max_iter=epochs,
        n_iter_no_change=epochs,
        random_state=seed,
    )


@public_rows()
def learner(
    data: HiddenTarget,
    setting: Setting,
    seed: int,
    epsilon: float = 1.0,
    *,
    algorithm: CellCounts | ErrorTables | None = None,
    **rest: Any,
) -> MarginalClassifier:
    """Ours, on one set; labels over cells, told that the domains agree where the paper's method is."""
    classifier = network(setting.shape, len(data.source), seed)
    return MarginalClassifier(
        classes=(0, 1),
        bounds=(-LIMIT, LIMIT),
        epsilon=epsilon,
        size=len(data.X),
        classifier=classifier,
        random_state=seed,
        algorithm=CellCounts(reweight=setting.reweight) if algorithm is None else algorithm,
        **rest,
    ).fit(data.X, data.y, source=data.source)


def headline(data: HiddenTarget, setting: Setting, seed: int) -> dict[str, float]:
    """What every run measures, in percent."""
    test = data.X_test, data.y_test
    found = {
        "any": learner(data, setting, seed).score(*test),
        "any at 0.25": learner(data, setting, seed, 0.25).score(*test),
    }
    if setting.marginal_goal is not None:
        tables = ErrorTables(reweight=setting.reweight)
        found["marginal"] = learner(data, setting, seed, algorithm=tables).score(*test)
    found["printed"] = accuracy(expril(data, setting, seed), data)
    found["target-trained"] = labelled(data, setting, seed, data.X, data.y)
    found["majority"] = Majority().fit(data.X, data.y).score(*test)
    found |= trivial_rivals(data)
    return {name: 100 * float(value) for name, value in found.items()}


def trivial_rivals(data: HiddenTarget) -> dict[str, float]:
    """Accuracy of every trivial rival at ε = 1; the source has no labels for them either."""
    unknown = Part(data.source, np.zeros(len(data.source), dtype=np.int64))
    sides = Sides(
        unknown,
        Part(data.X, data.y),
        Part(data.X_test, data.y_test),
        (-LIMIT, LIMIT),
        classes=(0, 1),
        relation="add/remove",
    )
    found = predictions(sides, {"epsilon": 1.0})
    return {f"{TRIVIAL}{name}": float((codes == data.y_test).mean()) for name, codes in found}


def expril(data: HiddenTarget, setting: Setting, seed: int, epsilon: float = 1.0, **rest: Any) -> PaperFit:
    """The printed method, which is not private as claimed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RehearsalWarning)
        return paper_expril(
            data.X,
            data.y,
            data.source,
            epsilon=epsilon,
            classifier=network(setting.shape, len(data.source), seed),
            reweight=setting.reweight,
            insecure_seed=seed,
            **{"rounds": ROUNDS} | rest,
        )


def accuracy(fit: PaperFit, data: HiddenTarget, **rest: Any) -> float:
    """Share of the test rows that a round's model labels right."""
    return float((fit.codes(data.X_test, **rest) == data.y_test).mean())


def labelled(
    data: HiddenTarget, setting: Setting, seed: int, X: npt.NDArray[Any], y: npt.NDArray[Any]
) -> float:
    """Accuracy of the network trained on labelled rows, as if they could be seen."""
    from sklearn.exceptions import ConvergenceWarning

    model = TargetTrained(network(setting.shape, len(X), seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = model.fit(X, y, source=data.source)
    return float(fitted.score(data.X_test, data.y_test))


def baselines(data: HiddenTarget, setting: Setting, seed: int) -> dict[str, float]:
    """What people would use instead, in percent, at ε = 1; weighting sees the source's true labels."""
    reach = float(np.quantile(np.linalg.norm(data.source, axis=1), 0.95))
    gradients = DPLogisticRegression(epsilon=1.0, delta=DELTA, classes=(0, 1), norm_bound=reach)
    votes = PATE(
        TEACHERS,
        epsilon=1.0,
        delta=DELTA,
        classes=(0, 1),
        norm_bound=reach,
        n_queries=VOTES,
        random_state=seed,
    )
    weighted = PrivateWeighting(network(setting.shape, len(data.source), seed), epsilon=1.0, norm_bound=reach)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = {
            f"DP logistic, δ = {DELTA:g}": gradients.fit(data.X, data.y),
            f"PATE, δ = {DELTA:g}": votes.fit(data.X, data.y, Xt=data.source),
            "weighting, source labelled": weighted.fit(data.source, data.y_source, target=data.X),
        }
    test: tuple[npt.NDArray[Any], npt.NDArray[Any]] = (data.X_test, data.y_test)
    return {name: 100 * float(model.score(*test)) for name, model in fitted.items()}


__all__ = [
    "NO_PRIVACY",
    "ROUNDS",
    "TRIVIAL",
    "accuracy",
    "baselines",
    "expril",
    "headline",
    "labelled",
    "learner",
    "network",
    "trivial_rivals",
]
