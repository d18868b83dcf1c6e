"""Private regression and classification by objective perturbation (Chaudhuri et al. 2011, Kifer et al. 2012).

The owner minimises ``J(w) = Σ l(w; x_i, y_i) + Λ/2 |w|² + b·w`` with a random slope b of density
``exp(-β|b|)``. Rows have norm 1 at most, labels are within ±1 (regression) or are ±1 (classes); l is the
Huber loss of the residual with threshold c (gradient at most ``ζ = c``, curvature at most ``s = 1``) or the
logistic loss (``ζ = 1``, ``s = 1/4``), and depends on w through ``x·w`` only.

*Proof.* w minimises J exactly if ``b = -Σ ∇l - Λw``: for every data set a bi-Lipschitz bijection of w and
b. The density of w is that of b there times ``det(Σ ∇²l + ΛI)``. Replacing one record moves b by at most 2ζ
at every w, which changes its density by at most ``e^{2ζβ}`` (triangle inequality). With A the Hessian
without that record, ``A >= ΛI``, each record's own Hessian is of rank one and at most s, so the
determinants' ratio is at most ``det(A + s vv')/det(A) <= 1 + s/Λ``. Together ``ε = 2ζβ + log(1 + s/Λ)``; m
rows of a person: m times both. J is Λ-strongly convex, so a point whose gradient has norm at most γ is
within ``γ/Λ`` of the minimum: K-norm noise of radius ``2γ/Λ`` on the output pays for that (approximate
minima, Iyengar et al. 2019). γ follows from public numbers and lies above what the gradient's sums round, so
that it is reached whatever the rows are.
All of it is pure epsilon, hence (epsilon, delta) for every delta; the noise is drawn in float64 (idealised).
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
from privada._arrays import FloatArray
from privada.exceptions import InputError, RelationError
from privada.parties.answering import Draws
from privada.parties.rows import Rows
from privada.parties.schema import Number, Schema
from privada.privacy.bounds import Ball
from privada.privacy.guarantee import PureDP, make_guarantee
from privada.privacy.mechanism import KNorm, Plan, pure_event
from privada.privacy.release import PublicSchema
from privada_lab.baselines.private._asking import BaselineQuestion, ask, ball_schema, class_list, row_width
from privada_lab.baselines.private._newton import ROUNDED, Look, minimum

TOLERANCE = 1e-8
CURVED, OUTPUT = 0.2, 0.01  # shares of epsilon for the determinant and for the output
LOSSES = ("huber", "logistic")
LARGEST_CLIP = 1e6  # in units of the label's bound: beyond, no residual is clipped
EPSILONS = (1e-9, 30.0)  # for a row: beyond, the objective is steep or flat past what floats tell


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PerturbedMinimum(BaselineQuestion):
    """Ask for the minimiser of a randomly tilted, strongly convex objective.

    Parameters
    ----------
    width, size : int
    norm_bound : float
        Rows are clipped to this norm and divided by it.
    loss : "huber" or "logistic"
    label_bound, clip : float
        Of regression: labels are clipped to ``±label_bound`` and divided by it; c, the Huber threshold.

    Privacy
    -------
    Unit: one row, replaced, or a person's m rows. Pure epsilon; proof: the module's docstring.
    """

    width: int
    size: int
    norm_bound: float
    loss: str = "huber"
    label_bound: float = 1.0
    clip: float = 1.0
    kind: ClassVar[str] = "baselines.perturbed-minimum"
    answered_by: ClassVar[str] = "privada_lab.baselines.private.perturbation:answer"

    def validate(self) -> None:
        """Check every public parameter by name."""
        _check.count(width=self.width)
        _check.count(size=self.size)
        _check.one_of(LOSSES, loss=self.loss)
        for name in ("norm_bound", "label_bound", "clip"):
            _check.positive(**{name: getattr(self, name)})
        if not self.replaces:
            raise RelationError("This baseline's number of rows is public: ask under replace-one.")
        if not isinstance(self.guarantee, PureDP):
            raise InputError(f"Objective perturbation is asked for a pure epsilon, not for {self.guarantee}.")
        if self.clip > LARGEST_CLIP:
            raise InputError(f"Expected clip of at most {LARGEST_CLIP:g}, got {self.clip!r}.")
        if not EPSILONS[0] <= self.guarantee.epsilon / self.rows <= EPSILONS[1]:
            raise InputError(f"Expected epsilon between {EPSILONS[0]:g} and {EPSILONS[1]:g} a row.")

    def fits(self, schema: PublicSchema) -> None:
        """Check features, size and classes against the owner's schema."""
        if self.width != schema.width or self.size != schema.size:
            raise InputError(f"Expected width {schema.width} and the declared size {schema.size}.")
        if schema.label is None:
            raise InputError("Expected a schema with a label: a regression is of labels.")
        if self.loss == "logistic" and len(schema.classes) != 2:
            raise InputError(f"Expected two classes, got {len(schema.classes)}.")

    @property
    def curvature(self) -> float:
        """s: of one record's loss in its score, at most."""
        return 1.0 if self.loss == "huber" else 0.25

    @property
    def steep(self) -> float:
        """ζ: the slope of one record's loss in its score, at most."""
        return self.clip if self.loss == "huber" else 1.0

    @property
    def regularisation(self) -> float:
        """Λ: such that the determinants cost their share."""
        assert isinstance(self.guarantee, PureDP)
        return self.curvature / math.expm1(CURVED * self.guarantee.epsilon / self.rows)

    @property
    def tolerance(self) -> float:
        """γ: the gradient's norm at what is released, above what its sums round."""
        assert isinstance(self.guarantee, PureDP)
        tilt = 2 * self.steep * self.rows / ((1 - CURVED - OUTPUT) * self.guarantee.epsilon)
        terms = self.size * self.rows * self.steep + 2 * (self.width + 40) * tilt  # but with odds of e^-40
        return max(TOLERANCE, ROUNDED * terms)

    def planned(self) -> Plan:
        """The slope, and the output; the determinants have no noise of their own."""
        assert isinstance(self.guarantee, PureDP)
        epsilon = self.guarantee.epsilon
        slope = KNorm(sensitivity=2 * self.steep * self.rows, budget=(1 - CURVED - OUTPUT) * epsilon)
        output = KNorm(sensitivity=2 * self.tolerance / self.regularisation, budget=OUTPUT * epsilon)
        return Plan(
            draws={"slope": slope, "weights": output}, event=pure_event(epsilon), epsilon=float(epsilon)
        )


def answer(question: PerturbedMinimum, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Tilt, minimise, perturb the output."""
    everything = rows.gathered()
    X, y = Ball(radius=1.0).clip(everything.X / question.norm_bound), everything.labels.astype(np.float64)
    tilt = draw("slope", np.zeros(question.width))
    if question.loss == "huber":
        y = np.clip(y / question.label_bound, -1, 1)
    found = minimised(question, X, y, tilt)
    return {"weights": draw("weights", found)}


def minimised(question: PerturbedMinimum, X: FloatArray, y: FloatArray, tilt: FloatArray) -> FloatArray:
    """The minimiser of J, to a gradient of norm γ."""
    strength = question.regularisation

    def look(w: FloatArray) -> Look:
        value, push, curve = _looked(question, X @ w, y)
        value += float(strength / 2 * w @ w + tilt @ w)
        slope = X.T @ push + strength * w + tilt
        return value, slope, lambda: (X.T * curve) @ X + strength * np.eye(len(w))

    return minimum(
        look,
        np.zeros(X.shape[1]),
        tolerance=question.tolerance,
        strong=strength,
        smooth=strength + question.curvature * len(X),
    )


def _looked(
    question: PerturbedMinimum, scores: FloatArray, y: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Sum of losses, and slopes and curvatures of each record's loss in its score."""
    if question.loss == "huber":
        left = scores - y
        inside = np.abs(left) <= question.clip
        beyond = question.clip * (np.abs(left) - question.clip / 2)
        value = float(np.where(inside, left**2 / 2, beyond).sum())
        return value, np.clip(left, -question.clip, question.clip), inside.astype(np.float64)
    signs = 2 * y - 1
    miss = 0.5 * (1 - np.tanh(signs * scores / 2))
    return float(np.logaddexp(0.0, -signs * scores).sum()), -signs * miss, miss * (1 - miss)


class _Perturbed(BaseEstimator):  # type: ignore[misc]
    """What both estimators share."""

    def _ask(self, X: Any, y: Any, schema: Schema, **more: Any) -> FloatArray:
        question = PerturbedMinimum(
            width=row_width(X),
            size=len(X),
            norm_bound=float(self.norm_bound or 0),
            guarantee=make_guarantee(epsilon=self.epsilon, relation="replace-one"),
            **more,
        )
        self.release_ = ask(question, X, y, schema=schema, insecure_seed=self.insecure_seed)
        self.guarantee_, self.n_features_in_ = self.release_.guarantee, question.width
        return np.asarray(self.release_["weights"] / question.norm_bound)

    def decision_function(self, X: Any) -> FloatArray:
        """``x @ coef_`` of rows."""
        check_is_fitted(self)
        return np.asarray(_check.matrix(X=X, width=self.n_features_in_) @ self.coef_)


class PerturbedRegressor(RegressorMixin, _Perturbed):  # type: ignore[misc]
    """Huber regression of the target alone by objective perturbation, at pure epsilon.

    Parameters
    ----------
    epsilon : float
    norm_bound, label_bound : float
        Public bounds of rows and labels.
    clip : float
        Huber threshold, in units of ``label_bound``.
    insecure_seed : int, optional
        Seed for reproducible noise: not private.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(5000, 2))
    >>> model = PerturbedRegressor(epsilon=2, norm_bound=1.0).fit(X, X @ [1.0, -1.0])
    >>> bool(np.all(model.coef_ * [1, -1] > 0.5))
    True
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        norm_bound: float | None = None,
        label_bound: float = 1.0,
        clip: float = 1.0,
        insecure_seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.norm_bound = norm_bound
        self.label_bound = label_bound
        self.clip = clip
        self.insecure_seed = insecure_seed

    def fit(self, X: Any, y: Any) -> Self:
        """Ask once."""
        radius, bound = self.norm_bound, self.label_bound
        if radius is None:
            raise InputError("Expected norm_bound, the radius of a public ball; none is guessed.")
        label = Number(name="label", low=-bound, high=bound)
        schema = Schema.of_numbers(bounds=(-radius, radius), width=row_width(X), size=len(X), label=label)
        self.coef_ = self._ask(X, y, schema, label_bound=bound, clip=self.clip) * bound
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predictions of rows."""
        return self.decision_function(X)


class PerturbedClassifier(ClassifierMixin, _Perturbed):  # type: ignore[misc]
    """Logistic regression of two classes by objective perturbation, at pure epsilon.

    Parameters
    ----------
    epsilon : float
    classes : sequence of two
        Public list of the labels.
    norm_bound : float
        Public bound of rows; a constant feature, if wanted, is the caller's.
    insecure_seed : int, optional
        Seed for reproducible noise: not private.
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        classes: Any = None,
        norm_bound: float | None = None,
        insecure_seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.classes = classes
        self.norm_bound = norm_bound
        self.insecure_seed = insecure_seed

    def fit(self, X: Any, y: Any) -> Self:
        """Ask once."""
        width, classes = row_width(X), class_list(self.classes)
        schema = ball_schema(self.norm_bound, width=width, size=len(X), classes=classes, labelled=True)
        self.coef_ = self._ask(X, y, schema, loss="logistic")
        self.classes_ = np.asarray(classes)
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Class of each row."""
        return self.classes_[(self.decision_function(X) > 0).astype(np.int64)]


__all__ = ["PerturbedClassifier", "PerturbedMinimum", "PerturbedRegressor"]
