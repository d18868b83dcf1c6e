"""The scikit-learn face of learning a number through squared errors: both sides in one process."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.domains import private_persons
from privada.methods.marginals._one_process import HiddenTargetEstimator, tell_apart
from privada.methods.marginals.learner.asking import forecast_error
from privada.methods.marginals.learner.descent import learn_number
from privada.methods.marginals.learner.fitted import RegressionFit
from privada.methods.marginals.learner.learn import Public
from privada.methods.marginals.learner.regression import default_regression, learn_regression
from privada.methods.models.model_plot import name_thirds
from privada.methods.models.onnx_graph import OnnxGraph
from privada.parties.one_process.holding import Dataset
from privada.parties.protocol import Inquiry
from privada.parties.schema import Number, Schema
from privada.privacy.guarantee import Guarantee, PureDP, make_guarantee


class MarginalRegressor(RegressorMixin, HiddenTargetEstimator):  # type: ignore[misc]
    """Predict a number for a private labelled target with an unlabelled public source.

    Parameters
    ----------
    bounds : (low, high)
        Public limits of the features; rows beyond them are clipped.
    label_bounds : (low, high)
        Public limits of the label; labels and predictions beyond them are clipped.
    epsilon, delta, rho : float
        The guarantee; epsilon and rho exclude each other. With delta, or rho, a fifth of it asks where labels
        lie, and the rest for a linear model by a noisy descent. A pure one is split evenly over squared
        errors of two constants over cells of the source.
    relation : str, default="add/remove"
        Neighbouring relation.
    size : int
        Announced number of target rows: it plans steps and cells. Under "replace-one" it must be
        the true one.
    cells : int, default=None
        Ask over so many cells of the source whatever the guarantee is; under a pure one, by default chosen
        from public quantities.
    regressor : scikit-learn regressor with ``sample_weight``, default=None
        Trained on the labelled source. By default the descent's own linear model, and ridge regression after
        cells.
    random_state : int, default=0
        Of public randomness only (cells).
    insecure_seed : int, default=None
        Seed for reproducible noise: not private.
    dataset : Dataset, default=None
        Name of the private data set and the ledger that is charged, and the bound on the rows of a person.
    schema : Schema, default=None
        Public description of a frame's columns, for text, categories, dates and missing values; its limits
        are the default of ``bounds``.

    Attributes
    ----------
    synthetic_target_ : SyntheticNumbers
        The source, weighted and labelled to stand for the target, with its guarantees.
    forecast_ : Forecast
        Expected squared error over that of the noisy mean, with a band, as it was known before anything was
        spent; a `PrivadaWarning` says so where no gain is expected.
    releases_, release_, guarantee_, spent_
        What left the owner, the last of it, what all of it cost, and what all uses of these rows cost.
    model_

    Privacy
    -------
    Unit: one row of the target. It touches one count and adds a vector of bounded norm to each sum of a
    descent, or touches one count and one clipped squared error of each of two rounds; proofs are in
    ``docs/methods/marginals.md``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> source, target = rng.uniform(size=(500, 2)), rng.uniform(size=(2000, 2))
    >>> labels = 20 * target[:, 0] + rng.normal(size=2000)
    >>> model = MarginalRegressor(bounds=(0, 1), label_bounds=(0, 20), epsilon=2, size=2000)
    >>> model.fit(target, labels, source=source).score(target, labels) > 0.9
    True
    >>> print(model.guarantee_)
    ε = 2 (pure), add/remove one row
    """

    public_settings = ("bounds", "label_bounds", "size")
    fit_: RegressionFit

    def __init__(
        self,
        *,
        bounds: Any = None,
        label_bounds: Any = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        relation: str = "add/remove",
        size: int | None = None,
        cells: int | None = None,
        regressor: Any = None,
        random_state: int = 0,
        insecure_seed: int | None = None,
        dataset: Dataset | None = None,
        schema: Schema | None = None,
    ) -> None:
        self.bounds = bounds
        self.label_bounds = label_bounds
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.relation = relation
        self.size = size
        self.cells = cells
        self.regressor = regressor
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
        public, schema = self._public(source, self.regressor)
        learner = self._learner(public, guarantee)
        assert self.size is not None
        self._announce(forecast_error(public, guarantee=guarantee, size=self.size))
        self._hear(learner, X, y, person, schema, guarantee, owner)
        return self

    def _learner(self, public: Public, guarantee: Guarantee) -> Inquiry[RegressionFit]:
        assert self.size is not None
        label = self._label()
        bounds = label.low, label.high
        if self.cells is None and not isinstance(guarantee, PureDP):
            return learn_number("owner", public, bounds=bounds, guarantee=guarantee, size=self.size)
        plan = default_regression(
            public.source, guarantee=guarantee, size=self.size, seed=public.seed, cells=self.cells
        )
        return learn_regression("owner", plan.cells, public, bounds=bounds, guarantees=plan.guarantees)

    def _groups(self) -> tuple[npt.NDArray[Any], list[Any]]:
        """Thirds of the labels."""
        return name_thirds(self.synthetic_target_.labels)

    def _add_to_onnx(self, graph: OnnxGraph) -> str:
        from privada.methods.marginals.onnx import add_regressor

        return add_regressor(self, graph)

    def predict(self, X: Any) -> FloatArray:
        """Number for each row."""
        rows, label = self._clipped(X), self._label()
        return np.clip(self.fit_.predict(rows), label.low, label.high)

    def _label(self) -> Number:
        if np.shape(self.label_bounds) != (2,):
            raise InputError(f"Expected label_bounds to be (low, high), got {self.label_bounds!r}.")
        low, high = self.label_bounds
        return Number(name="label", low=float(low), high=float(high))


__all__ = ["MarginalRegressor"]
