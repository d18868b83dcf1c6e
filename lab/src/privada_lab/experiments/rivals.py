"""Trivial rivals, for every experiment: what costs a few lines, and ought to be beaten.

A rival predicts test rows from a public side, a private side and a budget. Those that need public labels say
so, and so do those that ask nothing of the private rows. Columns are standardised by the public rows.

=======================  =====================================================================
rival                    what it is
=======================  =====================================================================
public ridge, logistic   a model of the public rows alone
public majority          the public rows' most frequent class
shift, class shares      the public model and one noisy number, or noisy class counts
one sum                  the public ridge and one noisy sum of residuals times whitened columns
noisy mean, majority     one number, or the most frequent class, for everybody
DP ridge, DP logistic    private regressions on standardised columns
objective perturbation   the same of two classes, at pure epsilon
noisy counts             noisy class counts in public cells
=======================  =====================================================================

A budget without delta is a pure one. Rivals with Gaussian noise are then given ``PURE_DELTA`` on top, which
is more than ours is given, and their name says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from privada._arrays import AnyArray, FloatArray
from privada.methods.cells.estimator import CellClassifier
from privada.parties.one_process.process_ledger import public_rows
from privada_lab.baselines.private.linear import DPLinearRegression
from privada_lab.baselines.private.logistic import DPLogisticRegression
from privada_lab.baselines.private.perturbation import PerturbedClassifier
from privada_lab.baselines.private.trivial import (
    NoisyMajority,
    NoisyMean,
    OneSumRegressor,
    PriorCorrectedClassifier,
    ShiftedRidge,
)
from privada_lab.baselines.public import PublicLogistic, PublicRidge, PublicScale

Budget = dict[str, Any]  # epsilon and delta, or epsilon alone
CONSTANT = 0.5  # appended to standardised rows, times the root of their number
ROWS_OF_A_CELL, FEWEST_CELLS, MOST_CELLS = 50, 2, 32
PURE_DELTA = 1e-5


class Labelled(Protocol):
    """Rows and their labels; a public side without labels has anything in their place."""

    @property
    def X(self) -> FloatArray: ...  # noqa: N802 - scikit-learn's name

    @property
    def y(self) -> npt.NDArray[Any]: ...

    def __len__(self) -> int: ...


@dataclass(frozen=True, eq=False)
class Sides:
    """Public rows, private rows and test rows, and the public models that rivals share.

    Attributes
    ----------
    bounds : (low, high)
        Public limits of the features.
    classes : tuple
        Public list of the labels; empty for a number.
    label_bounds : (low, high)
        Public limits of a number.
    relation : "replace-one" or "add/remove"
        Of class counts and noisy gradients; everything else keeps replace-one.
    """

    public: Labelled
    private: Labelled
    test: Labelled
    bounds: Any
    classes: tuple[Any, ...] = ()
    label_bounds: tuple[float, float] = (0.0, 1.0)
    relation: str = "replace-one"

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

    @property
    def size(self) -> int | None:
        """The public number of private rows, where the relation makes it public."""
        return None if self.relation == "add/remove" else len(self.private)

    def with_constant(self, X: FloatArray) -> FloatArray:
        """Standardised rows and a constant."""
        constant = np.full((len(X), 1), CONSTANT * self.scale.radius)
        return np.hstack([self.scale.rows(X), constant])

    @property
    def reach(self) -> float:
        """Norm of standardised rows with their constant, at most."""
        return self.scale.radius * math.hypot(1.0, CONSTANT)


@dataclass(frozen=True, kw_only=True, eq=False)
class Rival:
    """One trivial rival.

    Attributes
    ----------
    predict : function of sides and a budget
        Gives predictions of the test rows.
    labelled : bool
        Whether it needs the labels of the public side.
    spends : bool
        Whether it asks the private rows; else epsilon does not matter.
    gaussian : bool
        Whether it needs a delta.
    two_classes : bool
        Whether it knows no more than two classes.
    """

    name: str
    predict: Callable[[Sides, Budget], AnyArray]
    labelled: bool = False
    spends: bool = True
    gaussian: bool = False
    two_classes: bool = False


def predictions(sides: Sides, budget: Budget, *, labelled: bool = False) -> Iterator[tuple[str, AnyArray]]:
    """Name and predictions of every rival that can be asked.

    Parameters
    ----------
    labelled : bool, default=False
        Whether the public side has labels.
    """
    for rival in CLASS_RIVALS if sides.classes else NUMBER_RIVALS:
        if (rival.labelled and not labelled) or (rival.two_classes and len(sides.classes) > 2):
            continue
        weaker = rival.gaussian and "delta" not in budget
        given = budget | {"delta": PURE_DELTA} if weaker else budget
        name = f"{rival.name}, δ = {PURE_DELTA:g}" if weaker else rival.name
        yield name, rival.predict(sides, given)


def _public_ridge(sides: Sides, budget: Budget) -> AnyArray:  # noqa: ARG001 - nothing is spent
    return sides.ridge.predict(sides.test.X)


def _adapted_by(kind: Any) -> Callable[[Sides, Budget], AnyArray]:
    """A regressor that is fitted to the public side and asks the private one."""

    def predict(sides: Sides, budget: Budget) -> AnyArray:
        model = kind(**budget, bounds=sides.bounds, label_bounds=sides.label_bounds)
        model.fit(sides.public.X, sides.public.y, sides.private.X, sides.private.y)
        return np.asarray(model.predict(sides.test.X))

    return predict


def _noisy_mean(sides: Sides, budget: Budget) -> AnyArray:
    model = NoisyMean(**budget, bounds=sides.bounds, label_bounds=sides.label_bounds)
    return model.fit(sides.private.X, sides.private.y).predict(sides.test.X)


def _noisy_ridge(sides: Sides, budget: Budget) -> AnyArray:
    low, high = sides.label_bounds
    middle, half = (low + high) / 2, (high - low) / 2
    model = DPLinearRegression(**budget, norm_bound=sides.reach, label_bound=half)
    model.fit(sides.with_constant(sides.private.X), sides.private.y - middle)
    return np.asarray(model.predict(sides.with_constant(sides.test.X)) + middle)


def _public_logistic(sides: Sides, budget: Budget) -> AnyArray:  # noqa: ARG001 - nothing is spent
    return sides.logistic.predict(sides.test.X)


def _public_majority(sides: Sides, budget: Budget) -> AnyArray:  # noqa: ARG001 - nothing is spent
    most = sides.logistic.shares_.argmax()
    return np.full(len(sides.test), np.asarray(sides.classes)[most])


def _class_shares(sides: Sides, budget: Budget) -> AnyArray:
    model = PriorCorrectedClassifier(
        **budget, classes=sides.classes, bounds=sides.bounds, relation=sides.relation
    )
    model.fit(sides.public.X, sides.public.y, sides.private.X, sides.private.y)
    return model.predict(sides.test.X)


def _noisy_majority(sides: Sides, budget: Budget) -> AnyArray:
    model = NoisyMajority(**budget, classes=sides.classes, bounds=sides.bounds, relation=sides.relation)
    return model.fit(sides.private.X, sides.private.y).predict(sides.test.X)


def _noisy_logistic(sides: Sides, budget: Budget) -> AnyArray:
    model = DPLogisticRegression(
        **budget,
        classes=sides.classes,
        norm_bound=sides.scale.radius,
        relation=sides.relation,
        size=sides.size,
    )
    model.fit(sides.scale.rows(sides.private.X), sides.private.y)
    return np.asarray(model.predict(sides.scale.rows(sides.test.X)))


def _perturbed(sides: Sides, budget: Budget) -> AnyArray:
    model = PerturbedClassifier(epsilon=budget["epsilon"], classes=sides.classes, norm_bound=sides.reach)
    model.fit(sides.with_constant(sides.private.X), sides.private.y)
    return model.predict(sides.with_constant(sides.test.X))


@public_rows()
def _noisy_counts(sides: Sides, budget: Budget) -> AnyArray:
    reach = sides.scale.radius
    model = CellClassifier(
        sides.centres,
        **budget,
        classes=sides.classes,
        bounds=(-reach, reach),
        relation=sides.relation,
        size=sides.size,
    )
    model.fit(sides.scale.rows(sides.private.X), sides.private.y)
    return np.asarray(model.predict(sides.scale.rows(sides.test.X)))


NUMBER_RIVALS: tuple[Rival, ...] = (
    Rival(name="public ridge", predict=_public_ridge, labelled=True, spends=False),
    Rival(name="shift", predict=_adapted_by(ShiftedRidge), labelled=True, gaussian=True),
    Rival(name="one sum", predict=_adapted_by(OneSumRegressor), labelled=True, gaussian=True),
    Rival(name="noisy mean", predict=_noisy_mean, gaussian=True),
    Rival(name="DP ridge", predict=_noisy_ridge, gaussian=True),
)
CLASS_RIVALS: tuple[Rival, ...] = (
    Rival(name="public logistic", predict=_public_logistic, labelled=True, spends=False),
    Rival(name="public majority", predict=_public_majority, labelled=True, spends=False),
    Rival(name="class shares", predict=_class_shares, labelled=True),
    Rival(name="noisy majority", predict=_noisy_majority),
    Rival(name="DP logistic", predict=_noisy_logistic, gaussian=True),
    Rival(name="objective perturbation", predict=_perturbed, two_classes=True),
    Rival(name="noisy counts", predict=_noisy_counts),
)


__all__ = [
    "CLASS_RIVALS",
    "NUMBER_RIVALS",
    "PURE_DELTA",
    "Budget",
    "Labelled",
    "Rival",
    "Sides",
    "predictions",
]
