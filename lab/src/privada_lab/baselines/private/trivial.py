"""Trivial rivals: a public model and one noisy release, or one noisy release alone.

A method that costs privacy should beat what costs a few lines. Each rival here spends its whole budget once.
Numbers keep replace-one, with Gaussian noise, and the number n of private rows is public; class counts keep
the relation that they are asked for, with Laplace noise at pure epsilon.

* `ShiftedRidge`: a ridge regression of the public rows, moved by the private rows' noisy mean residual.
* `NoisyMean`: the private labels' noisy mean, for every row.
* `OneSumRegressor`: the ridge regression; a quarter of μ² for the mean residual, shrunk by its own evidence;
  three quarters for one sum of residuals times whitened features, shrunk as James and Stein do.
* `NoisyMajority`, `PriorCorrectedClassifier`: noisy class counts alone, or as new class shares for a logistic
  regression of the public rows. They are asked for as the counts of one cell (`privada.methods.cells`).

*Sensitivity.* A residual is clipped to ``±c`` and put on the grid by truncation toward zero, so a record adds
a number within ``±c`` to the sum, and another record in its place moves it by at most ``2c``; a person's m
rows by ``2 c m``. What a record adds to the second sum is its clipped residual (after the *released* shift,
which is a public number by then) times a vector of norm at most √2: whitened features of norm at most 1, and
the constant 1. So it has norm at most ``√2 c`` and moves the sum by at most ``2 √2 c``, m rows by m times
that; truncation of each coordinate toward zero lengthens nothing. The two Gaussian draws at μ/2 and √3 μ/2
compose exactly to μ, also adaptively (Dong, Roth and Su 2022). Every record is mapped by kernels whose
rounding does not depend on other records. The model, the map and c come from public rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada.methods.cells.estimator import CellClassifier
from privada.methods.transport.questions.features import FeatureMap, project
from privada.parties.answering import Draws
from privada.parties.one_process.process_ledger import public_rows
from privada.parties.rows import Batch, Rows
from privada.parties.schema import Number, Schema
from privada.privacy.guarantee import Guarantee, PureDP, make_guarantee
from privada.privacy.mechanism import Gaussian, Plan, gaussian_event
from privada.privacy.release import PublicSchema
from privada_lab.baselines.private._asking import BaselineQuestion, ask, class_list
from privada_lab.baselines.public import PublicLogistic, PublicRidge, whiten

SHIFT_SHARE = 0.25  # of μ², for the mean residual
RESIDUALS = 3.0  # public root mean squared residuals, to which private ones are clipped
ROUNDING = 1 + 2.0**-40  # of a product of two clipped factors


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ResidualMean(BaselineQuestion):
    """Ask for the noisy mean residual of a public linear model.

    Parameters
    ----------
    coef : array of shape (features,)
    intercept : float
        The public model.
    size : int
        Public number of private rows.
    clip : float
        c: residuals are clipped to ``±c``.

    Privacy
    -------
    Unit: one row, replaced (or a person's m rows). L2 sensitivity of the sum: ``2 c m``. Proof: the module's
    docstring.
    """

    coef: FloatArray
    intercept: float
    size: int
    clip: float
    kind: ClassVar[str] = "baselines.residual-mean"
    answered_by: ClassVar[str] = "privada_lab.baselines.private.trivial:answer_mean"

    def validate(self) -> None:
        """Check every public parameter by name."""
        object.__setattr__(self, "coef", _check.matrix(coef=np.atleast_2d(self.coef))[0])
        _check.finite(intercept=self.intercept)
        _check.count(size=self.size)
        _check.positive(clip=self.clip)
        if not self.replaces:
            raise InputError("Expected replace-one: a mean divides by the public number of rows.")
        if isinstance(self.guarantee, PureDP):
            raise InputError(f"Gaussian noise is asked for with delta, or for rho, not for {self.guarantee}.")

    def fits(self, schema: PublicSchema) -> None:
        """Check features and size against the owner's schema."""
        if len(self.coef) != schema.width or self.size != schema.size:
            raise InputError(f"Expected width {schema.width} and the declared size {schema.size}.")

    def residuals(self, batch: Batch, shift: float = 0.0) -> FloatArray:
        """Clipped residuals; one whose arithmetic overflows is 0."""
        left = batch.labels - project(batch.X, self.coef[:, None])[:, 0] - self.intercept - shift
        return np.where(np.isnan(left), 0.0, np.clip(left, -self.clip, self.clip))

    def planned(self) -> Plan:
        """One number."""
        return Plan(draws={"mean": self._mean(1.0)})

    def _mean(self, share: float) -> Gaussian:
        mu = self.guarantee.gaussian_mu() * math.sqrt(share)
        return Gaussian.calibrated(sensitivity=2 * self.clip * self.rows, mu=mu)


def answer_mean(question: ResidualMean, rows: Rows, draw: Draws) -> dict[str, Any]:
    """The sum of clipped residuals in whole grid steps, then noise, then the mean."""
    return {"mean": _noisy_mean(question, rows, draw)}


def _noisy_mean(question: ResidualMean, rows: Rows, draw: Draws) -> float:
    mechanism = question.plan.lattice("mean")
    grid = mechanism.grid
    total = rows.total(lambda batch: grid.truncate(question.residuals(batch)).sum(keepdims=True))
    return float(draw("mean", total)[0] / question.size)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ResidualSum(ResidualMean):
    """Ask for the noisy mean residual and, after it, one sum of residuals times whitened features.

    Parameters
    ----------
    coef, intercept, size, clip
        As in `ResidualMean`.
    centre : array of shape (features,)
    whitening : array of shape (features, features)
        The public map ``z = (x - centre) whitening``, clipped to norm 1.

    Privacy
    -------
    Unit: one row, replaced (or a person's m rows). L2 sensitivities ``2 c m`` and ``2 √2 c m``; the two draws
    compose exactly. Proof: the module's docstring.
    """

    centre: FloatArray
    whitening: FloatArray
    kind: ClassVar[str] = "baselines.residual-sum"
    answered_by: ClassVar[str] = "privada_lab.baselines.private.trivial:answer_sum"

    def validate(self) -> None:
        """Check every public parameter by name."""
        super().validate()
        square = _check.matrix(whitening=self.whitening, width=len(self.coef))
        object.__setattr__(self, "whitening", square)
        object.__setattr__(
            self, "centre", _check.matrix(centre=np.atleast_2d(self.centre), width=len(self.coef))[0]
        )

    @property
    def features(self) -> FeatureMap:
        """The public map."""
        return FeatureMap(projection=self.whitening, centre=self.centre, radius=1.0)

    def planned(self) -> Plan:
        """A quarter of μ² for the mean, the rest for the sum."""
        mean, mu = self._mean(SHIFT_SHARE), self.guarantee.gaussian_mu() * math.sqrt(1 - SHIFT_SHARE)
        reach = 2 * math.sqrt(2) * self.clip * self.rows * ROUNDING
        total = Gaussian.calibrated(sensitivity=reach, mu=mu)
        return Plan(draws={"mean": mean, "sum": total}, event=gaussian_event(math.hypot(mean.mu, total.mu)))

    def noise(self, name: str) -> float:
        """Standard deviation of the noise on each released mean."""
        mechanism = self.plan.find(name, Gaussian)
        return mechanism.scale / self.size

    def shift(self, mean: float) -> float:
        """The released mean residual, shrunk by its own evidence."""
        return mean * shrinkage(np.array([mean]), self.noise("mean"))


def answer_sum(question: ResidualSum, rows: Rows, draw: Draws) -> dict[str, Any]:
    """The mean first; then, with it as a public number, the sum."""
    mean = _noisy_mean(question, rows, draw)
    shift, features = question.shift(mean), question.features
    mechanism = question.plan.lattice("sum")
    grid = mechanism.grid

    def sums(batch: Batch) -> IntArray:
        extended = np.column_stack([np.ones(len(batch)), features.apply(batch.X)])
        steps = grid.truncate(extended * question.residuals(batch, shift)[:, None])
        return np.asarray(steps.sum(axis=0))

    return {"mean": mean, "means": draw("sum", rows.total(sums)) / question.size}


def shrinkage(noisy: FloatArray, deviation: float) -> float:
    """Share of a noisy vector that is kept: 1 minus the noise's expected squared norm over its own, or 0.

    >>> shrinkage(np.array([3.0, 4.0]), 1.0), shrinkage(np.array([0.5, 0.5]), 1.0)
    (0.92, 0.0)
    """
    size = float(noisy @ noisy)
    return max(0.0, 1 - len(noisy) * deviation**2 / size) if size else 0.0


class _Trivial(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """What the regressors share: a guarantee and public bounds."""

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        bounds: Any = None,
        label_bounds: Any = None,
        insecure_seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.bounds = bounds
        self.label_bounds = label_bounds
        self.insecure_seed = insecure_seed

    def _guarantee(self) -> Guarantee:
        return make_guarantee(epsilon=self.epsilon, delta=self.delta, rho=self.rho, relation="replace-one")

    def _label(self) -> Number:
        if self.bounds is None or np.shape(self.label_bounds) != (2,):
            raise InputError("Expected bounds and label_bounds, both public; none are taken from the rows.")
        low, high = self.label_bounds
        return Number(name="label", low=float(low), high=float(high))

    def _ask(self, question: BaselineQuestion, X: Any, y: Any) -> Any:
        rows = np.asarray(X)
        schema = Schema.of_numbers(
            bounds=self.bounds, width=rows.shape[1], size=len(rows), label=self._label()
        )
        self.release_ = ask(question, rows, np.asarray(y), schema=schema, insecure_seed=self.insecure_seed)
        self.guarantee_ = self.release_.guarantee
        self.n_features_in_ = schema.width
        return self.release_

    def _inside(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        return np.asarray(np.clip(_check.matrix(X=X, width=self.n_features_in_), *self.bounds))


class ShiftedRidge(_Trivial):
    """A public ridge regression plus one noisy mean residual of the private rows.

    Parameters
    ----------
    epsilon, delta, rho : float
        The guarantee: epsilon with delta, or rho.
    bounds, label_bounds : (low, high)
        Public limits of features and label; predictions are held to the label's.
    insecure_seed : int, optional
        Seed for reproducible noise: not private.

    Attributes
    ----------
    ridge_ : PublicRidge
    shift_ : float
    release_, guarantee_
        What left the owner, and what was promised.

    Privacy
    -------
    Unit: one row, replaced. Proof: the module's docstring.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Xs, Xt = rng.uniform(size=(500, 2)), rng.uniform(size=(500, 2))
    >>> model = ShiftedRidge(epsilon=1, delta=1e-5, bounds=(0, 1), label_bounds=(-5, 5))
    >>> model = model.fit(Xs, Xs[:, 0] + 0.1 * rng.normal(size=500), Xt, Xt[:, 0] + 0.2)
    >>> 0.1 < model.shift_ < 0.3
    True
    """

    def fit(self, X: Any, y: Any, Xt: Any, yt: Any) -> Self:
        """Fit the public ``X, y``, then ask the private ``Xt, yt`` for one number."""
        self._label()
        self.ridge_ = PublicRidge.fit(X, y)
        question = ResidualMean(
            coef=self.ridge_.coef,
            intercept=self.ridge_.intercept,
            size=len(Xt),
            clip=residual_bound(self.ridge_, self.label_bounds),
            guarantee=self._guarantee(),
        )
        self.shift_ = float(self._ask(question, Xt, yt)["mean"])
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predictions within the label's public limits."""
        return np.asarray(np.clip(self.ridge_.predict(self._inside(X)) + self.shift_, *self.label_bounds))


def residual_bound(ridge: PublicRidge, label_bounds: Any) -> float:
    """c: three public root mean squared residuals, at most the label's range."""
    low, high = label_bounds
    return min(float(high) - float(low), max(RESIDUALS * ridge.residual, 1e-6 * (float(high) - float(low))))


class NoisyMean(_Trivial):
    """The private labels' noisy mean as the prediction for every row.

    Parameters
    ----------
    epsilon, delta, rho, bounds, label_bounds, insecure_seed
        As in `ShiftedRidge`.

    Attributes
    ----------
    mean_, release_, guarantee_

    Privacy
    -------
    Unit: one row, replaced: the mean residual of the constant in the middle of ``label_bounds``.
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Ask for one number."""
        label = self._label()
        middle = (label.low + label.high) / 2
        question = ResidualMean(
            coef=np.zeros(np.shape(X)[1]),
            intercept=middle,
            size=len(X),
            clip=(label.high - label.low) / 2,
            guarantee=self._guarantee(),
        )
        self.mean_ = middle + float(self._ask(question, X, y)["mean"])
        return self

    def predict(self, X: Any) -> FloatArray:
        """The same number for every row."""
        return np.asarray(np.clip(np.full(len(self._inside(X)), self.mean_), *self.label_bounds))


class OneSumRegressor(_Trivial):
    """A public ridge regression, corrected by one noisy sum of residuals times whitened features.

    A quarter of μ² asks for the mean residual, which is shrunk by its own evidence; the rest asks for the sum
    of the residuals left times the whitened features, clipped to norm 1, and the constant 1, so that the
    constant weighs as much as all features together. The correction of the features is shrunk as James and
    Stein do, by the noise, which is known; so is the constant's.

    Parameters
    ----------
    epsilon, delta, rho, bounds, label_bounds, insecure_seed
        As in `ShiftedRidge`.

    Attributes
    ----------
    ridge_ : PublicRidge
    shift_ : float
        Correction of the constant.
    slopes_ : array of shape (features,)
        Correction along the whitened, clipped features; together they move no prediction by more than c.
    kept_ : float
        Share of the features' correction that shrinkage left.
    release_, guarantee_
        What left the owner, and what was promised.

    Privacy
    -------
    Unit: one row, replaced. Proof: the module's docstring.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Xs, Xt = rng.normal(size=(900, 2)), rng.normal(size=(4000, 2))
    >>> model = OneSumRegressor(epsilon=2, delta=1e-5, bounds=(-5, 5), label_bounds=(-9, 9))
    >>> ys = Xs[:, 0] + 0.5 * rng.normal(size=900)
    >>> model.fit(Xs, ys, Xt, Xt @ [1.0, 0.5] + 1).score(Xt, Xt @ [1.0, 0.5] + 1) > 0.9
    True
    """

    def fit(self, X: Any, y: Any, Xt: Any, yt: Any) -> Self:
        """Fit the public ``X, y``, then ask the private ``Xt, yt`` once."""
        self._label()
        self.ridge_ = PublicRidge.fit(X, y)
        centre, whitening = whiten(_check.matrix(X=X))
        self.question_ = ResidualSum(
            coef=self.ridge_.coef,
            intercept=self.ridge_.intercept,
            size=len(Xt),
            clip=residual_bound(self.ridge_, self.label_bounds),
            centre=centre,
            whitening=whitening,
            guarantee=self._guarantee(),
        )
        found = self._ask(self.question_, Xt, yt)
        noise = self.question_.noise("sum")
        constant, slopes = found["means"][:1], found["means"][1:]
        self.kept_ = shrinkage(slopes, noise)
        self.shift_ = self.question_.shift(float(found["mean"]))
        self.shift_ += float(constant[0]) * shrinkage(constant, noise)
        # whitened features over √d have covariance 1/d, so d times a mean product is a coefficient
        self.slopes_ = len(slopes) * self.kept_ * slopes
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predictions within the label's public limits."""
        rows = self._inside(X)
        bound = self.question_.clip  # no residual was heard beyond it
        moved = np.clip(self.question_.features.apply(rows) @ self.slopes_, -bound, bound)
        found = self.ridge_.predict(rows) + self.shift_ + moved
        return np.asarray(np.clip(found, *self.label_bounds))


class _Counting(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What the classifiers share: a guarantee, public classes and bounds."""

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        classes: Any = None,
        bounds: Any = None,
        relation: str = "replace-one",
        insecure_seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.classes = classes
        self.bounds = bounds
        self.relation = relation
        self.insecure_seed = insecure_seed


class NoisyMajority(_Counting):
    """The class with the largest noisy count, for every row.

    Parameters
    ----------
    epsilon, delta, rho, bounds, insecure_seed
        As in `ShiftedRidge`.
    classes : sequence
        Public list of the labels.
    relation : "replace-one" or "add/remove", default="replace-one"

    Attributes
    ----------
    counts_ : array of shape (classes,)
        Noisy.
    classes_, release_, guarantee_

    Privacy
    -------
    Unit: one row, under ``relation``: the class counts of one cell that holds every row (`CellStatistics`).
    """

    @public_rows()
    def fit(self, X: Any, y: Any) -> Self:
        """Ask for the counts."""
        counted = CellClassifier(
            centers=np.zeros((1, np.shape(X)[1])),
            classes=class_list(self.classes),
            bounds=self.bounds,
            epsilon=self.epsilon,
            delta=self.delta,
            rho=self.rho,
            relation=self.relation,
            size=None if self.relation == "add/remove" else len(X),
            insecure_seed=self.insecure_seed,
        ).fit(X, y)
        self.counts_, self.classes_ = counted.counts_[0], counted.classes_
        self.release_, self.guarantee_ = counted.release_, counted.guarantee_
        self.n_features_in_ = counted.n_features_in_
        return self

    @property
    def shares_(self) -> FloatArray:
        """Class shares: counts of at least half a row each, over their sum."""
        positive = np.maximum(self.counts_, 0.5)
        return np.asarray(positive / positive.sum())

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The same class for every row."""
        check_is_fitted(self)
        return np.full(len(X), self.classes_[self.counts_.argmax()])


class PriorCorrectedClassifier(_Counting):
    """A public logistic regression whose class shares are exchanged for noisy private ones.

    Parameters
    ----------
    epsilon, delta, rho, classes, bounds, relation, insecure_seed
        As in `NoisyMajority`.

    Attributes
    ----------
    model_ : the public model
    counts_ : NoisyMajority
    classes_, release_, guarantee_

    Privacy
    -------
    As `NoisyMajority`; the rest is post-processing.
    """

    def fit(self, X: Any, y: Any, Xt: Any, yt: Any) -> Self:
        """Fit the public ``X, y``, then ask the private ``Xt, yt`` for class counts."""
        self.model_ = PublicLogistic(classes=class_list(self.classes)).fit(X, y)
        self.counts_ = NoisyMajority(**self.get_params()).fit(Xt, yt)
        self.release_, self.guarantee_ = self.counts_.release_, self.counts_.guarantee_
        self.classes_, self.n_features_in_ = self.counts_.classes_, self.counts_.n_features_in_
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Public probabilities times new over old shares; a class that no public row has stays at 0."""
        check_is_fitted(self)
        old = self.model_.shares_
        ratio = np.where(old > 0, self.counts_.shares_ / np.where(old > 0, old, 1.0), 0.0)
        found = self.model_.predict_proba(X) * ratio
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most likely class."""
        likely: npt.NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return likely


__all__ = [
    "NoisyMajority",
    "NoisyMean",
    "OneSumRegressor",
    "PriorCorrectedClassifier",
    "ResidualMean",
    "ResidualSum",
    "ShiftedRidge",
    "residual_bound",
    "shrinkage",
]
