"""Search for settings: scored on public rows, or chosen privately on held-out rows."""

from __future__ import annotations

import math
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

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
from privada.methods.hypotheses.forms import Hypothesis
from privada.methods.marginals.questions import HypothesisChoice, OutcomeTables
from privada.model_selection.division import hold_out, noise_of_divisions, number_units
from privada.model_selection.random_stopping import (
    FACTOR,
    RandomStopping,
    default_runs,
    keep_search,
    take_winner,
)
from privada.parties.one_process.holding import (
    Dataset,
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

LONGEST_ANSWER = 1e9  # seconds: the owner is this process, which may wait for itself
TRIED_ROWS = 64  # generated rows on which candidates are tried before a charge
SECONDS_PER_ROW = 1e-2  # upper bound of the time that a kept model takes for one row
CHOICES = ("auto", "exponential", "random stopping")
KEPT_MODELS: dict[str, tuple[Any, tuple[Any, ...]]] = {}


@dataclass(frozen=True, kw_only=True, eq=False)
class KeptModel(Hypothesis):
    """A fitted model that this process keeps under a name, as a hypothesis; no other process knows it.

    Privacy
    -------
    Rows are predicted one by one, so that the class of a record is a function of that record alone: in a
    matrix product of many rows, rounding could depend on others.
    """

    name: str
    form: ClassVar[str] = "kept"

    def codes(self, X: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        model, classes = self._find()
        codes = {name: code for code, name in enumerate(classes)}
        return np.array([codes.get(model.predict(row[None])[0], -1) for row in X], dtype=np.int64)

    def fits(self, width: int, n_classes: int) -> None:
        """Try it on one public row."""
        _, classes = self._find()
        if len(classes) != n_classes:
            raise InputError(f"Expected a model of {n_classes} classes, got one of {len(classes)}.")
        self.codes(np.zeros((1, width)))

    def seconds(self, width: int) -> float:  # noqa: ARG002
        return SECONDS_PER_ROW

    def _find(self) -> tuple[Any, tuple[Any, ...]]:
        if self.name not in KEPT_MODELS:
            raise InputError("This model is kept by another process, or no longer; nothing was charged.")
        return KEPT_MODELS[self.name]


@contextmanager
def keep_models(models: Sequence[Any], classes: Sequence[Any]) -> Iterator[tuple[KeptModel, ...]]:
    """Keep fitted models for the time of one question."""
    names = [f"{type(model).__name__}-{uuid.uuid4().hex}" for model in models]
    KEPT_MODELS.update({name: (model, tuple(classes)) for name, model in zip(names, models, strict=True)})
    try:
        yield tuple(KeptModel(name=name) for name in names)
    finally:
        for name in names:
            KEPT_MODELS.pop(name, None)


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
        Has no effect and will be removed: which rows are held out is drawn from the noise of the
        operating system, and stays secret.

    Attributes
    ----------
    best_params_, best_index_, best_estimator_
    quote_ : Guarantee
        What the search costs at most, as known before it began; see `price`.
    spent_ : Guarantee or None
        What all uses of these rows have cost, this search included.
    release_ : Release or None
        The private choice.
    choice_ : str
        How the choice was made: "public", "exponential" or "random stopping".
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
        """Compute what a search would cost at most, by itself; this needs no row.

        It is the smallest of `prices`, or that of the parameter ``choice``.
        """
        return self.prices()[self._find_choice()]

    def prices(self) -> dict[str, Guarantee]:
        """Compute what a search would cost at most by each way to choose among these candidates.

        By the exponential mechanism, a row is either fitted on or held out, and the larger of both counts;
        on a ledger everything is charged to one data set, and adds up. Random stopping is one charge,
        three times the larger of a fit and a score.
        """
        models = list(self._candidates())
        fits = [_requested(model) for model in models]
        if self.public is not None:
            return {"public": weakest(fits)}
        if any((fit.relation, fit.unit) != (fits[0].relation, fits[0].unit) for fit in fits):
            raise InputError("Expected candidates of one relation and one unit.")
        score = self._score_guarantee(fits[0])
        on_ledger = self.estimator._dataset().ledger is not None
        both = _add_up([*fits, score]) if on_ledger else weakest([_add_up(fits), score])
        prices: dict[str, Guarantee] = {"exponential": both}
        # Random stopping must know classes and bounds before a fit
        described = all(
            getattr(model, "classes", None) is not None and model._bounds() is not None for model in models
        )
        if described and all(isinstance(fit, PureDP) for fit in fits):
            prices["random stopping"] = replace(score, epsilon=FACTOR * self._run_epsilon(models))
        return prices

    def _run_epsilon(self, models: Sequence[Any]) -> float:
        """Compute the epsilon of one run: a row is fitted on or held out, and any candidate may be drawn."""
        fits = [_requested(model) for model in models]
        return max(_number(price, "epsilon") for price in (*fits, self._score_guarantee(fits[0])))

    def _find_choice(self) -> str:
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

        An array ``person`` may be among them: all rows of a person are then held out, or none.
        """
        self.quote_, self.choice_ = self.price(), self._find_choice()
        models = list(self._candidates())
        self.release_: Release | None = None
        self.scores_: npt.NDArray[np.float64] | None = None
        if self.public is not None:
            with public_rows():
                folds = [
                    cross_val_score(model, *self.public, cv=self.cv, params=dict(public))
                    for model in track(models, "candidates on public rows")
                ]
            self.scores_ = np.array([float(np.mean(scores)) for scores in folds])
            index = int(self.scores_.argmax())
            best = models[index].fit(X, y, **public)
            return self._keep(index, best, best._statement)
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

    def _score_guarantee(self, fit: Guarantee) -> PureDP:
        """Return the guarantee of the private choice, or of one score under random stopping."""
        if self.selection_epsilon is None:
            raise InputError("Expected public rows, or selection_epsilon for a private choice.")
        return PureDP(epsilon=self.selection_epsilon, relation=fit.relation, unit=fit.unit)

    def _fit_by_private_choice(
        self, models: Sequence[Any], X: Any, y: npt.NDArray[Any], more: Mapping[str, Any]
    ) -> Self:
        person = None if (people := more.get("person")) is None else read_persons(people)
        is_held_out = self._hold_out(X, person, _requested(models[0]))
        note_division(
            X,
            is_held_out.astype(np.int64),
            count=2,
            has_fixed_sizes=self.quote_.relation is not Relation.ADD_REMOVE,
            person=person,
            columns=names_of(X),
        )
        fitted_on = ~is_held_out
        if person is not None:
            more = {**more, "person": person[fitted_on]}
        candidates_left = track(models, "candidates")
        rows = _safe_indexing(X, fitted_on)
        fitted = [next(candidates_left).fit(rows, y[fitted_on], **more)]
        with warnings.catch_warnings():
            # That all candidates use the same rows is in the price
            warnings.filterwarnings("ignore", message="Private rows of this fit were used before")
            fitted += [model.fit(rows, y[fitted_on], **more) for model in candidates_left]
        with keep_models(fitted, fitted[0].classes_) as candidates:
            question = HypothesisChoice(
                candidates=candidates,
                n_classes=len(fitted[0].classes_),
                guarantee=self._score_guarantee(_requested(models[0])),
            )
            people = None if person is None else person[is_held_out]
            rows = fitted[0]._read_rows(_safe_indexing(X, is_held_out))
            holding = self._hold(fitted[0], rows, y[is_held_out], people, question)
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
        person = None if (people := more.get("person")) is None else read_persons(people)
        is_held_out = self._hold_out(X, person, _requested(models[0]))
        # Fit every candidate on generated rows: one that cannot be fitted is found before a charge
        size, width = getattr(self.estimator, "size", None) or TRIED_ROWS, X.shape[1]
        low, high = (np.broadcast_to(bound, (width,)) for bound in models[0]._bounds())
        generated = np.random.default_rng(0).uniform(low, high, size=(size, width))
        labels = np.resize(np.asarray(tuple(models[0].classes)), size)
        persons = {} if person is None else {"person": np.arange(size)}
        with public_rows(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for model in track(models, "candidates on generated rows"):
                _clone_uncharged(model).fit(generated, labels, **{**more, **persons})

        fitted_on, guarantee = ~is_held_out, self._score_guarantee(_requested(models[0]))
        if person is not None:
            more = {**more, "person": person[fitted_on]}
        held_out_people = None if person is None else person[is_held_out]
        fit_rows, held_out_rows = _safe_indexing(X, fitted_on), _safe_indexing(X, is_held_out)

        def run(noise: Noise) -> tuple[float, int, Any]:
            index = noise.below(len(models))
            model = _clone_uncharged(models[index])
            if model.insecure_seed is not None:  # or all fits of a candidate would have the same noise
                model.set_params(insecure_seed=noise.below(2**31))
            model.fit(fit_rows, y[fitted_on], **more)
            rows = model._read_rows(held_out_rows)
            # The score: right labels less wrong ones, with noise
            with keep_models([model], model.classes_) as (hypothesis,):
                question = OutcomeTables(
                    tables=(NearestCells(centers=np.zeros((1, rows.shape[1]))),),
                    n_classes=len(model.classes_),
                    hypothesis=hypothesis,
                    count="signed",
                    guarantee=guarantee,
                )
                holding = self._hold(model, rows, y[is_held_out], held_out_people, question)
                with settling([holding]):
                    release = run_learner(ask_one("owner", question), {"owner": holding.owner})
            return -float(release["table.0"][0]), index, model

        with keep_search(run, epsilon=self._run_epsilon(models)) as name:
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
        best.set_params(**{name: getattr(models[index], name) for name in ("dataset", "insecure_seed")})
        best._statement = spent
        return self._keep(index, best, spent)

    def _hold_out(self, X: Any, person: Any, fit: Guarantee) -> npt.NDArray[np.bool_]:
        """Choose secretly which rows are held out: all of a person, or none."""
        if self.random_state is not None:
            warnings.warn(
                "random_state has no effect and will be removed: rows are held out secretly.",
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
            allow_empty=True,  # whether no row happens to be held out is not public
        )

    @property
    def spent_(self) -> Guarantee | None:
        """What all uses of these rows have cost up to now."""
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


def _clone_uncharged(model: Any) -> Any:
    """Clone a model so that it charges no ledger: the search was charged as a whole."""
    uncharged = clone(model).set_params(dataset=Dataset(max_rows=model._dataset().max_rows))
    uncharged._allow_empty = model._allow_empty
    return uncharged


def _requested(model: Any) -> Guarantee:
    """Make the guarantee that one fit of an estimator is asked for."""
    numbers = {name: getattr(model, name) for name in ("epsilon", "delta", "rho")}
    return make_guarantee(**numbers, relation=getattr(model, "relation", "replace-one"), unit=model._unit())


def _add_up(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Add up guarantees of fits that are all planned beforehand, by basic composition."""
    first = guarantees[0]
    about: dict[str, Any] = {"relation": first.relation, "unit": first.unit}
    if all(isinstance(fit, PureDP) for fit in guarantees):
        return PureDP(epsilon=math.fsum(_number(fit, "epsilon") for fit in guarantees), **about)
    if not any(isinstance(fit, ApproxDP) for fit in guarantees):
        return ZCDP(rho=math.fsum(fit.zcdp_constant() for fit in guarantees), **about)
    if any(isinstance(fit, ZCDP) for fit in guarantees):
        raise InputError("Expected candidates that are all asked for epsilon, or all for rho.")
    epsilon, delta = (math.fsum(_number(fit, name) for fit in guarantees) for name in ("epsilon", "delta"))
    return ApproxDP(epsilon=epsilon, delta=delta, **about)


def _number(guarantee: Guarantee, name: str) -> float:
    return float(getattr(guarantee, name, 0.0))


__all__ = ["KeptModel", "PrivateSearchCV", "keep_models"]
