"""The scikit-learn face of learning through error marginals: both sides in one process."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin

from privada.exceptions import InputError
from privada.methods.marginals._one_process import HiddenTargetEstimator
from privada.methods.marginals.learner.asking import TABLES, askings
from privada.methods.marginals.learner.fitted import MarginalFit
from privada.parties.schema import Category
from privada.privacy.guarantee import request


class MarginalLearner(ClassifierMixin, HiddenTargetEstimator):  # type: ignore[misc]
    """Classify for a private labelled target with an unlabelled public source.

    Parameters
    ----------
    classes : sequence
        Public list of the labels.
    bounds : (low, high)
        Public limits of the features; rows beyond them are clipped.
    epsilon, delta, rho : float
        The guarantee; epsilon and rho exclude each other.
    relation : str
        Neighbouring relation.
    size : int
        Announced number of target rows: it plans cells and bins. Under
        "replace-one" it must be the true one.
    question : "auto", "cells", "marginals", "pairs" or "embedding"
        Labels over cells of the source, whose noise does not grow with the
        features; error tables over bins of single features, or over grids of their pairs;
        sums of random Fourier features. "auto" takes what is forecast to explain
        most, unless a setting of one kind below is given.
    rounds, bins, cells, features : int, optional
        How much is asked; by default chosen from public quantities. A round of error tables
        hears how the model of the round before it fares.
    estimate : "smooth", "cumulative" or "instantaneous"
        How "marginals" become labels: see `Rounds`.
    vary, separate : bool
        Of "marginals": move the edges of bins from round to round; give importance weights a
        query of their own, as the paper does.
    chosen : int, optional
        Of "marginals": features asked about after the first round, the most telling ones of it.
    stop : float
        Of "marginals": ask no further round once fewer than this share of the source's labels changed in
        one. What was not asked is not spent; 0 never stops early.
    reweight : bool
        False if the learner knows that the domains agree: then no weights are estimated, and two
        classes over cells cost 1/√2 of the noise.
    classifier : scikit-learn classifier with ``sample_weight``, optional
        By default a small network. It is tried on public rows before anything is asked; rounds after the
        first submit it, so it must have a wire form there (`of_classifier`).
    random_state : int
        Of public randomness only (cells, initialisation).
    rehearsal : int, optional
        Seed for reproducible noise: not private.

    Attributes
    ----------
    synthetic_target_ : SyntheticTarget
        The source, weighted and labelled to stand for the target, with its guarantee.
    forecast_ : Forecast
        Noise against signal, as it was known before anything was spent.
    forecasts_ : dict
        By kind of question and number of rounds, best first; of "auto" all that was considered.
    releases_, release_, guarantee_
        What left the owner, the last of it, and what all of it cost; at most, if it stopped early.
    classes_, model_

    Privacy
    -------
    Unit: one row of the target. A row touches one entry of each table; proofs are
    in ``docs/methods/marginals.md``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> source, target = rng.uniform(size=(400, 2)), rng.uniform(size=(400, 2))
    >>> labels = (target[:, 0] > 0.5).astype(int)
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = MarginalLearner(classes=(0, 1), bounds=(0, 1), epsilon=1, size=400,
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
        question: str = "auto",
        rounds: int | None = None,
        bins: int | None = None,
        cells: int | None = None,
        features: int | None = None,
        vary: bool = False,
        separate: bool = False,
        chosen: int | None = None,
        estimate: str = "smooth",
        stop: float = 0.0,
        reweight: bool = True,
        classifier: Any = None,
        random_state: int = 0,
        rehearsal: int | None = None,
    ) -> None:
        self.classes = classes
        self.bounds = bounds
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.relation = relation
        self.size = size
        self.question = question
        self.rounds = rounds
        self.bins = bins
        self.cells = cells
        self.features = features
        self.vary = vary
        self.separate = separate
        self.chosen = chosen
        self.estimate = estimate
        self.stop = stop
        self.reweight = reweight
        self.classifier = classifier
        self.random_state = random_state
        self.rehearsal = rehearsal

    def fit(self, X: Any, y: Any, *, source: Any = None) -> Self:
        """Learn from private target rows ``X, y`` and public, unlabelled ``source`` rows."""
        guarantee = request(epsilon=self.epsilon, delta=self.delta, rho=self.rho, relation=self.relation)
        public, schema = self._public(source, self.classifier)
        assert self.size is not None
        found = askings(
            self.question,
            public,
            guarantee=guarantee,
            **{name: getattr(self, name) for name in ("size", "rounds", "cells", "reweight", *TABLES)},
        )
        self.forecasts_ = {key: each.forecast for key, each in found.items()}
        self.forecast_ = next(iter(self.forecasts_.values()))
        self._hear(next(iter(found.values())).learner("owner", public), X, y, schema, guarantee)
        self.classes_ = np.asarray(schema.classes.names)
        return self

    def _label(self) -> Category:
        if isinstance(self.classes, str) or not isinstance(self.classes, Iterable):
            raise InputError(f"Expected classes to be a list of labels, got {self.classes!r}.")
        return Category(name="label", values=tuple(self.classes))

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Class probabilities of each row."""
        rows = self._clipped(X)
        return self.fit_.probabilities(rows)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Class of each row."""
        rows = self._clipped(X)
        found: npt.NDArray[Any] = self.classes_[self.fit_.codes(rows)]
        return found


__all__ = ["MarginalLearner"]
