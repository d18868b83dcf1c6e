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

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import PrivadaWarning
from privada.methods.forecast import Forecast
from privada.methods.marginals.estimator import MarginalClassifier, MarginalRegressor
from privada.methods.reweighting.estimator import ReweightedClassifier, ReweightedRegressor
from privada.methods.transport.estimator import TransportClassifier
from privada.parties.one_process.process_ledger import public_rows
from privada.parties.schema import Category
from privada_lab.baselines.public import PublicLogistic, PublicRidge
from privada_lab.datasets.table_split import TablePair, TablePart, TableSplit
from privada_lab.experiments.rivals import CLASS_RIVALS, NUMBER_RIVALS, Budget, Rival, Sides

VIEWS = ("labelled", "unlabelled", "transport")
MOST_TARGET = 3000  # unlabelled rows of a public target, and as many to test


@dataclass(frozen=True, eq=False)
class Case(Sides):
    """The sides of one split of a pair."""

    pair: TablePair = field(kw_only=True)

    @classmethod
    def of(cls, split: TableSplit) -> Case:
        """The private side is the target."""
        return cls._of(split, split.source, split.test)

    @classmethod
    def flipped(cls, split: TableSplit) -> Case:
        """The private side is the source, and the public one the target, half of it held out to test."""
        cut = min(MOST_TARGET, len(split.source) // 2)
        rest = split.source.take(slice(cut, cut + MOST_TARGET))
        return cls._of(split, rest, split.source.take(slice(cut)))

    @classmethod
    def _of(cls, split: TableSplit, public: TablePart, test: TablePart) -> Case:
        number = split.pair.task == "regression"
        return cls(
            public,
            split.train,
            test,
            split.bounds,
            classes=() if number else split.classes,
            label_bounds=split.label_bounds if number else (0.0, 1.0),
            pair=split.pair,
        )

    def budget(self, epsilon: float) -> Budget:
        """Epsilon, and the delta that the number of private rows allows."""
        return {"epsilon": epsilon, "delta": 1 / (10 * len(self.private))}

    def errors(self, predicted: npt.NDArray[Any]) -> dict[str, Any]:
        """Of predictions of the test rows; numbers are held to the label's public range."""
        y = self.test.y
        if self.pair.task == "regression":
            inside = np.clip(np.asarray(predicted, dtype=np.float64), *self.label_bounds)
            return {"error": float(np.mean((inside - y) ** 2))}
        wrong = np.asarray(predicted) != y
        names, counts = np.unique(y, return_counts=True)
        balanced = float(np.mean([wrong[y == name].mean() for name in names]))
        return {"error": float(wrong.mean()), "balanced": balanced, "majority": float(counts.max() / len(y))}


@dataclass(frozen=True, eq=False)
class Outcome:
    """Predictions of the test rows and, where there is one, what was forecast before anything was spent.

    The forecast is of the error over that of doing nothing.
    """

    predicted: npt.NDArray[Any]
    forecast: Forecast | None = None

    @property
    def band(self) -> tuple[float, float] | None:
        """What holds the outcome with 80 %."""
        return None if self.forecast is None else (self.forecast.low, self.forecast.high)


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


@public_rows()
def _reweighted(model: Any, case: Case) -> Outcome:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivadaWarning)
        model.fit(case.public.X, case.public.y, case.private.X, case.private.y)
    return Outcome(model.predict(case.test.X), model.forecast_)


def _reweighted_regressor(case: Case, budget: Budget) -> Outcome:
    model = ReweightedRegressor(**budget, bounds=case.bounds, label_bounds=case.label_bounds, random_state=0)
    return _reweighted(model, case)


def _reweighted_classifier(case: Case, budget: Budget) -> Outcome:
    model = ReweightedClassifier(**budget, classes=case.classes, bounds=case.bounds, random_state=0)
    return _reweighted(model, case)


@public_rows()
def _marginal_learner(case: Case, budget: Budget) -> Outcome:
    model = MarginalClassifier(
        **budget,
        classes=case.classes,
        bounds=case.bounds,
        relation="replace-one",
        size=len(case.private),
    )
    model.fit(case.private.X, case.private.y, source=case.public.X)
    return Outcome(model.predict(case.test.X), model.forecast_)


@public_rows()
def _marginal_regressor(case: Case, budget: Budget) -> Outcome:
    model = MarginalRegressor(
        **budget,
        bounds=case.bounds,
        label_bounds=case.label_bounds,
        relation="replace-one",
        size=len(case.private),
    )
    model.fit(case.private.X, case.private.y, source=case.public.X)
    return Outcome(model.predict(case.test.X), model.forecast_)


@public_rows()
def _transport(case: Case, budget: Budget) -> Outcome:
    model = TransportClassifier(**budget, classes=case.classes, bounds=case.bounds)
    model.fit(case.private.X, case.private.y, case.public.X)
    return Outcome(model.predict(case.test.X), model.forecast_)


def _target_ridge(case: Case, budget: Budget) -> Outcome:  # noqa: ARG001 - in the clear
    return Outcome(PublicRidge.fit(case.private.X, case.private.y).predict(case.test.X))


def _target_logistic(case: Case, budget: Budget) -> Outcome:  # noqa: ARG001 - in the clear
    model = PublicLogistic(classes=case.classes).fit(case.private.X, case.private.y)
    return Outcome(model.predict(case.test.X))


def _outcome(rival: Rival, case: Case, budget: Budget) -> Outcome:
    return Outcome(rival.predict(case, budget))


def _rivals(task: str, rivals: tuple[Rival, ...], view: str = "", before: str = "") -> tuple[Contender, ...]:
    """Trivial rivals, seen from one side; each in its own view where none is given."""
    return tuple(
        Contender(
            name=f"{before}{rival.name}",
            task=task,
            view=view or ("labelled" if rival.labelled else "unlabelled"),
            run=partial(_outcome, rival),
            spends=rival.spends,
            two_classes=rival.two_classes,
        )
        for rival in rivals
    )


_REGRESSION: dict[str, Any] = {"task": "regression", "view": "labelled"}
_CLASSES: dict[str, Any] = {"task": "classification", "view": "labelled"}
UNLABELLED = tuple(rival for rival in CLASS_RIVALS if not rival.labelled)
CONTENDERS: tuple[Contender, ...] = (
    *_rivals("regression", NUMBER_RIVALS),
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
    *_rivals("classification", CLASS_RIVALS),
    Contender(name="target logistic", run=_target_logistic, spends=False, ranked=False, **_CLASSES),
    Contender(
        name="ReweightedClassifier", run=_reweighted_classifier, figure="reweighting_classifier", **_CLASSES
    ),
    Contender(
        name="MarginalClassifier",
        run=_marginal_learner,
        figure="marginals_learner",
        task="classification",
        view="unlabelled",
    ),
    *_rivals("classification", UNLABELLED, "transport", "transport: "),
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
