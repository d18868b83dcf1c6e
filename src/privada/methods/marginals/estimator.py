"""The scikit-learn face of learning through error marginals: both sides in one process."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin

from privada.exceptions import InputError
from privada.methods.domains import private_persons
from privada.methods.marginals._one_process import HiddenTargetEstimator, tell_apart
from privada.methods.marginals.learner.asking import forecast_error, make_inquiry
from privada.methods.marginals.learner.fitted import MarginalFit
from privada.methods.models.onnx_graph import OnnxGraph
from privada.parties.one_process.holding import Dataset
from privada.parties.schema import Category, Schema
from privada.privacy.guarantee import make_guarantee


class MarginalClassifier(ClassifierMixin, HiddenTargetEstimator):  # type: ignore[misc]
    """Classify for a private labelled target with an unlabelled public source.

    Features may be of any units: they are standardised by the source.

    Parameters
    ----------
    classes : sequence
        Public list of the labels.
    bounds : (low, high)
        Public limits of the features; rows beyond them are clipped.
    epsilon, delta, rho : float
        The guarantee; epsilon and rho exclude each other.
    relation : str, default="add/remove"
        Neighbouring relation.
    size : int
        Announced number of target rows: it plans steps, cells and bins. Under
        "replace-one" it must be the true one.
    question : "auto", "descent", "cells", "marginals", `CellCounts` or `ErrorTables`, default="auto"
        A linear model by a noisy descent, which needs delta or rho; labels over cells of the source, whose
        noise does not grow with the features; or the paper's error tables over bins of single features.
        "auto" is the first where the guarantee allows it, and cells under a pure one. The two classes hold
        the settings of their kinds.
    classifier : scikit-learn classifier with ``sample_weight``, default=None
        Trained on the labelled source. By default a descent's own linear model is the classifier, and a
        small network after tables. It is tried on public rows before anything is asked; rounds after the
        first submit it, so it must have a wire form there (`of_classifier`).
    random_state : int, default=0
        Of public randomness only (cells, initialisation).
    insecure_seed : int, default=None
        Seed for reproducible noise: not private.
    dataset : Dataset, default=None
        Name of the private data set and the ledger that is charged, and the bound on the rows of a person.
    schema : Schema, default=None
        Public description of a frame's columns, for text, categories, dates and missing values; its limits
        are the default of ``bounds``.

    Attributes
    ----------
    synthetic_target_ : SyntheticTarget
        The source, weighted and labelled to stand for the target, with its guarantee.
    forecast_ : Forecast
        Expected error over that of the noisy majority class, with a band, as it was known before anything was
        spent; a `PrivadaWarning` says so where no gain is expected.
    releases_, release_, guarantee_
        What left the owner, the last of it, and what all of it cost; at most, if it stopped early.
    spent_
        What everything that these rows were used for cost together.
    classes_, model_

    Privacy
    -------
    Unit: one row of the target. It adds a vector of bounded norm to each sum of a descent, or touches one
    entry of each table; proofs are in ``docs/methods/marginals.md``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> source, target = rng.uniform(size=(400, 2)), rng.uniform(size=(400, 2))
    >>> labels = (target[:, 0] > 0.5).astype(int)
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = MarginalClassifier(classes=(0, 1), bounds=(0, 1), epsilon=1, size=400,
    ...                           classifier=LogisticRegression())
    >>> learner.fit(target, labels, source=source).predict([[0.1, 0.5], [0.9, 0.5]]).tolist()
    [0, 1]
    >>> print(learner.guarantee_)
    ε = 1 (pure), add/remove one row
    """

    public_settings = ("classes", "bounds", "size")
    fit_: MarginalFit

    def __init__(
        self,
        *,
        classes: Any = None,
        bounds: Any = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        relation: str = "add/remove",
        size: int | None = None,
        question: Any = "auto",
        classifier: Any = None,
        random_state: int = 0,
        insecure_seed: int | None = None,
        dataset: Dataset | None = None,
        schema: Schema | None = None,
    ) -> None:
        self.classes = classes
        self.bounds = bounds
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.relation = relation
        self.size = size
        self.question = question
        self.classifier = classifier
        self.random_state = random_state
        self.insecure_seed = insecure_seed
        self.dataset = dataset
        self.schema = schema

    def fit(
        self,
        X: Any = None,
        y: Any = None,
        *,
        source: Any = None,
        sample_domain: Any = None,
        person: Any = None,
        owner: Any = None,
    ) -> Self:
        """Learn from private target rows ``X, y`` and public, unlabelled ``source`` rows.

        Or give both in ``X, y`` with ``sample_domain``, positive for source, whose labels are ignored, and
        negative for target (skada's form); or the target's `Owner` as ``owner`` in the place of ``X, y``.
        ``person`` has the person of each row of ``X``, or names a column of that frame,
        beside a `Dataset` with ``max_rows``.
        """
        person = private_persons(self._read_person(person, X, owner), sample_domain, sign=-1)
        source, X = self._read_frames(source=source, X=X)
        source, X, y = tell_apart(source, X, y, sample_domain)
        guarantee = make_guarantee(
            epsilon=self.epsilon, delta=self.delta, rho=self.rho, relation=self.relation, unit=self._unit()
        )
        public, schema = self._public(source, self.classifier)
        assert self.size is not None
        learner = make_inquiry(self.question, "owner", public, guarantee=guarantee, size=self.size)
        self._announce(forecast_error(public, guarantee=guarantee, size=self.size))
        self._hear(learner, X, y, person, schema, guarantee, owner)
        self.classes_ = np.asarray(schema.classes.names)
        return self

    def _label(self) -> Category:
        if isinstance(self.classes, str) or not isinstance(self.classes, Iterable):
            raise InputError(f"Expected classes to be a list of labels, got {self.classes!r}.")
        return Category(name="label", values=tuple(self.classes))

    def _groups(self) -> tuple[npt.NDArray[Any], list[Any]]:
        return self.classes_[self.synthetic_target_.codes], list(self.classes_)

    def _add_to_onnx(self, graph: OnnxGraph) -> str:
        from privada.methods.marginals.onnx import add_classifier

        return add_classifier(self, graph)

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Class probabilities of each row."""
        rows = self._clipped(X)
        return self.fit_.probabilities(rows)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Class of each row."""
        rows = self._clipped(X)
        return self.classes_[self.fit_.codes(rows)]


__all__ = ["MarginalClassifier"]
