"""Search for settings: scored on public rows, or chosen privately on rows that were held out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid, cross_val_score
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada._progress import track
from privada.exceptions import InputError
from privada.methods.cells.questions.partition import NearestCells
from privada.methods.frames import names_of, refuse_sparse
from privada.methods.marginals.questions import HypothesisChoice, OutcomeTables
from privada.model_selection.division import hold_out, noise_of_divisions, number_units
from privada.model_selection.kept_model import keeping
from privada.model_selection.random_stopping import (
    FACTOR,
    RandomStopping,
    default_runs,
    keeping_search,
    take_winner,
)
from privada.parties.one_process.dataset import Dataset
from privada.parties.one_process.holding import (
    Holding,
    count_persons,
    hold_rows,
    read_persons,
    settling,
    state_spent,
    warn_of_earlier_uses,
)
from privada.parties.one_process.process_ledger import Statement, join_statements, note_division, public_rows
from privada.parties.permissions import Policy
from privada.parties.protocol import ask_one
from privada.parties.running import run as run_learner
from privada.parties.schema import Category, Schema
from privada.privacy.accounting.accountant import weakest
from privada.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP, make_guarantee
from privada.privacy.noise import Noise
from privada.privacy.relation import Relation
from privada.privacy.release import Question, Release

LONGEST_ANSWER = 1e9  # seconds: who searches waits for their own machine
TRIED_ROWS = 64  # public ones, on which candidates are tried before a charge
CHOICES = ("auto", "exponential", "random stopping")


class PrivateSearchCV(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Search for the settings of an estimator, and count what the search costs.

    With ``public``, candidates are fitted and scored on public rows in the place of the private ones, by
    cross-validation, and the private rows are used for one fit with the best settings. Without, candidates
    are fitted on some of the private rows, and their score is the number of held-out private rows that they
    label correctly. There are two ways to choose, and by default the cheaper one is taken:

    * ``"exponential"``: every candidate is fitted and released, and the exponential mechanism chooses one.
      The fits add up.
    * ``"random stopping"``: candidates are drawn at random, fitted and scored privately, a random number of
      times. Only the best is released, and it costs three times as much as one run, however many
      candidates there are. For fits of pure epsilon.

    Parameters
    ----------
    estimator : estimator of privada
        A classifier, unless ``public`` is given.
    param_grid : dict or list of dict
        Settings to try, as for `sklearn.model_selection.GridSearchCV`.
    public : (X, y), default=None
        Public rows that resemble the private ones.
    selection_epsilon : float, default=None
        Pure epsilon of the private choice, or of each score under random stopping; needed without
        ``public``.
    choice : "auto", "exponential" or "random stopping", default="auto"
        How the private choice is made; "auto" takes what costs less (`prices`).
    runs : int, default=None
        Mean number of runs under random stopping, 9 (m - 1) for m candidates by default. A candidate is
        tried with probability runs / (runs + m - 1), which is 0.9 then. The price does not depend on it.
    held_out : float, default=0.2
        Share of the private rows that the choice is made on; no candidate is fitted on them.
    cv : int, default=5
        Folds of the public rows.
    random_state : None
        Has no effect, and is going to be removed: which rows are held out is drawn from the noise of the
        operating system, and stays secret.

    Attributes
    ----------
    best_params_, best_index_, best_estimator_
    quote_ : Guarantee
        What the search costs at most, as it was known before it began; see `price`.
    spent_ : Guarantee or None
        What everything that these rows were used for has cost, this search included.
    release_ : Release or None
        The private choice.
    choice_ : str
        How it was made: "public", "exponential" or "random stopping".
    scores_ : array or None
        Mean scores of the candidates on public rows; None where the choice was private.

    Privacy
    -------
    Unit and relation are the estimator's. Proof: privacy.md, "Choosing among candidates". Under random
    stopping, the price covers the best model alone: do not publish how many runs there were, nor how long
    the search took.

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
        choice: str = "auto",
        runs: int | None = None,
        held_out: float = 0.2,
        cv: int = 5,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.public = public
        self.selection_epsilon = selection_epsilon
        self.choice = choice
        self.runs = runs
        self.held_out = held_out
        self.cv = cv
        self.random_state = random_state

    def price(self) -> Guarantee:
        """What a search would cost at most, by itself; no row is needed to know it.

        It is the smallest of `prices`, or that of the ``choice`` that was asked for.
        """
        return self.prices()[self._chosen()]

    def prices(self) -> dict[str, Guarantee]:
        """What a search would cost at most by each way to choose that there is for these candidates.

        By the exponential mechanism, a row is either fitted on or held out, and the larger of both counts;
        on a ledger everything is charged to one data set, and adds up. Random stopping is one charge,
        three times the larger of a fit and a score.
        """
        models = list(self._candidates())
        fits = [_requested(model) for model in models]
        if self.public is not None:
            return {"public": weakest(fits)}
        if any((each.relation, each.unit) != (fits[0].relation, fits[0].unit) for each in fits):
            raise InputError("Expected candidates of one relation and one unit.")
        score = self._choice(fits[0])
        on_ledger = self.estimator._dataset().ledger is not None
        both = _sum([*fits, score]) if on_ledger else weakest([_sum(fits), score])
        found: dict[str, Guarantee] = {"exponential": both}
        if all(isinstance(each, PureDP) for each in fits) and all(map(_is_described, models)):
            found["random stopping"] = replace(score, epsilon=FACTOR * self._run_epsilon(models))
        return found

    def _run_epsilon(self, models: Sequence[Any]) -> float:
        """Of one run of random stopping: a row is fitted on or held out, and any candidate may be drawn."""
        fits = [_requested(model) for model in models]
        return max(_number(each, "epsilon") for each in (*fits, self._choice(fits[0])))

    def _chosen(self) -> str:
        """Which way to choose is taken."""
        choice = _check.one_of(CHOICES, choice=self.choice)
        prices = self.prices()
        if self.public is not None:
            return "public"
        if choice != "auto" and choice not in prices:
            raise InputError(
                "Expected fits of pure epsilon, with classes= and bounds= given, for random stopping."
            )
        if choice != "auto":
            return choice
        return min(prices, key=lambda name: _number(prices[name], "epsilon"))

    def fit(self, X: Any, y: Any = None, **public: Any) -> Self:
        """Search; ``public`` are further arguments of the estimator's ``fit``, such as its other domain.

        ``person``, an array, may be among them: persons are held out whole.
        """
        self.quote_, self.choice_ = self.price(), self._chosen()
        models = list(self._candidates())
        self.release_: Release | None = None
        self.scores_: npt.NDArray[np.float64] | None = None
        if self.public is not None:
            return self._fit_by_public_scores(models, X, y, public)
        if not hasattr(models[0], "predict_proba"):
            raise InputError("Expected a classifier, whose right labels are counted, or public rows.")
        if any(model.schema is not None for model in models):
            raise InputError(
                "Expected an estimator without schema=, or public rows: encode the frame by schema.encode "
                "first, and give the bounds of schema.box."
            )
        refuse_sparse(X, name="X")
        rows = X if names_of(X) is not None else np.asarray(X)
        if self.choice_ == "random stopping":
            return self._fit_by_random_stopping(models, rows, np.asarray(y), public)
        return self._fit_by_private_choice(models, rows, np.asarray(y), public)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict by the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    def score(self, X: Any, y: Any) -> float:
        """Score of the best estimator on **public** rows: a score on private ones is no release."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y))

    def _candidates(self) -> Iterator[Any]:
        if self.estimator is None or not hasattr(self.estimator, "dataset"):
            raise InputError("Expected estimator to be one of privada's, which charge what they use.")
        grid = ParameterGrid({} if self.param_grid is None else self.param_grid)
        if self.public is None and len(grid) < 2:
            raise InputError(f"Expected at least 2 candidates to choose among, got {len(grid)}.")
        for settings in grid:
            model = clone(self.estimator).set_params(**settings)
            model._allow_empty = self.public is None
            yield model

    def _choice(self, fit: Guarantee) -> PureDP:
        if self.selection_epsilon is None:
            raise InputError("Expected public rows, or selection_epsilon for a private choice.")
        return PureDP(epsilon=self.selection_epsilon, relation=fit.relation, unit=fit.unit)

    def _fit_by_public_scores(self, models: Sequence[Any], X: Any, y: Any, more: Mapping[str, Any]) -> Self:
        assert self.public is not None
        rows, labels = self.public
        with public_rows():
            found = [
                cross_val_score(each, rows, labels, cv=self.cv, params=dict(more))
                for each in track(models, "candidates on public rows")
            ]
        self.scores_ = np.array([float(np.mean(each)) for each in found])
        index = int(self.scores_.argmax())
        best = models[index].fit(X, y, **more)
        return self._keep(index, best, best._statement)

    def _fit_by_private_choice(
        self, models: Sequence[Any], X: Any, y: npt.NDArray[Any], more: Mapping[str, Any]
    ) -> Self:
        person = None if (given := more.get("person")) is None else read_persons(given)
        held = self._hold_out(X, person, _requested(models[0]))
        note_division(
            X,
            held.astype(np.int64),
            count=2,
            has_fixed_sizes=self.quote_.relation is not Relation.ADD_REMOVE,
            person=person,
            columns=names_of(X),
        )
        rest = ~held
        if person is not None:
            more = {**more, "person": person[rest]}
        waiting = track(models, "candidates")
        fit_on = _safe_indexing(X, rest)
        fitted = [next(waiting).fit(fit_on, y[rest], **more)]
        with warnings.catch_warnings():  # that all candidates use the same rows is in the price
            warnings.filterwarnings("ignore", message="Private rows of this fit were used before")
            fitted += [each.fit(fit_on, y[rest], **more) for each in waiting]
        with keeping(fitted, fitted[0].classes_) as candidates:
            question = HypothesisChoice(
                candidates=candidates,
                n_classes=len(fitted[0].classes_),
                guarantee=self._choice(_requested(models[0])),
            )
            people = None if person is None else person[held]
            rows = fitted[0]._read_rows(_safe_indexing(X, held))
            holding = self._hold(fitted[0], rows, y[held], people, question)
            learner = ask_one("owner", question).again(holding.salt)
            with settling([holding]):
                release = self.release_ = run_learner(learner, {"owner": holding.owner})
                chosen = state_spent([holding])
        warn_of_earlier_uses([holding])
        best = int(release["choice"][0])
        return self._keep(best, fitted[best], join_statements([fitted[best]._statement, chosen]))

    def _fit_by_random_stopping(
        self, models: Sequence[Any], X: Any, y: npt.NDArray[Any], more: Mapping[str, Any]
    ) -> Self:
        person = None if (given := more.get("person")) is None else read_persons(given)
        held = self._hold_out(X, person, _requested(models[0]))
        self._try_on_public_rows(models, X.shape[1], more)
        run = self._run_on(models, X, y, person, held, more)
        with keeping_search(run, epsilon=self._run_epsilon(models)) as name:
            runs = default_runs(len(models)) if self.runs is None else self.runs
            question = RandomStopping(search=name, candidates=len(models), runs=runs, guarantee=self.quote_)
            (rows,) = clone(models[0])._read_frames(X=X)
            holding = self._hold(models[0], rows, y, person, question)
            learner = ask_one("owner", question).again(holding.salt)
            with settling([holding]):
                release = self.release_ = run_learner(learner, {"owner": holding.owner})
                spent = state_spent([holding])
                best = take_winner(name, release, holding.owner.ledger.key)
        warn_of_earlier_uses([holding])
        index = int(release["choice"][0])
        best.set_params(**{each: getattr(models[index], each) for each in ("dataset", "insecure_seed")})
        best._statement = spent
        return self._keep(index, best, spent)

    def _run_on(
        self,
        models: Sequence[Any],
        X: Any,
        y: npt.NDArray[Any],
        person: npt.NDArray[Any] | None,
        held: npt.NDArray[np.bool_],
        more: Mapping[str, Any],
    ) -> Callable[[Noise], tuple[float, int, Any]]:
        """One run: a candidate at random, its fit on some rows, its noisy score on the others."""
        rest, score = ~held, self._choice(_requested(models[0]))
        if person is not None:
            more = {**more, "person": person[rest]}
        people = None if person is None else person[held]
        fit_on, held_out = _safe_indexing(X, rest), _safe_indexing(X, held)

        def run(noise: Noise) -> tuple[float, int, Any]:
            index = noise.below(len(models))
            model = _uncharged(models[index])
            if model.insecure_seed is not None:  # or all fits of a candidate would have the same noise
                model.set_params(insecure_seed=noise.below(2**31))
            model.fit(fit_on, y[rest], **more)
            scored = model._read_rows(held_out)
            return self._score(model, scored, y[held], people, score), index, model

        return run

    def _score(self, model: Any, X: Any, y: Any, person: Any, guarantee: PureDP) -> float:
        """Right labels less wrong ones, with noise."""
        with keeping([model], model.classes_) as (hypothesis,):
            question = OutcomeTables(
                tables=(NearestCells(centers=np.zeros((1, X.shape[1]))),),
                n_classes=len(model.classes_),
                hypothesis=hypothesis,
                count="signed",
                guarantee=guarantee,
            )
            holding = self._hold(model, X, y, person, question)
            with settling([holding]):
                release = run_learner(ask_one("owner", question), {"owner": holding.owner})
        return -float(release["table.0"][0])

    def _try_on_public_rows(self, models: Sequence[Any], width: int, more: Mapping[str, Any]) -> None:
        """Fit every candidate on generated rows: one that cannot be fitted is found before a charge."""
        size = getattr(self.estimator, "size", None) or TRIED_ROWS
        low, high = (np.broadcast_to(each, (width,)) for each in models[0]._bounds())
        X = np.random.default_rng(0).uniform(low, high, size=(size, width))
        y = np.resize(np.asarray(tuple(models[0].classes)), size)
        persons = {"person": np.arange(size)} if more.get("person") is not None else {}
        with public_rows(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for each in track(models, "candidates on generated rows"):
                _uncharged(each).fit(X, y, **{**more, **persons})

    def _hold_out(self, X: Any, person: Any, fit: Guarantee) -> npt.NDArray[np.bool_]:
        """Which rows are held out, all of a person or none; nobody outside this search may learn it."""
        if self.random_state is not None:
            warnings.warn(
                "random_state has no effect and is going to be removed: rows are held out secretly.",
                DeprecationWarning,
                stacklevel=4,
            )
        return hold_out(
            number_units(len(X), person),
            share=_check.probability(held_out=self.held_out),
            relation=fit.relation,
            noise=noise_of_divisions(self.estimator.insecure_seed),
        )

    def _hold(self, model: Any, X: Any, y: Any, person: Any, question: Question) -> Holding:
        bounds = model.bounds_ if hasattr(model, "bounds_") else model._bounds()
        classes = np.asarray(model.classes_ if hasattr(model, "classes_") else tuple(model.classes))
        label = Category(name="label", values=tuple(classes.tolist()))
        guarantee = question.guarantee
        size = len(X) if person is None else count_persons(person) * guarantee.unit.max_rows
        persons = {} if person is None else {"person_id": "person", "max_rows": guarantee.unit.max_rows}
        return hold_rows(
            X,
            [question],
            y=y,
            person=person,
            schema=Schema.of_numbers(
                bounds=bounds,
                width=X.shape[1],
                size=None if guarantee.relation is Relation.ADD_REMOVE else size,
                label=label,
                **persons,
            ),
            budget=guarantee,
            name="held out",
            ledger=model._dataset().ledger,
            dataset=model._dataset().names(1)[0],
            table=model._dataset().table,
            policy=Policy(longest_answer=LONGEST_ANSWER),
            insecure_seed=model.insecure_seed,
            allow_empty=True,  # that no row happens to be held out is no public fact
        )

    @property
    def spent_(self) -> Guarantee | None:
        """What everything that these rows were used for has cost, up to now."""
        if "_statement" not in vars(self):
            raise AttributeError("This PrivateSearchCV is not fitted yet: nothing was spent.")
        return self._statement.read()

    def _keep(self, index: int, best: Any, spent: Statement) -> Self:
        self.best_index_, self.best_estimator_, self._statement = index, best, spent
        self.best_params_ = list(ParameterGrid({} if self.param_grid is None else self.param_grid))[index]
        if hasattr(best, "classes_"):
            self.classes_ = best.classes_
        self.n_features_in_ = best.n_features_in_
        if hasattr(best, "feature_names_in_"):
            self.feature_names_in_ = best.feature_names_in_
        return self


def _uncharged(model: Any) -> Any:
    """A clone that charges no ledger: the search was charged as a whole."""
    uncharged = clone(model).set_params(dataset=Dataset(max_rows=model._dataset().max_rows))
    uncharged._allow_empty = model._allow_empty
    return uncharged


def _is_described(model: Any) -> bool:
    """Whether classes and bounds are known before a fit."""
    return getattr(model, "classes", None) is not None and model._bounds() is not None


def _requested(model: Any) -> Guarantee:
    """What one fit of an estimator is asked to keep."""
    numbers = {name: getattr(model, name) for name in ("epsilon", "delta", "rho")}
    return make_guarantee(**numbers, relation=getattr(model, "relation", "replace-one"), unit=model._unit())


def _sum(guarantees: Sequence[Guarantee]) -> Guarantee:
    """What fits that are all planned beforehand keep together, by basic composition."""
    first = guarantees[0]
    about: dict[str, Any] = {"relation": first.relation, "unit": first.unit}
    if all(isinstance(each, PureDP) for each in guarantees):
        return PureDP(epsilon=math.fsum(_number(each, "epsilon") for each in guarantees), **about)
    if not any(isinstance(each, ApproxDP) for each in guarantees):
        return ZCDP(rho=math.fsum(each.zcdp_constant() for each in guarantees), **about)
    if any(isinstance(each, ZCDP) for each in guarantees):
        raise InputError("Expected candidates that are all asked for epsilon, or all for rho.")
    epsilon, delta = (math.fsum(_number(each, name) for each in guarantees) for name in ("epsilon", "delta"))
    return ApproxDP(epsilon=epsilon, delta=delta, **about)


def _number(guarantee: Guarantee, name: str) -> float:
    return float(getattr(guarantee, name, 0.0))


__all__ = ["PrivateSearchCV"]
