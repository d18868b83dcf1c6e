"""Who is compared on a table: our defaults, trivial rivals, and models in the clear that no rank counts.

A contender is a function of a `Case` and a budget. What it may see is its *view*:

=================  =========================================================================
view               public side
=================  =========================================================================
``labelled``       rows and labels (reweighting)
``unlabelled``     rows alone (marginals); such a rival is also one of those that see labels
``transport``      rows alone, which are the target; the private side is the source
=================  =========================================================================
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import PrivadaWarning
from privada.lab.baselines.private.linear import DPLinearRegression
from privada.lab.baselines.private.logistic import DPLogisticRegression
from privada.lab.baselines.private.perturbation import PerturbedClassifier
from privada.lab.baselines.private.trivial import (
    NoisyMajority,
    NoisyMean,
    OneSumRegressor,
    PriorCorrectedClassifier,
    ShiftedRidge,
)
from privada.lab.baselines.public import PublicLogistic, PublicRidge, PublicScale
from privada.lab.datasets.table_split import TablePair, TablePart, TableSplit
from privada.methods.cells.estimator import CellClassifier
from privada.methods.marginals.estimator import MarginalLearner
from privada.methods.marginals.estimator_regression import MarginalRegressor
from privada.methods.reweighting.estimator import ReweightedClassifier, ReweightedRegressor
from privada.methods.transport.estimator import TransportClassifier
from privada.parties.schema import Category

FloatArray = npt.NDArray[np.float64]
Budget = dict[str, Any]  # epsilon and delta
VIEWS = ("labelled", "unlabelled", "transport")
CONSTANT = 0.5  # appended to standardised rows, times the root of their number
MOST_TARGET = 3000  # unlabelled rows of a public target, and as many to test
ROWS_OF_A_CELL, FEWEST_CELLS, MOST_CELLS = 50, 2, 32


@dataclass(frozen=True, eq=False)
class Case:
    """Public rows, private rows and test rows of one split, and the public models that contenders share."""

    split: TableSplit
    public: TablePart
    private: TablePart
    test: TablePart

    @classmethod
    def of(cls, split: TableSplit) -> Case:
        """The private side is the target."""
        return cls(split, split.source, split.train, split.test)

    @classmethod
    def flipped(cls, split: TableSplit) -> Case:
        """The private side is the source, and the public one the target, half of it held out to test."""
        cut = min(MOST_TARGET, len(split.source) // 2)
        rest = split.source.take(slice(cut, cut + MOST_TARGET))
        return cls(split, rest, split.train, split.source.take(slice(cut)))

    def budget(self, epsilon: float) -> Budget:
        """Epsilon, and the delta that the number of private rows allows."""
        return {"epsilon": epsilon, "delta": 1 / (10 * len(self.private))}

    @property
    def classes(self) -> tuple[Any, ...]:
        """Public list of the labels."""
        return self.split.classes

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Public limits of the features."""
        return self.split.bounds

    @cached_property
    def scale(self) -> PublicScale:
        """Of the public rows."""
        return PublicScale.of(self.public.X)

    @cached_property
    def ridge(self) -> PublicRidge:
        """Of the public rows."""
        return PublicRidge.fit(self.public.X, self.public.y)

    @cached_property
    def logistic(self) -> PublicLogistic:
        """Of the public rows."""
        return PublicLogistic(classes=self.classes).fit(self.public.X, self.public.y)

    @cached_property
    def centres(self) -> FloatArray:
        """Public cells in standardised features: one for fifty private rows, 2 to 32."""
        from sklearn.cluster import KMeans

        cells = min(MOST_CELLS, max(FEWEST_CELLS, len(self.private) // ROWS_OF_A_CELL))
        found = KMeans(cells, n_init=2, random_state=0).fit(self.scale.rows(self.public.X))
        return np.asarray(found.cluster_centers_, dtype=np.float64)

    def with_constant(self, X: FloatArray) -> FloatArray:
        """Standardised rows and a constant."""
        constant = np.full((len(X), 1), CONSTANT * self.scale.radius)
        return np.hstack([self.scale.rows(X), constant])

    @property
    def reach(self) -> float:
        """Norm of standardised rows with their constant, at most."""
        return self.scale.radius * math.hypot(1.0, CONSTANT)

    def errors(self, predicted: npt.NDArray[Any]) -> dict[str, Any]:
        """Of predictions of the test rows; numbers are held to the label's public range."""
        y = self.test.y
        if self.split.pair.task == "regression":
            inside = np.clip(np.asarray(predicted, dtype=np.float64), *self.split.label_bounds)
            return {"error": float(np.mean((inside - y) ** 2))}
        wrong = np.asarray(predicted) != y
        names, counts = np.unique(y, return_counts=True)
        balanced = float(np.mean([wrong[y == name].mean() for name in names]))
        return {"error": float(wrong.mean()), "balanced": balanced, "majority": float(counts.max() / len(y))}


@dataclass(frozen=True, eq=False)
class Outcome:
    """Predictions of the test rows and, where there is one, what was forecast before anything was spent.

    ``forecast`` is the expected error over that of doing nothing; ``band`` holds it with 80 %.
    """

    predicted: npt.NDArray[Any]
    forecast: float | None = None
    band: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Contender:
    """One who is compared.

    Attributes
    ----------
    name : str
    task : "regression" or "classification"
    view : one of `VIEWS`
    run : function of a case and a budget
    figure : str
        Of ours: the name in figures, the method's first. Empty for others.
    spends : bool
        Whether it asks the private rows; else epsilon does not matter.
    ranked : bool
        False for models in the clear.
    two_classes : bool
        Whether it knows no more than two classes.
    """

    name: str
    task: str
    view: str
    run: Callable[[Case, Budget], Outcome]
    figure: str = ""
    spends: bool = True
    ranked: bool = True
    two_classes: bool = False

    def suits(self, pair: TablePair) -> bool:
        """Whether it can be asked about a pair."""
        several = isinstance(pair.label, Category) and len(pair.label.values) > 2
        return self.task == pair.task and not (self.two_classes and several)

    def rivals(self) -> tuple[Contender, ...]:
        """Ranked contenders that see no more than this one; not ours."""
        seen = ("labelled", "unlabelled") if self.view == "labelled" else (self.view,)
        return tuple(
            each
            for each in CONTENDERS
            if each.ranked and not each.figure and each.task == self.task and each.view in seen
        )


def _reweighted(model: Any, case: Case) -> Outcome:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivadaWarning)
        model.fit(case.public.X, case.public.y, case.private.X, case.private.y)
    expected = model.forecast_
    return Outcome(model.predict(case.test.X), expected.ratio, (expected.low, expected.high))


def _reweighted_regressor(case: Case, budget: Budget) -> Outcome:
    model = ReweightedRegressor(
        **budget, bounds=case.bounds, label_bounds=case.split.label_bounds, random_state=0
    )
    return _reweighted(model, case)


def _reweighted_classifier(case: Case, budget: Budget) -> Outcome:
    model = ReweightedClassifier(**budget, classes=case.classes, bounds=case.bounds, random_state=0)
    return _reweighted(model, case)


def _marginal_learner(case: Case, budget: Budget) -> Outcome:
    model = MarginalLearner(
        **budget,
        classes=case.classes,
        bounds=case.bounds,
        relation="replace-one",
        size=len(case.private),
    )
    model.fit(case.private.X, case.private.y, source=case.public.X)
    said = model.forecast_
    return Outcome(model.predict(case.test.X), forecast=said.ratio, band=(said.low, said.high))


def _marginal_regressor(case: Case, budget: Budget) -> Outcome:
    model = MarginalRegressor(
        **budget,
        bounds=case.bounds,
        label_bounds=case.split.label_bounds,
        relation="replace-one",
        size=len(case.private),
    )
    model.fit(case.private.X, case.private.y, source=case.public.X)
    said = model.forecast_
    return Outcome(model.predict(case.test.X), forecast=said.ratio, band=(said.low, said.high))


def _transport(case: Case, budget: Budget) -> Outcome:
    model = TransportClassifier(**budget, classes=case.classes, bounds=case.bounds)
    model.fit(case.private.X, case.private.y, case.public.X)
    expected = model.forecast_
    assert expected is not None  # sizes are public under replace-one
    return Outcome(model.predict(case.test.X), forecast=expected.ratio, band=(expected.low, expected.high))


def _public_ridge(case: Case, budget: Budget) -> Outcome:  # noqa: ARG001 - nothing is spent
    return Outcome(case.ridge.predict(case.test.X))


def _shift(case: Case, budget: Budget) -> Outcome:
    model = ShiftedRidge(**budget, bounds=case.bounds, label_bounds=case.split.label_bounds)
    model.fit(case.public.X, case.public.y, case.private.X, case.private.y)
    return Outcome(model.predict(case.test.X))


def _one_sum(case: Case, budget: Budget) -> Outcome:
    model = OneSumRegressor(**budget, bounds=case.bounds, label_bounds=case.split.label_bounds)
    model.fit(case.public.X, case.public.y, case.private.X, case.private.y)
    return Outcome(model.predict(case.test.X))


def _noisy_mean(case: Case, budget: Budget) -> Outcome:
    model = NoisyMean(**budget, bounds=case.bounds, label_bounds=case.split.label_bounds)
    return Outcome(model.fit(case.private.X, case.private.y).predict(case.test.X))


def _noisy_ridge(case: Case, budget: Budget) -> Outcome:
    low, high = case.split.label_bounds
    middle, half = (low + high) / 2, (high - low) / 2
    model = DPLinearRegression(**budget, norm_bound=case.reach, label_bound=half)
    model.fit(case.with_constant(case.private.X), case.private.y - middle)
    return Outcome(model.predict(case.with_constant(case.test.X)) + middle)


def _target_ridge(case: Case, budget: Budget) -> Outcome:  # noqa: ARG001 - in the clear
    return Outcome(PublicRidge.fit(case.private.X, case.private.y).predict(case.test.X))


def _public_logistic(case: Case, budget: Budget) -> Outcome:  # noqa: ARG001 - nothing is spent
    return Outcome(case.logistic.predict(case.test.X))


def _public_majority(case: Case, budget: Budget) -> Outcome:  # noqa: ARG001 - nothing is spent
    most = case.logistic.shares_.argmax()
    return Outcome(np.full(len(case.test), np.asarray(case.classes)[most]))


def _class_shares(case: Case, budget: Budget) -> Outcome:
    model = PriorCorrectedClassifier(**budget, classes=case.classes, bounds=case.bounds)
    model.fit(case.public.X, case.public.y, case.private.X, case.private.y)
    return Outcome(model.predict(case.test.X))


def _noisy_majority(case: Case, budget: Budget) -> Outcome:
    model = NoisyMajority(**budget, classes=case.classes, bounds=case.bounds)
    return Outcome(model.fit(case.private.X, case.private.y).predict(case.test.X))


def _noisy_logistic(case: Case, budget: Budget) -> Outcome:
    model = DPLogisticRegression(
        **budget,
        classes=case.classes,
        norm_bound=case.scale.radius,
        relation="replace-one",
        size=len(case.private),
    )
    model.fit(case.scale.rows(case.private.X), case.private.y)
    return Outcome(model.predict(case.scale.rows(case.test.X)))


def _perturbed(case: Case, budget: Budget) -> Outcome:
    model = PerturbedClassifier(epsilon=budget["epsilon"], classes=case.classes, norm_bound=case.reach)
    model.fit(case.with_constant(case.private.X), case.private.y)
    return Outcome(model.predict(case.with_constant(case.test.X)))


def _noisy_counts(case: Case, budget: Budget) -> Outcome:
    reach = case.scale.radius
    model = CellClassifier(
        case.centres,
        **budget,
        classes=case.classes,
        bounds=(-reach, reach),
        relation="replace-one",
        size=len(case.private),
    )
    model.fit(case.scale.rows(case.private.X), case.private.y)
    return Outcome(model.predict(case.scale.rows(case.test.X)))


def _target_logistic(case: Case, budget: Budget) -> Outcome:  # noqa: ARG001 - in the clear
    model = PublicLogistic(classes=case.classes).fit(case.private.X, case.private.y)
    return Outcome(model.predict(case.test.X))


def _counting(view: str, before: str = "") -> tuple[Contender, ...]:
    """Rivals of classification that see no public label."""
    shared: dict[str, Any] = {"task": "classification", "view": view}
    return (
        Contender(name=f"{before}noisy majority", run=_noisy_majority, **shared),
        Contender(name=f"{before}DP logistic", run=_noisy_logistic, **shared),
        Contender(name=f"{before}objective perturbation", run=_perturbed, two_classes=True, **shared),
        Contender(name=f"{before}noisy counts", run=_noisy_counts, **shared),
    )


_REGRESSION: dict[str, Any] = {"task": "regression", "view": "labelled"}
_CLASSES: dict[str, Any] = {"task": "classification", "view": "labelled"}
CONTENDERS: tuple[Contender, ...] = (
    Contender(name="public ridge", run=_public_ridge, spends=False, **_REGRESSION),
    Contender(name="shift", run=_shift, **_REGRESSION),
    Contender(name="one sum", run=_one_sum, **_REGRESSION),
    Contender(name="noisy mean", run=_noisy_mean, **_REGRESSION | {"view": "unlabelled"}),
    Contender(name="DP ridge", run=_noisy_ridge, **_REGRESSION | {"view": "unlabelled"}),
    Contender(name="target ridge", run=_target_ridge, spends=False, ranked=False, **_REGRESSION),
    Contender(
        name="ReweightedRegressor", run=_reweighted_regressor, figure="reweighting_regressor", **_REGRESSION
    ),
    Contender(
        name="MarginalRegressor",
        run=_marginal_regressor,
        figure="marginals_regressor",
        task="regression",
        view="unlabelled",
    ),
    Contender(name="public logistic", run=_public_logistic, spends=False, **_CLASSES),
    Contender(name="public majority", run=_public_majority, spends=False, **_CLASSES),
    Contender(name="class shares", run=_class_shares, **_CLASSES),
    *_counting("unlabelled"),
    Contender(name="target logistic", run=_target_logistic, spends=False, ranked=False, **_CLASSES),
    Contender(
        name="ReweightedClassifier", run=_reweighted_classifier, figure="reweighting_classifier", **_CLASSES
    ),
    Contender(
        name="MarginalLearner",
        run=_marginal_learner,
        figure="marginals_learner",
        task="classification",
        view="unlabelled",
    ),
    *_counting("transport", "transport: "),
    Contender(
        name="transport: source logistic",
        run=_target_logistic,
        spends=False,
        ranked=False,
        task="classification",
        view="transport",
    ),
    Contender(
        name="TransportClassifier",
        run=_transport,
        figure="transport",
        task="classification",
        view="transport",
    ),
)
NOTHING = {  # what a forecast is relative to: the error of spending nothing, or as little as can be
    "reweighting_regressor": "public ridge",
    "reweighting_classifier": "public logistic",
    "marginals_regressor": "noisy mean",
    "marginals_learner": "noisy majority",
    "transport": "transport: noisy majority",
}


__all__ = ["CONTENDERS", "NOTHING", "VIEWS", "Case", "Contender", "Outcome"]
