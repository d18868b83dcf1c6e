"""Evaluation with scikit-learn's API: both sides in one process."""

from __future__ import annotations

from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from privada.exceptions import InputError
from privada.methods.evaluation.learner.results import Classification
from privada.methods.evaluation.learner.results import Evaluation as Result
from privada.methods.evaluation.method import Evaluation
from privada.methods.evaluation.questions import ErrorMoments, OutcomeCounts
from privada.methods.frames import in_order
from privada.methods.method import Public
from privada.methods.method_estimator import MethodEstimator
from privada.methods.sides import PrivateRows
from privada.parties.schema import Category, Number, Schema
from privada.privacy.guarantee import Guarantee


class PrivateEvaluator(MethodEstimator):
    """How well a model does on private rows, with intervals for noise and sampling.

    Attributes
    ----------
    evaluation_ : Classification or Regression
    release_, guarantee_
        What left the owner, and its price.
    spent_
        What everything that these rows were used for cost together.

    Privacy
    -------
    Unit: one row, which adds 1 to one entry of a table, or at most 1 to each of three sums.
    Proof: privacy.md, section 6.8.

    Examples
    --------
    >>> import numpy as np
    >>> from privada.methods.hypotheses import linear
    >>> X = np.linspace(0, 1, 400)[:, None]; y = (X[:, 0] > 0.5).astype(int)
    >>> judge = PrivateEvaluator(linear([[9.0]], [-4.5]), classes=(0, 1), bounds=(0, 1), epsilon=1)
    >>> judge.fit(X, y).evaluation_.accuracy.high > 0.9
    True
    >>> print(judge.guarantee_)
    ε = 1 (pure), add/remove one row
    """

    method_type = Evaluation
    shared = (
        *("epsilon", "delta", "rho", "classes", "bounds", "label_bounds", "relation", "size"),
        *("insecure_seed", "dataset", "schema"),
    )
    positional = ("model",)

    def fit(self, X: Any = None, y: Any = None, *, person: Any = None, owner: Any = None) -> Self:
        """Ask once: an owner of private rows ``X, y``, or the `Owner` that is given in their place.

        ``person`` has the person of each row, or names a column of the frame ``X``,
        beside a `Dataset` with ``max_rows``. Columns of a frame are those that the model was fitted with, in
        any order.
        """
        names = self._model_columns()
        if owner is not None and names is not None:
            columns = owner.schema.features
            if sorted(columns) == sorted(names) and columns != names:
                raise InputError("Expected the owner's columns in the order in which the model was fitted.")
        return self._fit(X, y, person=person, owner=owner)

    def _model_columns(self) -> tuple[str, ...] | None:
        """The columns that the model was fitted with, if it knows their names and no schema orders them."""
        names = getattr(self.model, "feature_names_in_", None)
        return None if names is None or self.schema is not None else tuple(names)

    def _read_frames(self, **frames: Any) -> list[Any]:
        names, rows = self._model_columns(), frames["X"]
        if names is not None and rows is not None:
            frames["X"] = in_order(self._without_person(rows), names, name="X")
        return super()._read_frames(**frames)

    def _announced_size(self, rows: PrivateRows) -> int | None:  # noqa: ARG002 - none is guessed
        return self.size

    def _label(self, public: Public) -> Category | Number:  # noqa: ARG002 - there are no public rows
        classes, bounds = self.classes, self.label_bounds
        if classes is None and bounds is None:
            classes, bounds = self._class_names(), self._label_limits()
        if (classes is None) == (bounds is None):
            raise InputError("Expected classes of a classifier, or label_bounds of a regressor; one of both.")
        if classes is not None:
            return Category(name="label", values=tuple(classes))
        low, high = bounds
        return Number(name="label", low=low, high=high)

    def _keep(self, model: Result, schema: Schema) -> None:  # noqa: ARG002 - the result has the classes
        self.evaluation_ = model
        self.release_, self.guarantee_ = model.release, model.release.guarantee

    def score(self, X: Any = None, y: Any = None) -> float:  # noqa: ARG002 - scikit-learn's signature
        """The accuracy, or minus the mean squared error, that was estimated; larger is better."""
        check_is_fitted(self)
        result = self.evaluation_
        return result.accuracy.value if isinstance(result, Classification) else -result.squared_error.value

    def plot(self, X: Any = None) -> Any:
        """A matplotlib figure: of the evaluation of a classifier, else of the release. ``X`` is not used."""
        del X
        check_is_fitted(self)
        result = self.evaluation_
        return result.plot() if isinstance(result, Classification) else self.release_.plot()


def evaluate(model: Any, X: Any = None, y: Any = None, *, owner: Any = None, **settings: Any) -> Result:
    """How well a model does on private rows, asked once.

    Parameters
    ----------
    model : Hypothesis, bytes, path, or fitted model
    X, y : array
        The private rows and their labels.
    owner : Owner, default=None
        Who holds them, in the place of ``X, y``.
    **settings
        Of `PrivateEvaluator`: bounds, classes or label_bounds, epsilon, ...

    Returns
    -------
    Classification or Regression

    Privacy
    -------
    As `PrivateEvaluator`.
    """
    return PrivateEvaluator(model, **settings).fit(X, y, owner=owner).evaluation_


def ask_about(
    model: Any, schema: Schema, *, guarantee: Guarantee, **settings: Any
) -> OutcomeCounts | ErrorMoments:
    """The question about a model that fits a public schema, with settings of `Evaluation`."""
    return Evaluation(model=model, **settings).make_question(schema, guarantee)


__all__ = ["PrivateEvaluator", "ask_about", "evaluate"]
