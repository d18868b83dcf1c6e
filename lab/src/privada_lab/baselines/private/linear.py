"""Private linear regression of the target alone, and private discrepancy minimisation: the baselines.

Rows are clipped to the unit ball after division by ``norm_bound``, labels to ``±label_bound``.

* `DPLinearRegression`: sufficient statistics. A record contributes ``xx'`` (isometric packing of the
  triangle) and ``xy``; each has norm at most 1. Two records' ``xx'`` differ by at most √2 (their inner
  product is not
  negative), two ``xy`` by at most 2, together √6 and the grid's slack, under replace-one.
* `NoisySGDRegressor`: noisy minibatch gradients (Bassily et al. 2014, 2019) in epochs. A public
  permutation, drawn without looking at a row, cuts the rows into batches; a record is in one batch of each
  epoch, so an epoch
  costs one Gaussian release. A record's residual is clipped to ``±clip``, hence its gradient to ``clip``, and
  two of them differ by at most twice that. Rows of persons who may have several are put into batches one by
  one, so that another number of them moves no other row.
* `PrivateDM` (Bassily, Mohri and Suresh 2022): the second moments alone, then weights of the public source
  (`privada_lab.baselines.adaptation.weights_for_moments`) and a weighted ridge regression.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada.parties.answering import Draws
from privada.parties.rows import AT_ONCE, Batch, Rows
from privada.parties.schema import Number, Schema
from privada.privacy.bounds import Ball, Grid
from privada.privacy.guarantee import Guarantee, PureDP, make_guarantee
from privada.privacy.mechanism import Gaussian, Plan, gaussian_event
from privada.privacy.noise import Noise
from privada.privacy.release import PublicSchema
from privada_lab.baselines.adaptation import ridge, weights_for_moments
from privada_lab.baselines.private._asking import BaselineQuestion, ask, row_width


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _Bounded(BaselineQuestion):
    """Rows in a public ball, labels in a public interval, a public size."""

    width: int
    size: int
    norm_bound: float
    label_bound: float = 1.0

    def validate(self) -> None:
        """Check every public parameter by name."""
        _check.count(width=self.width)
        _check.count(size=self.size)
        _check.positive(norm_bound=self.norm_bound)
        _check.positive(label_bound=self.label_bound)
        if not self.replaces:
            raise InputError("Expected replace-one: these baselines divide by the public number of rows.")
        if isinstance(self.guarantee, PureDP):
            raise InputError(f"Gaussian noise is asked for with delta, or for rho, not for {self.guarantee}.")

    def fits(self, schema: PublicSchema) -> None:
        """Check features and size against the owner's schema."""
        if self.width != schema.width or self.size != schema.size:
            raise InputError(f"Expected width {schema.width} and the declared size {schema.size}.")

    def inside(self, batch: Batch) -> tuple[FloatArray, FloatArray]:
        """Rows of norm 1 and labels within ±1 at most."""
        X = Ball(radius=1.0).clip(batch.X / self.norm_bound)
        y = np.zeros(len(X)) if batch.y is None else batch.y / self.label_bound
        return X, np.clip(y, -1, 1)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SecondMoments(_Bounded):
    """Ask for the sums of ``xx'`` and, with labels, of ``xy``, once.

    Parameters
    ----------
    width, size : int
    norm_bound, label_bound : float
    labelled : bool
        Whether labels count.

    Privacy
    -------
    Unit: one row, replaced (or a person's m rows: m times as far). L2 sensitivity √6, or √2 without labels,
    and the grid's slack. Proof: the module's docstring.
    """

    labelled: bool = True
    kind: ClassVar[str] = "baselines.second-moments"
    answered_by: ClassVar[str] = "privada_lab.baselines.private.linear:answer_moments"

    def planned(self) -> Plan:
        """One release of all sums."""
        mu, reach = self.guarantee.gaussian_mu(), math.sqrt(6 if self.labelled else 2) * self.rows
        grid = Grid.finer_than(reach / mu * 2.0**-20)
        slack = grid.step * math.sqrt(self.numbers) * self.rows
        return Plan(draws={"sums": Gaussian.calibrated(sensitivity=reach + slack, mu=mu, grid=grid)})

    @property
    def numbers(self) -> int:
        """How many sums there are."""
        return self.width * (self.width + 1) // 2 + (self.width if self.labelled else 0)

    def packed(self, batch: Batch) -> FloatArray:
        """What each row adds: the upper triangle of ``xx'``, off-diagonal entries times √2, and ``xy``."""
        X, y = self.inside(batch)
        a, b = np.triu_indices(self.width)
        squares = X[:, a] * X[:, b] * np.where(a == b, 1.0, math.sqrt(2))
        return np.hstack([squares, X * y[:, None]]) if self.labelled else squares

    def unpacked(self, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Noisy mean of ``xx'`` and of ``xy``, in the rows' own units."""
        d = self.width
        upper = np.triu_indices(d)
        M = np.zeros((d, d))
        M[upper] = sums[: len(upper[0])] * np.where(upper[0] == upper[1], 1.0, math.sqrt(0.5))
        M = M + np.triu(M, 1).T
        b = sums[len(upper[0]) :]
        return M * self.norm_bound**2 / self.size, b * self.norm_bound * self.label_bound / self.size


def answer_moments(question: SecondMoments, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Packed sums in whole grid steps, then noise."""
    mechanism = question.plan.lattice("sums")

    def sums(batch: Batch) -> IntArray:
        return np.asarray(mechanism.grid.truncate(question.packed(batch)).sum(axis=0))

    few = AT_ONCE // 512  # rows at a time, which stay in the processor's cache
    return {"sums": draw("sums", rows.total(sums, numbers=max(few, question.numbers)))}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MinibatchDescent(_Bounded):
    """Ask for the weights of a linear regression, trained at the owner's by noisy minibatch gradients.

    Parameters
    ----------
    width, size : int
    norm_bound, label_bound, clip : float
        Residuals are clipped to ``±clip``, in units of ``label_bound``.
    epochs, batches : int
    step_size : float

    Privacy
    -------
    Unit: one row, replaced (or a person's m rows). An epoch's batches are disjoint: its release moves in the
    batch of the row only, by at most ``2 clip``; a person's rows may be in several batches, and move each by
    at most their share, together ``2 m clip``. E epochs at μ/√E compose exactly.
    """

    clip: float = 1.0
    epochs: int = 20
    batches: int = 5
    step_size: float = 0.5
    kind: ClassVar[str] = "baselines.minibatch-descent"
    answered_by: ClassVar[str] = "privada_lab.baselines.private.linear:answer_minibatches"

    def validate(self) -> None:
        """Check every public parameter by name."""
        super().validate()
        _check.positive(clip=self.clip)
        _check.positive(step_size=self.step_size)
        _check.count(epochs=self.epochs)
        _check.count(batches=self.batches)

    def planned(self) -> Plan:
        """Equal noise on every batch; an epoch is one release."""
        mu = self.guarantee.gaussian_mu() / math.sqrt(self.epochs)
        reach = 2 * self.clip * self.rows
        grid = Grid.finer_than(reach / mu * 2.0**-20)
        each = Gaussian.calibrated(sensitivity=reach, mu=mu, grid=grid)
        names = [f"gradient {t}" for t in range(self.epochs * self.batches)]
        return Plan(draws=dict.fromkeys(names, each), event=gaussian_event(each.mu * math.sqrt(self.epochs)))


def answer_minibatches(question: MinibatchDescent, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Descend; only noisy sums move the weights, whose later half is averaged."""
    X, y = question.inside(rows.gathered())
    mechanism = question.plan.lattice("gradient 0")
    w, total, steps = np.zeros(question.width), np.zeros(question.width), question.epochs * question.batches
    batch = np.zeros(len(X), dtype=np.int64)
    for t in range(steps):
        if t % question.batches == 0:
            batch = _dealt(question, len(X), draw.noise)
        part = np.flatnonzero(batch == t % question.batches)
        left = (X[part] * w).sum(axis=1) - y[part]  # weights may be as far as floats go
        residual = np.where(np.isnan(left), 0.0, np.clip(left, -question.clip, question.clip))
        exact = mechanism.grid.truncate(X[part] * residual[:, None]).sum(axis=0)
        w = w - question.step_size * draw(f"gradient {t}", exact) * question.batches / question.size
        if 2 * t >= steps:
            total += w
    return {"weights": total / (steps - (steps + 1) // 2) if steps > 1 else w}


def _dealt(question: MinibatchDescent, n: int, noise: Noise) -> IntArray:
    """Batch of each row, drawn without looking at it: equal batches, or one draw for each row of persons.

    A person may be replaced by one of fewer rows; equal batches would then take others' rows to fill up.
    """
    if question.rows > 1:
        return (noise.words(n) % np.uint64(question.batches)).astype(np.int64)
    batch = np.empty(n, dtype=np.int64)
    batch[noise.permutation(n)] = np.arange(n) % question.batches
    return batch


class _Private(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """What the estimators share."""

    def _guarantee(self) -> Guarantee:
        return make_guarantee(epsilon=self.epsilon, delta=self.delta, rho=self.rho, relation="replace-one")

    def _bounds(self, X: Any) -> dict[str, Any]:
        if self.norm_bound is None:
            raise InputError("Expected norm_bound, the radius of a public ball; none is guessed.")
        return {
            "width": row_width(X),
            "size": len(X),
            "norm_bound": self.norm_bound,
            "label_bound": self.label_bound,
            "guarantee": self._guarantee(),
        }

    def _ask(self, question: _Bounded, X: Any, y: Any) -> Any:
        bound, radius = question.label_bound, question.norm_bound
        label = None if y is None else Number(name="label", low=-bound, high=bound)
        schema = Schema.of_numbers(
            bounds=(-radius, radius), width=question.width, size=question.size, label=label
        )
        self.release_ = ask(question, X, y, schema=schema, insecure_seed=self.insecure_seed)
        self.guarantee_ = self.release_.guarantee
        self.n_features_in_ = question.width
        return self.release_

    def predict(self, X: Any) -> FloatArray:
        """Predictions of rows."""
        check_is_fitted(self)
        return np.asarray(_check.matrix(X=X, width=self.n_features_in_) @ self.coef_)


class DPLinearRegression(_Private):
    """Ridge regression from noisy sufficient statistics.

    Parameters
    ----------
    epsilon, delta, rho : float
        The guarantee: epsilon with delta, or rho.
    norm_bound, label_bound : float
        Public bounds of rows and labels.
    penalty : float, optional
        By default what the noise needs: twice its largest expected eigenvalue.
    insecure_seed : int, optional
        Seed for reproducible noise: not private.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(5000, 2))
    >>> model = DPLinearRegression(epsilon=2, delta=1e-6, norm_bound=1.0).fit(X, X @ [1.0, -1.0])
    >>> bool(np.all(model.coef_ * [1, -1] > 0.5))
    True
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        norm_bound: float | None = None,
        label_bound: float = 1.0,
        penalty: float | None = None,
        insecure_seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.norm_bound = norm_bound
        self.label_bound = label_bound
        self.penalty = penalty
        self.insecure_seed = insecure_seed

    def fit(self, X: Any, y: Any) -> Self:
        """Ask once, solve."""
        question = SecondMoments(**self._bounds(X))
        M, b = question.unpacked(self._ask(question, X, y)["sums"])
        penalty = noise_level(question) if self.penalty is None else self.penalty
        eigen, V = np.linalg.eigh(M)
        self.coef_ = V @ ((V.T @ b) / (np.maximum(eigen, 0) + penalty))
        return self


def noise_level(question: SecondMoments) -> float:
    """Largest eigenvalue that the noise on the mean of ``xx'`` is expected to have."""
    mechanism = question.plan.find("sums", Gaussian)
    spread = mechanism.scale * question.norm_bound**2 / question.size
    return spread * math.sqrt(2 * question.width)


class NoisySGDRegressor(_Private):
    """Linear regression by noisy minibatch gradients on the target alone.

    Parameters
    ----------
    epsilon, delta, rho, norm_bound, label_bound, insecure_seed
        As in `DPLinearRegression`.
    clip : float
        Bound of a residual, in units of ``label_bound``.
    epochs, batches : int
    step_size : float, optional
        By default such that the noise of all steps together moves predictions by half of ``label_bound``,
        and at most 1.
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        norm_bound: float | None = None,
        label_bound: float = 1.0,
        clip: float = 1.0,
        epochs: int = 20,
        batches: int = 5,
        step_size: float | None = None,
        insecure_seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.norm_bound = norm_bound
        self.label_bound = label_bound
        self.clip = clip
        self.epochs = epochs
        self.batches = batches
        self.step_size = step_size
        self.insecure_seed = insecure_seed

    def fit(self, X: Any, y: Any) -> Self:
        """Ask once."""
        bounds = self._bounds(X)
        steps = self.epochs * self.batches
        mu = bounds["guarantee"].gaussian_mu() / math.sqrt(self.epochs)
        noise = 2 * self.clip / mu * self.batches / bounds["size"] * math.sqrt(steps)
        step = min(1.0, 0.5 / noise) if self.step_size is None else self.step_size
        question = MinibatchDescent(
            **bounds, clip=self.clip, epochs=self.epochs, batches=self.batches, step_size=step
        )
        weights = self._ask(question, X, y)["weights"]
        self.coef_ = weights * question.label_bound / question.norm_bound
        return self


class PrivateDM(_Private):
    """Discrepancy minimisation with noisy second moments of the target, then ridge on the source.

    Parameters
    ----------
    epsilon, delta, rho, norm_bound, insecure_seed
        As in `DPLinearRegression`.
    penalty : float
        Of the ridge regression on the source.
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        norm_bound: float | None = None,
        label_bound: float = 1.0,
        penalty: float = 1e-3,
        insecure_seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.norm_bound = norm_bound
        self.label_bound = label_bound
        self.penalty = penalty
        self.insecure_seed = insecure_seed

    def fit(self, X: Any, y: Any, Xt: Any) -> Self:
        """Ask the private ``Xt`` for second moments, weigh the public ``X, y``, regress."""
        S = _check.matrix(X=X)
        question = SecondMoments(**self._bounds(Xt), labelled=False)
        M, _ = question.unpacked(self._ask(question, Xt, None)["sums"])
        self.sample_weight_ = weights_for_moments(S, M)
        self.coef_ = ridge(S, np.asarray(y, dtype=np.float64), self.penalty, self.sample_weight_)
        return self


__all__ = [
    "DPLinearRegression",
    "MinibatchDescent",
    "NoisySGDRegressor",
    "PrivateDM",
    "SecondMoments",
]
