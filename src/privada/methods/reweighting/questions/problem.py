"""The two objectives of the paper: F (equation 6) and J (equation 7), with closed-form gradients.

Both weigh the loss of row i by ``1/u_i``. Public rows have ``u_i >= m/α`` and carry the discrepancy,
private rows have ``u_i >= n/(1-α)``. F penalises ``Σ p_i² u_i`` with κ₁, the norm of ``1/u`` with κ₂ and
its largest entry with κ_∞; J has the concave ``1 - Σ 1/u_i`` instead of the first and a soft maximum for
the last.

**Reduced form.** With κ₂ = κ_∞ = 0 each u_i can be minimised by itself: the term ``l/u + κ₁ p² u`` over
``u >= 1/p`` is least at ``u = max(1, √(l/κ₁))/p``, where it is ``p(l + κ₁)`` if ``l <= κ₁`` and ``2p√(κ₁ l)``
beyond. For a squared residual that is the Huber loss of threshold √κ₁; a public row, whose l includes the
discrepancy, gets a pseudo-Huber form. No weight has to be kept, noised or released.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.linear.questions.public import LARGEST

LEAST_ALPHA = 1e-30


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Public bounds: ``|w| <= A``, ``|x| <= r``, ``|y| <= 1``; what follows for the squared loss.

    >>> bounds = Bounds(A=2.0, r=1.0)
    >>> bounds.B, bounds.G, bounds.diameter
    (9.0, 6.0, 8.0)
    """

    A: float
    r: float = 1.0

    def __post_init__(self) -> None:
        _check.positive(A=self.A)
        _check.positive(r=self.r)

    @property
    def B(self) -> float:  # noqa: N802 - the paper's name
        """Largest loss: ``(Ar + 1)²``."""
        return (self.A * self.r + 1) ** 2

    @property
    def G(self) -> float:  # noqa: N802 - the paper's name
        """Largest gradient: ``2r(Ar + 1)``."""
        return 2 * self.r * (self.A * self.r + 1)

    @property
    def diameter(self) -> float:
        """Largest difference of two records' gradients: ``2r(Ar + 2)`` (privacy.md, section 4 (b))."""
        return 2 * self.r * (self.A * self.r + 2)


@dataclass(frozen=True, kw_only=True, eq=False)
class Penalties:
    """Mixture and penalties: alpha, κ₁, κ₂, κ_∞, the discrepancy, and μ of J's soft maximum."""

    alpha: float
    kappa1: float = 1.0
    kappa2: float = 0.0
    kappa_inf: float = 0.0
    discrepancy: float = 0.0
    sharpness: float = 100.0

    def __post_init__(self) -> None:
        _check.share(alpha=self.alpha)
        _check.positive(kappa1=self.kappa1)
        for name in ("kappa2", "kappa_inf", "discrepancy"):
            _check.non_negative(**{name: getattr(self, name)})
        _check.positive(sharpness=self.sharpness)

    def reference(self, m: int, n: int) -> FloatArray:
        """p⁰: α/m for public rows, (1-α)/n for private ones."""
        parts = np.full(m, self.alpha / max(m, 1)), np.full(n, (1 - self.alpha) / max(n, 1))
        return np.concatenate(parts)

    def check_moderate(self) -> None:
        """Refuse a mixture or penalties so extreme that step sizes or weights leave the floats."""
        if not LEAST_ALPHA <= self.alpha < 1:
            raise InputError(
                f"Expected penalties with alpha from {LEAST_ALPHA:g} to below 1, got {self.alpha!r}."
            )
        for name in ("kappa1", "kappa2", "kappa_inf", "discrepancy"):
            if getattr(self, name) > LARGEST:
                raise InputError(f"Expected penalties with {name} of at most {LARGEST:g}.")

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        names = ("alpha", "kappa1", "kappa2", "kappa_inf", "discrepancy", "sharpness")
        return {name: getattr(self, name) for name in names}


def lowest(p: FloatArray) -> FloatArray:
    """The least u of each row: 1/p, infinite where p is 0 (the row does not count)."""
    with np.errstate(divide="ignore"):
        return np.asarray(1 / p)


def objective_f(losses: FloatArray, u: FloatArray, p: FloatArray, penalties: Penalties) -> float:
    """F(w, u) from the rows' losses, the discrepancy included for public ones."""
    q, live = 1 / u, p > 0
    linear = float((p[live] ** 2 * u[live]).sum()) - 1
    total = float(q @ losses) + penalties.kappa1 * linear + penalties.kappa2 * float(np.linalg.norm(q))
    return total + penalties.kappa_inf * float(q.max())


def gradient_f(losses: FloatArray, u: FloatArray, p: FloatArray, penalties: Penalties) -> FloatArray:
    """``∂F/∂u``; the largest weight's penalty acts on the (first) row that attains it."""
    q = 1 / u
    slope = -losses * q**2 + penalties.kappa1 * p**2
    if penalties.kappa2:
        slope -= penalties.kappa2 * q**3 / np.linalg.norm(q)
    if penalties.kappa_inf:
        at = int(q.argmax())
        slope[at] -= penalties.kappa_inf * q[at] ** 2
    return np.asarray(slope)


def objective_j(losses: FloatArray, u: FloatArray, p: FloatArray, penalties: Penalties) -> float:
    """J(w, u), as F; λ₁, λ₂ and λ_∞ are κ₁, κ₂ and κ_∞."""
    from scipy.special import logsumexp

    del p
    q = 1 / u
    total = float(q @ losses) + penalties.kappa1 * (1 - float(q.sum()))
    total += penalties.kappa2 * float(np.linalg.norm(q))
    return total + penalties.kappa_inf / penalties.sharpness * float(logsumexp(penalties.sharpness * q))


def gradient_j(losses: FloatArray, u: FloatArray, p: FloatArray, penalties: Penalties) -> FloatArray:
    """``∂J/∂u``."""
    from scipy.special import softmax

    del p
    q = 1 / u
    slope = (penalties.kappa1 - losses) * q**2
    if penalties.kappa2:
        slope -= penalties.kappa2 * q**3 / np.linalg.norm(q)
    if penalties.kappa_inf:
        slope -= penalties.kappa_inf * softmax(penalties.sharpness * q) * q**2
    return np.asarray(slope)


def best_u(losses: FloatArray, p: FloatArray, kappa1: float) -> FloatArray:
    """The u that minimises F for given losses when κ₂ = κ_∞ = 0."""
    return np.asarray(np.maximum(1.0, np.sqrt(np.maximum(losses, 0) / kappa1)) * lowest(p))


def reduced(losses: FloatArray, p: FloatArray, kappa1: float) -> float:
    """F minimised over u, for κ₂ = κ_∞ = 0."""
    inside = losses + kappa1
    beyond = 2 * np.sqrt(kappa1 * np.maximum(losses, kappa1))
    return float(p @ np.where(losses <= kappa1, inside, beyond)) - kappa1


def check_rows(Xs: Any, ys: Any, Xt: Any, yt: Any) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Two labelled samples of one width, finite."""
    S, T = _check.matrix(Xs=Xs), _check.matrix(Xt=Xt)
    if S.shape[1] != T.shape[1]:
        raise InputError(f"Expected source and target of one width, got {S.shape[1]} and {T.shape[1]}.")
    labels = []
    for name, X, y in (("ys", S, ys), ("yt", T, yt)):
        values = np.asarray(y, dtype=np.float64)
        if values.shape != (len(X),) or not np.isfinite(values).all():
            raise InputError(f"Expected {name} to be one finite number for each row.")
        labels.append(values)
    return S, labels[0], T, labels[1]


__all__ = [
    "Bounds",
    "Penalties",
    "best_u",
    "check_rows",
    "gradient_f",
    "gradient_j",
    "lowest",
    "objective_f",
    "objective_j",
    "reduced",
]
