"""Importance weights for a labelled public set, privately, as Ji and Elkan 2013 do.

A regularised logistic regression tells public rows from private ones; its noisy coefficients give each
public row a weight, and a classifier is trained on the weighted public rows. The target's
labels are not used.

*Sensitivity.* The coefficients minimise ``λ/2 |w|² + ½ mean loss(public) + ½ mean loss(private)``,
which is λ-strongly convex. Replacing one of n rows of norm at most R changes the gradient by at most R/n, m
rows of a person by m times that, and so the minimiser by ``m R/(n λ)`` in L2. It is found to a gradient of
norm γ, hence within ``γ/λ``, which counts twice; truncation to a grid of step g adds g√d. γ follows from
public numbers and lies above what the gradient's sums round, so that it is reached whatever the rows are.

Reference: Z. Ji and C. Elkan, *Differential privacy based on importance weighting*, Machine Learning, 2013.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError, RelationError
from privada.parties.answering import Draws
from privada.parties.rows import Rows
from privada.privacy.bounds import Ball, Grid
from privada.privacy.guarantee import PureDP, make_guarantee
from privada.privacy.mechanism import Gaussian, Laplace, Plan
from privada.privacy.release import PublicSchema
from privada_lab.baselines.private._asking import BaselineQuestion, ask, ball_schema
from privada_lab.baselines.private._newton import ROUNDED, Look, minimum
from privada_lab.baselines.private.tree_kmeans import clipped_rows

TOLERANCE = 1e-9
STEEPEST = 1e6  # R/√λ, at most: the objective's condition is its square


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class WeightingCoefficients(BaselineQuestion):
    """Ask for the noisy coefficients that tell private rows from public ones.

    Parameters
    ----------
    public : array of shape (rows, features)
    size : int
        Public number n of private rows.
    norm_bound, regularisation : float
        R and λ.

    Privacy
    -------
    Unit: one row, replace-one. Laplace noise for a pure guarantee, Gaussian otherwise. Sensitivity and
    proof: the module's docstring.
    """

    public: FloatArray
    size: int
    norm_bound: float
    regularisation: float
    kind: ClassVar[str] = "baselines.weighting"
    answered_by: ClassVar[str] = "privada_lab.baselines.private.weighting:answer"

    def validate(self) -> None:
        """Check every public parameter by name."""
        object.__setattr__(self, "public", _check.matrix(public=self.public))
        _check.count(size=self.size)
        _check.positive(norm_bound=self.norm_bound)
        _check.positive(regularisation=self.regularisation)
        if not self.norm_bound / math.sqrt(self.regularisation) <= STEEPEST:
            raise InputError(
                f"Expected regularisation of at least norm_bound² / {STEEPEST**2:g}, got "
                f"{self.regularisation!r} beside norm_bound {self.norm_bound!r}."
            )
        if not self.replaces:
            raise RelationError("The number of rows is public here: ask under replace-one.")

    def fits(self, schema: PublicSchema) -> None:
        """Check features and size against the owner's schema."""
        if self.public.shape[1] != schema.width or schema.size != self.size:
            raise InputError(f"Expected {schema.size} rows of width {schema.width}.")

    @property
    def tolerance(self) -> float:
        """γ: ``|w| <= √(2 log 2 / λ)`` bounds what a score rounds, and with it a row's slope."""
        scores = self.norm_bound / math.sqrt(self.regularisation)
        return max(TOLERANCE, ROUNDED / 4 * self.norm_bound * (64 + scores))

    def planned(self) -> Plan:
        """One draw of all coefficients."""
        d = self.public.shape[1]
        reach = (self.rows * self.norm_bound / self.size + 2 * self.tolerance) / self.regularisation
        grid = Grid.finer_than(reach * 2.0**-26)
        far = reach + grid.step * math.sqrt(d)
        if isinstance(self.guarantee, PureDP):
            l1 = math.sqrt(d) * far
            return Plan(
                draws={"coef": Laplace.calibrated(sensitivity=l1, epsilon=self.guarantee.epsilon, grid=grid)}
            )
        mu = self.guarantee.gaussian_mu()
        return Plan(draws={"coef": Gaussian.calibrated(sensitivity=far, mu=mu, grid=grid)})


def answer(question: WeightingCoefficients, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Minimise, truncate, then draw."""
    ball = Ball(radius=question.norm_bound)
    private = clipped_rows(rows, question.norm_bound)
    found = minimised(
        ball.clip(question.public),
        private,
        question.size,
        question.regularisation,
        tolerance=question.tolerance,
    )
    mechanism = question.plan.lattice("coef")
    return {"coef": draw("coef", mechanism.grid.truncate(found))}


def minimised(
    public: FloatArray,
    private: FloatArray,
    size: int,
    regularisation: float,
    *,
    tolerance: float = TOLERANCE,
) -> FloatArray:
    """The minimiser, to a gradient of norm γ."""
    Z = np.vstack([-public, private])  # the loss of a row is log(1 + exp(-z·w))
    shares = np.repeat([0.5 / len(public), 0.5 / size], [len(public), len(private)])

    def look(w: FloatArray) -> Look:
        miss = 0.5 * (1 - np.tanh(Z @ w / 2))
        value = float(shares @ np.logaddexp(0.0, -Z @ w) + regularisation / 2 * w @ w)
        curves = shares * miss * (1 - miss)
        slope = regularisation * w - (shares * miss) @ Z
        return value, slope, lambda: (Z.T * curves) @ Z + regularisation * np.eye(len(w))

    curved = float(shares @ np.sum(Z**2, axis=1)) / 4
    start = np.zeros(Z.shape[1])
    smooth = regularisation + curved
    return minimum(look, start, tolerance=tolerance, strong=regularisation, smooth=smooth)


class PrivateWeighting(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Train on labelled public rows that are weighted to look like a private target.

    Parameters
    ----------
    classifier : scikit-learn classifier with ``sample_weight``, optional
        Logistic regression by default.
    epsilon, delta, rho : float
        The guarantee for the target's rows, replace-one; epsilon and rho exclude each other.
    norm_bound : float
        Radius of the public ball around 0; rows beyond it are clipped.
    regularisation : float
        λ: more is less noise and flatter weights.
    insecure_seed : int, optional
        Seed for reproducible noise: not private.

    Attributes
    ----------
    coef_, weights_, model_, classes_
    release_, guarantee_
        What left the owner, and what was promised.

    Privacy
    -------
    Unit: one row of the target, replace-one; its number of rows is public. Proof: the module's docstring.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> public, target = rng.normal(0, 0.4, size=(500, 2)), rng.normal(0.5, 0.2, size=(500, 2))
    >>> model = PrivateWeighting(epsilon=5, norm_bound=1).fit(public, public[:, 0] > 0, target=target)
    >>> print(model.guarantee_)
    ε = 5 (pure), replace-one row
    """

    def __init__(
        self,
        classifier: Any = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        norm_bound: float | None = None,
        regularisation: float = 0.01,
        insecure_seed: int | None = None,
    ) -> None:
        self.classifier = classifier
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.norm_bound = norm_bound
        self.regularisation = regularisation
        self.insecure_seed = insecure_seed

    def fit(self, X: Any, y: Any, *, target: Any = None) -> Self:
        """Train on labelled public rows, weighted toward the private ``target`` rows."""
        from sklearn.linear_model import LogisticRegression

        if target is None:
            raise InputError("Expected target, the private rows that the public ones should look like.")
        public, size = _check.matrix(X=X), len(target)
        schema = ball_schema(self.norm_bound, width=public.shape[1], size=size)
        question = WeightingCoefficients(
            public=public,
            size=size,
            norm_bound=float(self.norm_bound or 0),
            regularisation=self.regularisation,
            guarantee=make_guarantee(
                epsilon=self.epsilon, delta=self.delta, rho=self.rho, relation="replace-one"
            ),
        )
        self.release_ = ask(question, target, schema=schema, insecure_seed=self.insecure_seed)
        self.guarantee_, self.coef_ = self.release_.guarantee, self.release_["coef"]
        score = Ball(radius=question.norm_bound).clip(public) @ self.coef_
        self.weights_ = np.exp(np.clip(score, -5, 5))
        self.weights_ /= self.weights_.mean()
        model = LogisticRegression() if self.classifier is None else self.classifier
        self.model_ = clone(model).fit(public, np.asarray(y), sample_weight=self.weights_)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Class of each row."""
        check_is_fitted(self)
        return self.model_.predict(_check.matrix(X=X))


__all__ = ["PrivateWeighting", "WeightingCoefficients"]
