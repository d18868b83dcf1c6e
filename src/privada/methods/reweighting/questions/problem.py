"""What the paper's two objectives, F (equation 6) and J (equation 7), are made of: bounds and penalties.

Both weigh the loss of row i by ``1/u_i``. Public rows have ``u_i >= m/α`` and carry the discrepancy,
private rows have ``u_i >= n/(1-α)``. F penalises ``Σ p_i² u_i`` with κ₁, the norm of ``1/u`` with κ₂ and
its largest entry with κ_∞; J has the concave ``1 - Σ 1/u_i`` instead of the first and a soft maximum for
the last. Owners take steps on their separable forms (`privada.methods.reweighting.owner.adaptation`).
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


__all__ = ["Bounds", "Penalties", "lowest"]
