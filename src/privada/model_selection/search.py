"""Search for settings: scored on public rows, or chosen privately on rows that were held out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid, cross_val_score
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada.exceptions import InputError
from privada.methods.marginals.questions.choice import HypothesisChoice
from privada.model_selection.kept_model import keeping
from privada.parties.one_process.fingerprints import digest_rows
from privada.parties.one_process.holding import (
    Holding,
    hold_rows,
    salt_learner,
    settling,
    state_spent,
    warn_of_earlier_uses,
)
from privada.parties.one_process.process_ledger import public_rows
from privada.parties.permissions.policy import Policy
from privada.parties.protocol import ask_one
from privada.parties.running import run
from privada.parties.schema import Category, Schema
from privada.privacy.accounting.odometer import weakest
from privada.privacy.guarantee import ZCDP, Approximate, Guarantee, Pure, request
from privada.privacy.relation import Relation
from privada.privacy.release import Release

LONGEST_ANSWER = 1e9  # seconds: who searches waits for their own machine


class PrivateSearchCV(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Search for the settings of an estimator, and count what the search costs.

    With ``public``, candidates are fitted and scored on public rows in the place of the private ones, by
    cross-validation, and the private rows are used for one fit with the best settings. Without, every
    candidate is fitted on some of the private rows, and the best is chosen by the exponential mechanism: the
    score of a candidate is the number of held-out private rows that it labels correctly.

    Parameters
    ----------
    estimator : estimator of privada
        A classifier, unless ``public`` is given.
    param_grid : dict or list of dict
        Settings to try, as for `sklearn.model_selection.GridSearchCV`.
    public : (X, y), default=None
        Public rows that resemble the private ones.
    selection_epsilon : float, default=None
        Pure epsilon of the private choice; needed without ``public``.
    held_out : float, default=0.2
        Share of the private rows that the choice is made on; no candidate is fitted on them.
    cv : int, default=5
        Folds of the public rows.
    random_state : int, default=0
        Of public randomness only: which rows are held out. Under add/remove that depends on this and on the
        row's own content, under replace-one on its place.

    Attributes
    ----------
    best_params_, best_index_, best_estimator_
    quote_ : Guarantee
        What the search costs at most, as it was known before it began; see `price`.
    spent_ : Guarantee or None
        What everything that these rows were used for has cost, this search included.
    release_ : Release or None
        The private choice.
    scores_ : array or None
        Mean scores of the candidates on public rows; None where the choice was private.

    Privacy
    -------
    Unit and relation are the estimator's. Proof: privacy.md, "Choosing among candidates".

    Examples
    --------
    >>> import warnings; warnings.simplefilter("ignore")
    >>> from privada import CellClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(2000, 1)); y = (X[:, 0] > 0.5).astype(int)
    >>> model = CellClassifier(classes=(0, 1), bounds=(0, 1), epsilon=0.5)
    >>> grid = {"centers": [[[0.5]], [[0.25], [0.75]]]}
    >>> search = PrivateSearchCV(model, grid, selection_epsilon=0.5)
    >>> print(search.price())
    ε = 1 (pure), add/remove one row
    >>> search.fit(X, y).best_index_
    1
    """

    def __init__(
        self,
        estimator: Any = None,
        param_grid: Any = None,
        *,
        public: tuple[Any, Any] | None = None,
        selection_epsilon: float | None = None,
        held_out: float = 0.2,
        cv: int = 5,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.public = public
        self.selection_epsilon = selection_epsilon
        self.held_out = held_out
        self.cv = cv
        self.random_state = random_state

    def price(self) -> Guarantee:
        """What a search would cost at most, by itself; no row is needed to know it.

        Without a ledger, a row is either fitted on or held out, and the larger of both counts. On a ledger
        everything is charged to one data set, and adds up.
        """
        fits = [_requested(model) for model in self._candidates()]
        if self.public is not None:
            return weakest(fits)
        choice = self._choice(fits[0])
        if getattr(self.estimator, "ledger", None) is not None:
            return _sum([*fits, choice])
        return weakest([_sum(fits), choice])

    def fit(self, X: Any, y: Any = None, **public: Any) -> Self:
        """Search; ``public`` are further arguments of the estimator's ``fit``, such as its other domain."""
        self.quote_ = self.price()
        models = list(self._candidates())
        self.release_: Release | None = None
        self.scores_: npt.NDArray[np.float64] | None = None
        if self.public is not None:
            return self._fit_by_public_scores(models, X, y, public)
        return self._fit_by_private_choice(models, np.asarray(X), np.asarray(y), public)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict by the best estimator."""
        check_is_fitted(self)
        found: npt.NDArray[Any] = self.best_estimator_.predict(X)
        return found

    def score(self, X: Any, y: Any) -> float:
        """Score of the best estimator on **public** rows: a score on private ones is no release."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y))

    def _candidates(self) -> Iterator[Any]:
        if self.estimator is None or not hasattr(self.estimator, "ledger"):
            raise InputError("Expected estimator to be one of privada's, which charge what they use.")
        grid = ParameterGrid({} if self.param_grid is None else self.param_grid)
        if self.public is None and len(grid) < 2:
            raise InputError(f"Expected at least 2 candidates to choose among, got {len(grid)}.")
        for settings in grid:
            yield clone(self.estimator).set_params(**settings)

    def _choice(self, fit: Guarantee) -> Pure:
        if self.selection_epsilon is None:
            raise InputError("Expected public rows, or selection_epsilon for a private choice.")
        return Pure(epsilon=self.selection_epsilon, relation=fit.relation, unit=fit.unit)

    def _fit_by_public_scores(self, models: Sequence[Any], X: Any, y: Any, more: Mapping[str, Any]) -> Self:
        assert self.public is not None
        rows, labels = self.public
        with public_rows():
            found = [cross_val_score(each, rows, labels, cv=self.cv, params=dict(more)) for each in models]
        self.scores_ = np.array([float(np.mean(each)) for each in found])
        index = int(self.scores_.argmax())
        best = models[index].fit(X, y, **more)
        return self._keep(index, best, best.spent_)

    def _fit_by_private_choice(
        self, models: Sequence[Any], X: npt.NDArray[Any], y: npt.NDArray[Any], more: Mapping[str, Any]
    ) -> Self:
        if not hasattr(models[0], "predict_proba"):
            raise InputError("Expected a classifier, whose right labels are counted, or public rows.")
        held = self._hold_out(X, _requested(models[0]).relation)
        rest = ~held
        fitted = [models[0].fit(X[rest], y[rest], **more)]
        with warnings.catch_warnings():  # that all candidates use the same rows is in the price
            warnings.filterwarnings("ignore", message="Private rows of this fit were used before")
            fitted += [each.fit(X[rest], y[rest], **more) for each in models[1:]]
        with keeping(fitted, fitted[0].classes_) as candidates:
            question = HypothesisChoice(
                candidates=candidates,
                n_classes=len(fitted[0].classes_),
                guarantee=self._choice(_requested(models[0])),
            )
            holding = self._hold(fitted[0], X[held], y[held], question)
            learner = salt_learner(ask_one("owner", question), holding.salt)
            with settling([holding]):
                release = self.release_ = run(learner, {"owner": holding.owner})
                chosen = state_spent([holding])
        warn_of_earlier_uses([holding])
        spent = [each for each in (fitted[-1].spent_, chosen) if each is not None]
        best = int(release["choice"][0])
        return self._keep(best, fitted[best], weakest(spent) if spent else None)

    def _hold_out(self, X: npt.NDArray[Any], relation: Relation) -> npt.NDArray[np.bool_]:
        """Which rows are held out; no row decides it for another."""
        share = _check.probability(held_out=self.held_out)
        seed = _check.count(least=0, random_state=self.random_state)
        if relation is Relation.ADD_REMOVE:
            held = digest_rows(X, key=f"held out {seed}".encode()) < np.uint64(int(share * 2**64))
        else:
            order = np.random.default_rng(seed).permutation(len(X))
            held = order < math.ceil(share * len(X))
        if held.all() or not held.any():
            raise InputError("Expected rows to hold out and rows to fit; there are too few.")
        return np.asarray(held)

    def _hold(self, model: Any, X: Any, y: Any, question: HypothesisChoice) -> Holding:
        bounds = model.bounds_ if hasattr(model, "bounds_") else model._bounds()
        label = Category(name="label", values=tuple(model.classes_.tolist()))
        guarantee = question.guarantee
        size = None if guarantee.relation is Relation.ADD_REMOVE else len(X)
        return hold_rows(
            X,
            [question],
            y=y,
            schema=Schema.of_numbers(bounds=bounds, width=X.shape[1], size=size, label=label),
            budget=guarantee,
            name="held out",
            ledger=model.ledger,
            dataset=model.dataset,
            policy=Policy(longest_answer=LONGEST_ANSWER),
            rehearsal=model.rehearsal,
        )

    def _keep(self, index: int, best: Any, spent: Guarantee | None) -> Self:
        self.best_index_, self.best_estimator_, self.spent_ = index, best, spent
        self.best_params_ = list(ParameterGrid({} if self.param_grid is None else self.param_grid))[index]
        if hasattr(best, "classes_"):
            self.classes_ = best.classes_
        self.n_features_in_ = best.n_features_in_
        return self


def _requested(model: Any) -> Guarantee:
    """What one fit of an estimator is asked to keep."""
    numbers = {name: getattr(model, name) for name in ("epsilon", "delta", "rho")}
    return request(**numbers, relation=getattr(model, "relation", "replace-one"))


def _sum(guarantees: Sequence[Guarantee]) -> Guarantee:
    """What fits that are all planned beforehand keep together, by basic composition."""
    first = guarantees[0]
    about: dict[str, Any] = {"relation": first.relation, "unit": first.unit}
    if all(isinstance(each, Pure) for each in guarantees):
        return Pure(epsilon=math.fsum(_number(each, "epsilon") for each in guarantees), **about)
    if not any(isinstance(each, Approximate) for each in guarantees):
        return ZCDP(rho=math.fsum(each.zcdp_constant() for each in guarantees), **about)
    if any(isinstance(each, ZCDP) for each in guarantees):
        raise InputError("Expected candidates that are all asked for epsilon, or all for rho.")
    epsilon, delta = (math.fsum(_number(each, name) for each in guarantees) for name in ("epsilon", "delta"))
    return Approximate(epsilon=epsilon, delta=delta, **about)


def _number(guarantee: Guarantee, name: str) -> float:
    return float(getattr(guarantee, name, 0.0))


__all__ = ["PrivateSearchCV"]
