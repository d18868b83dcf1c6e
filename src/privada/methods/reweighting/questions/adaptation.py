"""PCnvxAdap and PNCnvxAdap (Algorithms 1 and 2), calibrated exactly.

**Units.** Private u are kept as ``n/((1-α)u_i)`` in (0, 1]. The sum over private rows of these factors
times the loss gradient moves, when a row is replaced, by at most the diameter D of the gradients: ``|f g -
f' g'|`` is convex in f and in f', so it is largest where both factors are 0 or 1, where it is at most D or G,
and ``G <= D``. The paper's s₁ is ``(1-α)/n`` times that.

**Private weights stay at the owner's.** They are not released, and their penalty is separable (κ₂ Σ 1/u², no
κ_∞): given the path of w each u_i depends on record i alone, so record j enters the gradient through its own
term only. No noise on u, and w gets the whole budget (privacy.md, section 4 (c)).

Released weights, as the paper has them, would be in the order of the owner's rows, and that order may depend
on them: in a file sorted by a column, or by person, a replaced record stands elsewhere and every weight
between the two places moves. Then not one coordinate changes but up to n (privacy.md, section 4 (b)).

**Which rows count.** All n. Where persons are protected, more rows than the public n may be there; a secret,
uniform choice of n counts. *Proof.* Order all rows at random, alike in both worlds for the rows of others;
the first n count. With k and k' rows of the replaced person among them, k, k' <= m, at most ``|k - k'|``
others are counted in one world only: ``max(k, k')`` rows leave at most, and as many come.

**Truncation** moves a difference of two contributions by at most √d grid steps, which the sensitivity D
includes; lengths do not grow by it, so 2G never needs it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.linear.questions import public
from privada.methods.reweighting.questions.problem import Bounds, Penalties
from privada.privacy.codec import mapping_of
from privada.privacy.mechanism import Gaussian, Plan, gaussian_event
from privada.privacy.release import PublicSchema, Question


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _Adaptation(Question):
    """What both algorithms share: the public source, the bounds, the penalties."""

    size: int
    source: FloatArray
    source_labels: FloatArray
    penalties: Penalties = field(metadata=mapping_of(Penalties))
    A: float
    r: float = 1.0
    steps: int = 100
    hidden: bool = True
    step_scale: float = 1.0

    def validate(self) -> None:
        """Check every public parameter by name."""
        public.replaced(self.guarantee)
        public.gaussian(self.guarantee, "A private adaptation")
        _check.count(size=self.size)
        Bounds(A=self.A, r=self.r)
        _check.positive(step_scale=self.step_scale)
        if _check.count(steps=self.steps) > public.MOST_STEPS:
            raise InputError(f"Expected steps of at most {public.MOST_STEPS:,}, got {self.steps:,}.")
        object.__setattr__(self, "source", public.matrix(source=self.source))
        labels = public.vector(source_labels=self.source_labels, length=len(self.source))
        object.__setattr__(self, "source_labels", labels)
        self.penalties.check_moderate()
        if self.penalties.kappa_inf:
            raise InputError("Expected kappa_inf to be 0: it couples the weights of the rows.")
        public.few_numbers(self.size * self.source.shape[1], "the private rows")
        if not isinstance(self.hidden, bool):
            raise InputError(f"Expected hidden to be true or false, got {self.hidden!r}.")
        if not self.hidden:
            raise InputError(
                "Expected hidden to be true: weights of private rows are not released, for they would be in "
                "the order of the owner's rows, and a replaced row may change the places of all others."
            )

    @property
    def bounds(self) -> Bounds:
        """A, r and what follows from them."""
        return Bounds(A=self.A, r=self.r)

    @property
    def largest_loss(self) -> float:
        """B."""
        return self.bounds.B

    @property
    def largest_gradient(self) -> float:
        """G."""
        return self.bounds.G

    @property
    def diameter(self) -> float:
        """Largest difference of two gradients, rounding of the scores included."""
        rounding = 2.0**-50 * (self.source.shape[1] + 8)
        return float(min(2 * self.largest_gradient, self.bounds.diameter * (1 + rounding)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the predictor's weights."""
        return (self.source.shape[1],)

    def sensitivity(self, step: float) -> float:
        """How far a replaced row moves a sum of gradients on a grid of this step."""
        slack = step * math.sqrt(math.prod(self.shape))
        return float(min(2 * self.largest_gradient, self.diameter + slack))

    def fits(self, schema: PublicSchema) -> None:
        """Check size, features and label against the owner's schema."""
        public.declared(self.size, schema, self.source.shape[1])

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        return {"coef": self.shape}

    def planned(self) -> Plan:
        """T sums of equal noise; together they use up the guarantee."""
        rows = self.guarantee.unit.max_rows
        mu = self.guarantee.gaussian_mu() / math.sqrt(self.steps)
        grid = public.fine_grid(self.diameter * rows, self.diameter * rows / mu)
        sums = Gaussian.calibrated(sensitivity=self.sensitivity(grid.step) * rows, mu=mu, grid=grid)
        names = (f"gradient_{t}" for t in range(self.steps))
        return Plan(draws=dict.fromkeys(names, sums), event=gaussian_event(sums.mu * math.sqrt(self.steps)))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ConvexAdaptation(_Adaptation):
    """Ask for PCnvxAdap: noisy projected gradient on F, squared loss, linear predictors, averaged.

    Parameters
    ----------
    size : int
        Public number n of private rows.
    source, source_labels : arrays of shape (m, features) and (m,)
        The public rows; clipped like the private ones.
    penalties : Penalties
        alpha, κ's and the *released* discrepancy.
    A, r : float
        Public bounds of predictors and features; labels are clipped to ±1.
    steps : int
    hidden : bool
        Always true: the private weights stay at the owner's, κ₂'s penalty is separable and κ_∞ is 0. False,
        which released them, is refused.
    step_scale : float
        Factor on the paper's step sizes.

    Notes
    -----
    The payload is ``coef``.

    Privacy
    -------
    Unit and relation are the guarantee's (replace-one). Sensitivities: above and privacy.md, section 4.
    """

    kind: ClassVar[str] = "reweighting.convex"
    answered_by: ClassVar[str] = "privada.methods.reweighting.owner.answer:answer_convex"

    def fits(self, schema: PublicSchema) -> None:
        """Check size, features and label against the owner's schema."""
        super().fits(schema)
        public.numeric_label(schema)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NonconvexAdaptation(_Adaptation):
    """Ask for PNCnvxAdap: noisy projected gradient on J, logistic or softmax loss, stopped at a random step.

    Only the iterate of a step t*, uniform and drawn at the owner's, leaves. The ledger is charged for all T
    steps: what the random stop saves (`stopping_delta`) is a fact about one (ε, δ), which no ledger of
    Gaussian losses can add up.

    Parameters
    ----------
    size, source, penalties, A, r, steps, hidden, step_scale
        As in `ConvexAdaptation`; κ₁, κ₂, κ_∞ are λ₁, λ₂, λ_∞ of equation (7).
    source_labels : array of shape (m,)
        Codes of classes, 0 to K - 1.
    n_classes : int
        Public number K of classes. Two have logistic loss and one weight a feature; more have softmax loss
        and weights W of shape (features, K), ``|W|_F <= A``.

    Notes
    -----
    The payload is ``coef``, of the weights' shape.

    Privacy
    -------
    Unit and relation are the guarantee's (replace-one). The gradient of the logistic loss has norm at most
    r, two of them differ by at most 2r; losses are at most ``log(1 + e^{Ar})``.

    *Softmax.* Logits are ``s = Wᵀx`` and ``p = softmax(s)``. ``s_k - s_y = (w_k - w_y)·x <= √2 |W|_F |x|``,
    for ``|w_k - w_y|² <= 2|w_k|² + 2|w_y|²``, so the loss ``log Σ_k e^{s_k - s_y}`` is at most ``B = log(1 +
    (K-1) e^{√2 A r})``. The gradient is ``x ⊗ a``, ``a = p - onehot``, and ``|a|² = (1-p_y)² + Σ_{k≠y} p_k²
    <= 2(1-p_y)²``, so its Frobenius norm is at most ``G = √2 r (1 - e^-B) < √2 r``; each record's is
    shortened to G, whatever it is.

    Two gradients differ by at most 2G, and that is approached as Ar grows (nearly opposite records of one
    label, both where another class wins). For smaller Ar less is true. With ``ū = (1/K, ..., 1/K)`` a
    gradient is ``x ⊗ (p - ū) - x ⊗ (onehot - ū)``. The second parts differ by at most ``2r √(1 - 1/K)``.
    The first is ``x xᵀ W M``, where ``M = ∫₀¹ J(ts) dt`` is a mean of softmax's Jacobians, ``0 <= M <= I/2``:
    a symmetric map, applied to W, between 0 and ``r²/2``. Two such maps differ by at most ``r²/2`` in
    operator norm, hence the first parts by ``A r²/2``. So the diameter is ``D = min(2G, 2r √(1 - 1/K) +
    A r²/2)``, to which rounding of the scores is added.

    The weights f, f' in [0, 1] of two records change nothing, as above: ``G <= D``, for D is 2G or at least
    ``√2 r``.
    """

    n_classes: int = 2
    kind: ClassVar[str] = "reweighting.nonconvex"
    answered_by: ClassVar[str] = "privada.methods.reweighting.owner.answer:answer_nonconvex"

    def validate(self) -> None:
        """Check every public parameter by name."""
        super().validate()
        most = _check.count(least=2, n_classes=self.n_classes) - 1
        labels = self.source_labels
        if not ((labels >= 0) & (labels <= most) & (labels == np.floor(labels))).all():
            codes = "0 and 1" if most == 1 else f"whole numbers from 0 to {most}, codes of classes"
            raise InputError(f"Expected source_labels to be {codes}.")
        if self.n_classes > 2:
            public.few_numbers(self.steps * math.prod(self.shape), "the noise on all gradients")
            public.few_numbers((self.size + len(self.source)) * self.n_classes, "the scores of all rows")

    @property
    def shape(self) -> tuple[int, ...]:
        """One weight a feature, or one for each class."""
        features = self.source.shape[1]
        return (features,) if self.n_classes == 2 else (features, self.n_classes)

    @property
    def largest_loss(self) -> float:
        """``log(1 + e^{Ar})``, or ``log(1 + (K-1) e^{√2 A r})``."""
        if self.n_classes == 2:
            return float(np.logaddexp(0.0, self.A * self.r))
        return float(np.logaddexp(0.0, math.log(self.n_classes - 1) + math.sqrt(2) * self.A * self.r))

    @property
    def largest_gradient(self) -> float:
        """``r``, or ``√2 r (1 - e^-B)``."""
        if self.n_classes == 2:
            return self.r
        return -math.sqrt(2) * self.r * math.expm1(-self.largest_loss)

    @property
    def diameter(self) -> float:
        """``2r``, or ``min(2G, 2r √(1 - 1/K) + A r²/2)``."""
        if self.n_classes == 2:
            return 2 * self.r
        spread, rounding = self.A * self.r, 2.0**-50 * (math.fsum(self.shape) + 8)
        near = 2 * math.sqrt(1 - 1 / self.n_classes) + spread / 2 + rounding * (1 + spread)
        return min(2 * self.largest_gradient, self.r * near)

    def fits(self, schema: PublicSchema) -> None:
        """Check size, features and label against the owner's schema."""
        super().fits(schema)
        if len(schema.classes) != self.n_classes:
            raise InputError(
                f"Expected a label of {self.n_classes} classes, the schema has {len(schema.classes)}."
            )

    def parts(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Own fields; two classes are not mentioned."""
        plain, arrays = super().parts()
        if self.n_classes == 2:
            del plain["n_classes"]
        return plain, arrays


def stopping_delta(epsilon: float, mu: float, steps: int) -> float:
    """δ(ε) when only iterate t* ~ U{1..T} leaves: ``(1/T) Σ_t gauss_delta(ε, μ₁√t)``, μ the total of T steps.

    >>> from privada.privacy.accounting.curves import gaussian_mu
    >>> mu = gaussian_mu(epsilon=1, delta=1e-5)
    >>> stopping_delta(1.0, 1.15 * mu, 100) <= 1.05e-5 < stopping_delta(1.0, 1.17 * mu, 100)
    True
    """
    from privada.privacy.accounting.curves import gaussian_delta

    once = _check.positive(mu=mu) / math.sqrt(_check.count(steps=steps))
    return math.fsum(gaussian_delta(epsilon, once * math.sqrt(t)) for t in range(1, steps + 1)) / steps


__all__ = ["ConvexAdaptation", "NonconvexAdaptation", "stopping_delta"]
