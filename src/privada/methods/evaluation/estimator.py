"""Evaluation with scikit-learn's API: both sides in one process."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada.exceptions import InputError
from privada.methods.estimating import PrivateEstimator, check_owner
from privada.methods.evaluation.learner.intervals import CONFIDENCE
from privada.methods.evaluation.learner.models import as_hypothesis, link_of
from privada.methods.evaluation.learner.results import Classification, Evaluation, learn
from privada.methods.evaluation.questions import ErrorMoments, OutcomeCounts, even_edges
from privada.methods.frames import in_order
from privada.parties.one_process.holding import Dataset
from privada.parties.schema import Category, Number, Schema
from privada.privacy.guarantee import Guarantee, make_guarantee

BINS = 10


class PrivateEvaluator(PrivateEstimator):
    """How well a model does on private rows, with intervals for noise and sampling.

    Parameters
    ----------
    model : Hypothesis, bytes, path, or fitted model
        What is evaluated: one of our forms, ONNX, an estimator of privada or of scikit-learn.
    classes : sequence, optional
        Public list of the labels, of a classifier.
    bounds : (low, high)
        Public limits of the features; rows beyond them are clipped.
    label_bounds : (low, high), optional
        Public limits of the label, of a regressor.
    largest : float, optional
        Squared errors are held to this; by default to the square of the label's range.
    bins : int, default=10
        Bins of scores between 0 and 1, for ROC and calibration; 1 asks for predictions alone, with less
        noise.
    positive : object, optional
        Of more than two classes, the one whose score is binned; by default the predicted one.
    epsilon, delta, rho : float
        The guarantee; epsilon and rho exclude each other.
    relation : str, default="add/remove"
        Neighbouring relation; under "replace-one" ``size`` is public and needed.
    size : int, optional
        Public number of rows.
    confidence : float, default=0.95
        Of every interval.
    insecure_seed : int, optional
        Seed for reproducible noise: not private.
    dataset : Dataset, default=None
        Name of the private data set and the ledger that is charged, and the bound on the rows of a person.
    schema : Schema, default=None
        Public description of a frame's columns, for text, categories, dates and missing values; its limits
        are the default of ``bounds``.

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

    def __init__(
        self,
        model: Any = None,
        *,
        classes: Any = None,
        bounds: Any = None,
        label_bounds: Any = None,
        largest: float | None = None,
        bins: int = BINS,
        positive: Any = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        relation: str = "add/remove",
        size: int | None = None,
        confidence: float = CONFIDENCE,
        insecure_seed: int | None = None,
        dataset: Dataset | None = None,
        schema: Schema | None = None,
    ) -> None:
        self.model = model
        self.classes = classes
        self.bounds = bounds
        self.label_bounds = label_bounds
        self.largest = largest
        self.bins = bins
        self.positive = positive
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.relation = relation
        self.size = size
        self.confidence = confidence
        self.insecure_seed = insecure_seed
        self.dataset = dataset
        self.schema = schema

    def fit(self, X: Any = None, y: Any = None, *, person: Any = None, owner: Any = None) -> Self:
        """Ask once: an owner of private rows ``X, y``, or the `Owner` that is given in their place.

        ``person`` has the person of each row, or names a column of the frame ``X``,
        beside a `Dataset` with ``max_rows``. Columns of a frame are those that the model was fitted with, in
        any order.
        """
        check_owner(owner, X=X, y=y)
        person = self._read_person(person, X, owner)
        X = self._as_fitted(X, owner)
        (X,) = self._read_frames(X=X)
        rows = np.asarray(X)
        if owner is None and (rows.ndim != 2 or y is None):
            raise InputError("Expected X, private rows of two dimensions, and y, their labels.")
        guarantee = make_guarantee(
            epsilon=self.epsilon, delta=self.delta, rho=self.rho, relation=self.relation, unit=self._unit()
        )
        schema = self._schema(rows.shape[1]) if owner is None else owner.schema
        question = ask_about(
            self.model,
            schema,
            guarantee=guarantee,
            bins=self.bins,
            positive=self.positive,
            largest=self.largest,
        )
        held = self._hold(
            rows,
            [question],
            y=np.asarray(y),
            person=person,
            schema=schema,
            budget=guarantee,
            name="fit",
            owner=owner,
        )
        names = schema.class_names
        learner = learn("owner", question, classes=names, size=schema.size, confidence=self.confidence)
        self.evaluation_: Evaluation = self._ask(learner, {"owner": held})
        self.release_ = self.evaluation_.release
        self.guarantee_ = self.release_.guarantee
        self.n_features_in_ = schema.width
        return self

    def score(self, X: Any = None, y: Any = None) -> float:  # noqa: ARG002 - scikit-learn's signature
        """The accuracy, or minus the mean squared error, that was estimated; larger is better."""
        check_is_fitted(self)
        found = self.evaluation_
        return found.accuracy.value if isinstance(found, Classification) else -found.squared_error.value

    def plot(self, X: Any = None) -> Any:
        """A matplotlib figure: of the evaluation of a classifier, else of the release. ``X`` is not used."""
        del X
        check_is_fitted(self)
        found = self.evaluation_
        return found.plot() if isinstance(found, Classification) else self.release_.plot()

    def _as_fitted(self, X: Any, owner: Any) -> Any:
        """A frame with the columns of the model in their order; an owner has to have them so."""
        names = getattr(self.model, "feature_names_in_", None)
        if names is None or self.schema is not None:
            return X
        if owner is not None:
            found = list(owner.schema.features)
            if sorted(found) == sorted(names) and found != list(names):
                raise InputError("Expected the owner's columns in the order in which the model was fitted.")
            return X
        return in_order(self._without_person(X), tuple(names), name="X")

    def _schema(self, width: int) -> Schema:
        if (bounds := self._bounds()) is None:
            raise InputError("Expected bounds=(low, high), public limits of the features; none are guessed.")
        if (self.classes is None) == (self.label_bounds is None):
            raise InputError("Expected classes of a classifier, or label_bounds of a regressor; one of both.")
        label: Category | Number
        if self.classes is not None:
            label = Category(name="label", values=tuple(self.classes))
        else:
            low, high = self.label_bounds
            label = Number(name="label", low=low, high=high)
        return Schema.of_numbers(bounds=bounds, width=width, size=self.size, label=label)


def evaluate(model: Any, X: Any = None, y: Any = None, *, owner: Any = None, **settings: Any) -> Evaluation:
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
    model: Any,
    schema: Schema,
    *,
    guarantee: Guarantee,
    bins: int = BINS,
    positive: Any = None,
    largest: float | None = None,
    salt: str = "",
) -> OutcomeCounts | ErrorMoments:
    """The question about a model that fits a public schema; nothing is charged if it is refused."""
    question: OutcomeCounts | ErrorMoments
    if schema.label_bounds is not None:
        hypothesis = as_hypothesis(model, width=schema.width)
        low, high = schema.label_bounds
        bound = (high - low) ** 2 if largest is None else largest
        question = ErrorMoments(hypothesis=hypothesis, largest=bound, guarantee=guarantee, salt=salt)
    else:
        names = schema.classes.names
        hypothesis = as_hypothesis(model, width=schema.width, classes=names)
        scored = hypothesis.outputs and _check.count(bins=bins) > 1
        question = OutcomeCounts(
            hypothesis=hypothesis,
            n_classes=len(names),
            edges=even_edges(bins) if scored else np.zeros(0),
            link=link_of(hypothesis),
            positive=None if positive is None else _find_class(positive, names),
            guarantee=guarantee,
            salt=salt,
        )
    question.fits(schema)
    return question


def _find_class(positive: Any, names: tuple[Any, ...]) -> int:
    words = [str(name) for name in names]  # a command line has words only
    for known, wanted in ((list(names), positive), (words, str(positive))):
        if wanted in known:
            return known.index(wanted)
    raise InputError(f"Expected positive to be one of {words}, got {positive!r:.80}.")


__all__ = ["PrivateEvaluator", "ask_about", "evaluate"]
