"""Logistic regression by noisy gradient descent: the baseline for private classification.

Rows are clipped to a public ball and scaled to norm 1, a constant feature is appended, and
the sum of all rows' gradients of the softmax loss is released T times with Gaussian noise.
Everything between two releases (scaling, projection, averaging) is post-processing.

*Sensitivity.* A row's gradient is ``(p - e_y) x'`` with ``||p - e_y|| <= √2`` (p in the simplex) and
``||x||² <= 1 + a²``, a the constant feature; so its norm is at most ``B = √2 √(1 + a²)`` whatever
the weights are. Truncation toward zero does not increase it. Add/remove: B. Replace-one: ``2B``
and the grid's slack ``step √(K (d + 1))``. T steps of equal noise at μ/√T compose exactly to μ,
also adaptively (Gaussian trade-off functions; Dong, Roth and Su 2022).

*Step size.* In continuous time the weights' noise after time τ = T η is ``τ Δ/(n μ)`` a coordinate,
whatever T is: more steps cost time only. So τ is chosen such that this noise, seen by a row of
norm 1, is `DRIFT` logits, and never beyond what T steps of 1/L (L the loss's smoothness) reach.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada.parties.answering import Draws
from privada.parties.rows import Batch, Prepared, Rows
from privada.privacy.bounds import Ball, Grid
from privada.privacy.guarantee import PureDP, make_guarantee
from privada.privacy.mechanism import Gaussian, Mechanism, Plan, gaussian_event
from privada.privacy.release import PublicSchema
from privada_lab.baselines.private._asking import BaselineQuestion, ask, ball_schema, class_list, row_width

Part = tuple[FloatArray, IntArray]

INTERCEPT = 0.5  # the constant feature, where rows have norm 1 at most
NORM = math.sqrt(2 * (1 + INTERCEPT**2)) * (1 + 2.0**-40)  # of one row's gradient; the margin is for rounding
SMOOTHNESS = (1 + INTERCEPT**2) / 2
SIZE_SHARE = 0.02  # of μ², for a noisy number of rows where none is declared
DRIFT = 0.5


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NoisyGradients(BaselineQuestion):
    """Ask for the weights of a logistic regression, trained at the owner's by noisy gradients.

    Parameters
    ----------
    n_classes, width : int
    norm_bound : float
        Rows are clipped to this norm.
    n_steps : int
        How many noisy gradients.
    regularisation : float
        Half of it times the squared norm of the weights is added to the mean loss.
    size : int, optional
        Declared number of rows; without it a share of the budget counts them.

    Privacy
    -------
    Unit: one row (or a person with at most m rows: m times as far). Add/remove or replace-one.
    L2 sensitivity of each gradient and proof: the module's docstring.
    """

    n_classes: int
    width: int
    norm_bound: float
    n_steps: int = 100
    regularisation: float = 0.0
    size: int | None = None
    kind: ClassVar[str] = "baselines.logistic"
    answered_by: ClassVar[str] = "privada_lab.baselines.private.logistic:answer"

    def validate(self) -> None:
        """Check every public parameter by name."""
        _check.count(least=2, n_classes=self.n_classes)
        _check.count(width=self.width)
        _check.positive(norm_bound=self.norm_bound)
        _check.count(n_steps=self.n_steps)
        _check.non_negative(regularisation=self.regularisation)
        if self.size is not None or self.replaces:  # replacing rows makes their number public
            _check.count(size=self.size)
        if isinstance(self.guarantee, PureDP):
            raise InputError(
                f"Noisy gradients are asked for with delta, or for rho, not for {self.guarantee}."
            )

    def fits(self, schema: PublicSchema) -> None:
        """Check features and classes against the owner's schema."""
        if self.width != schema.width or self.n_classes != len(schema.classes):
            raise InputError(f"Expected width {schema.width} and {len(schema.classes)} classes.")

    @property
    def reach(self) -> float:
        """How far one unit moves the sum of gradients, without the grid's slack."""
        return self.rows * NORM * (2.0 if self.replaces else 1.0)

    def planned(self) -> Plan:
        """One count if the size is not declared, and equal noise on every gradient."""
        mu = self.guarantee.gaussian_mu()
        draws: dict[str, Mechanism] = {}
        if self.size is None:
            counted = mu * math.sqrt(SIZE_SHARE)
            draws["size"] = Gaussian.calibrated(sensitivity=float(self.rows), mu=counted, whole=True)
            mu *= math.sqrt(1 - SIZE_SHARE)
        each = mu / math.sqrt(self.n_steps)
        grid = Grid.finer_than(NORM / each * 2.0**-20)
        slack = grid.step * math.sqrt(self.n_classes * (self.width + 1)) if self.replaces else 0.0
        sensitivity = self.reach + self.rows * slack
        step = Gaussian.calibrated(sensitivity=sensitivity, mu=each, grid=grid)
        draws |= {f"gradient {t}": step for t in range(self.n_steps)}
        total = math.fsum(draw.mu**2 for draw in draws.values() if isinstance(draw, Gaussian))
        return Plan(draws=draws, event=gaussian_event(math.sqrt(total)))


def answer(question: NoisyGradients, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Descend; only noisy sums of gradients move the weights, whose later half is averaged."""
    parts = rows.prepared(lambda batch: _prepared(batch, question))
    size = _size(question, parts, draw)
    pace = _pace(question, size)
    weights = np.zeros((question.n_classes, question.width + 1))
    total = np.zeros_like(weights)
    for t in range(question.n_steps):
        name = f"gradient {t}"
        gradient = draw(name, parts.total(partial(_gradient_sum, question, weights, name))) / size
        gradient -= gradient.mean(axis=0)  # exact gradients of the softmax loss have no part there
        weights = weights - pace * (gradient + question.regularisation * weights)
        if 2 * t >= question.n_steps:
            total += weights
    return {"weights": total / (question.n_steps // 2) if question.n_steps > 1 else weights}


def _prepared(batch: Batch, question: NoisyGradients) -> Part:
    """Rows of norm 1 at most with the constant feature, and their codes."""
    inside = Ball(radius=1.0).clip(batch.X / question.norm_bound)
    return np.column_stack([inside, np.full(len(inside), INTERCEPT)]), batch.labels.astype(np.int64)


def _size(question: NoisyGradients, parts: Prepared[Part], draw: Draws) -> float:
    """The declared number of rows, or a noisy one."""
    if question.size is not None:
        return float(question.size)
    mechanism = question.plan.lattice("size")
    counted = draw("size", mechanism.place(parts.total(lambda part: np.array([len(part[1])]))))
    return max(1.0, float(counted[0]))


def _pace(question: NoisyGradients, size: float) -> float:
    """The step size, from public or released quantities."""
    horizon = DRIFT * size * question.guarantee.gaussian_mu() / question.reach
    return min(1 / (SMOOTHNESS + question.regularisation), horizon / question.n_steps)


def _gradient_sum(question: NoisyGradients, weights: FloatArray, name: str, part: Part) -> IntArray:
    """The exact sum of a batch's gradients in whole grid steps. Never leaves this module."""
    from privada_lab.baselines.private import _kernels

    mechanism = question.plan.lattice(name)
    sums = np.zeros(weights.shape, dtype=np.int64)
    _kernels.add_softmax_gradients(sums, *part, weights, 1 / mechanism.grid.step)
    return sums


class DPLogisticRegression(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression, softmax for several classes, by noisy full-batch gradient descent.

    Parameters
    ----------
    epsilon, delta, rho : float
        The guarantee: epsilon with delta, or rho.
    classes : sequence
        Public list of the labels.
    norm_bound : float
        Rows are clipped to this norm; none is guessed.
    n_steps : int
        Number of noisy gradients; more cost time, not privacy or accuracy.
    regularisation : float
        Of the mean loss, on weights of rows scaled to norm 1.
    relation : str
        "add/remove", or "replace-one", under which ``size`` is public and needed.
    size : int, optional
        Declared number of rows. Under add/remove it may be left out: a small share of the budget counts.
    insecure_seed : int, optional
        Seed for reproducible noise: not private.

    Attributes
    ----------
    coef_, intercept_ : arrays of shape (classes, features) and (classes,)
    classes_ : array
    release_, guarantee_
        What left the owner, and what was promised.

    Privacy
    -------
    Unit: one row. A row's gradient has norm at most ``√2 √(1 + 1/4)`` after scaling, twice that for a
    replacement; steps compose exactly. Proof: `privada_lab.baselines.private.logistic`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["no", "yes"], 500)
    >>> X = rng.normal(0, 0.1, size=(1000, 2)) + np.where(y == "yes", 0.3, -0.3)[:, None]
    >>> model = DPLogisticRegression(epsilon=1, delta=1e-5, classes=("no", "yes"), norm_bound=1)
    >>> model.fit(X, y).predict([[0.3, 0.3], [-0.3, -0.3]]).tolist()
    ['yes', 'no']
    >>> print(model.guarantee_)
    (ε = 1, δ = 1e-05), add/remove one row
    """

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        classes: Any = None,
        norm_bound: float | None = None,
        *,
        rho: float | None = None,
        n_steps: int = 100,
        regularisation: float = 0.0,
        relation: str = "add/remove",
        size: int | None = None,
        insecure_seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.norm_bound = norm_bound
        self.rho = rho
        self.n_steps = n_steps
        self.regularisation = regularisation
        self.relation = relation
        self.size = size
        self.insecure_seed = insecure_seed

    def fit(self, X: Any, y: Any) -> Self:
        """Train at an owner in memory, privately."""
        width = row_width(X)
        schema = ball_schema(
            self.norm_bound, width=width, size=self.size, classes=self.classes, labelled=True
        )
        question = NoisyGradients(
            n_classes=len(class_list(self.classes)),
            width=width,
            norm_bound=float(self.norm_bound or 0),
            n_steps=self.n_steps,
            regularisation=self.regularisation,
            size=self.size,
            guarantee=make_guarantee(
                epsilon=self.epsilon, delta=self.delta, rho=self.rho, relation=self.relation
            ),
        )
        self.release_ = ask(question, X, y, schema=schema, insecure_seed=self.insecure_seed)
        self.guarantee_ = self.release_.guarantee
        self.coef_ = self.release_["weights"][:, :-1] / question.norm_bound
        self.intercept_ = self.release_["weights"][:, -1] * INTERCEPT
        self.classes_ = np.asarray(schema.classes.names)
        self.n_features_in_, self._radius = width, question.norm_bound
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Logits of every class, for rows clipped to the public ball."""
        check_is_fitted(self)
        inside = Ball(radius=self._radius).clip(_check.matrix(X=X, width=self.n_features_in_))
        logits: FloatArray = inside @ self.coef_.T + self.intercept_
        return logits

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of every class."""
        from scipy.special import softmax

        return softmax(self.decision_function(X), axis=1)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most likely class."""
        likely = self.decision_function(X).argmax(axis=1)
        return self.classes_[likely]


__all__ = ["DPLogisticRegression", "NoisyGradients"]
