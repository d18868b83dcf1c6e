"""A noisy descent of a linear model of labels: one question, one charge, all steps.

**Where.** A record's features are centred and divided by public numbers, each is held to ``±limit``, and all
are divided by a public ``radius``; a constant is put before them. The descent looks for weights V, which
start at 0. Step t is told the sum of ``z ⊗ ψ``, each record's shortened to ``bound``, plus noise, and goes on
from ``V - step_size g / size``. ψ is ``p - onehot(y)`` for classes (softmax scores), and
``z V - (y - middle) / unit`` for a number.

**Proof.** What a record adds is a function of that record, of public numbers and of released sums alone. It
is shortened to norm ``bound`` (and is 0 if V makes it overflow), and truncation toward zero shortens it
further. So one record more or less moves a sum by at most ``bound``, another record in its place by at most
``2 bound``, a person's m records by m times that. Each of T sums gets Gaussian noise at ``μ/√T``, and
Gaussians compose exactly, adaptively too. ``size`` is an announced number that scales a step, nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.linear.questions import public
from privada.methods.marginals.questions.outcomes import check_size, replaces
from privada.privacy.mechanism import Plan
from privada.privacy.release import PACE, PublicSchema, Question

MOST_STEPS = 10_000


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LabelDescent(Question):
    """Ask for the noisy gradients of a linear model of labels.

    Parameters
    ----------
    centre, spread : arrays of shape (features,)
        Public: a feature becomes ``(x - centre) / spread``.
    limit : float
        Standardised features are held to ``±limit``.
    radius : float
        By which they are divided then: a usual length of them.
    constant : float
        The constant feature.
    n_classes : int
        Of the schema; 0 for a number.
    middle, unit : float, default=0 and 1
        Of a number: ``(y - middle) / unit`` is learnt.
    bound : float
        Norm to which what a record adds is shortened.
    size : int
        Announced number of rows.
    steps : int
    step_size : float

    Notes
    -----
    The payload is ``gradient_0`` ...: noisy sums, shape (features + 1, outputs).

    Privacy
    -------
    Unit and relation are the guarantee's. L2 sensitivity of each sum: ``bound`` (add/remove) or ``2 bound``
    (replace-one), times the rows of a person. Proof: above and privacy.md, section 6.3.

    >>> from privada.privacy import ApproxDP
    >>> asked = LabelDescent(centre=np.zeros(2), spread=np.ones(2), limit=3.0, radius=1.4, constant=0.3,
    ...     n_classes=2, bound=0.5, size=100, steps=4, step_size=1.0,
    ...     guarantee=ApproxDP(epsilon=1, delta=1e-5, relation="add/remove"))
    >>> f"{asked.plan.draws['gradient_0'].scale:.4f}"        # 0.5 times 3.7306 times √4
    '3.7306'
    """

    centre: FloatArray
    spread: FloatArray
    limit: float
    radius: float
    constant: float
    n_classes: int
    bound: float
    size: int
    steps: int
    step_size: float
    middle: float = 0.0
    unit: float = 1.0
    kind: ClassVar[str] = "marginals.descent"
    answered_by: ClassVar[str] = "privada.methods.marginals.owner.descent:answer_descent"

    def validate(self) -> None:
        """Check every public parameter by name."""
        public.gaussian(self.guarantee, "A descent")
        centre = public.vector(centre=self.centre)
        spread = public.vector(spread=self.spread, length=len(centre))
        if not (spread > 0).all():
            raise InputError("Expected spread to be positive.")
        object.__setattr__(self, "centre", centre)
        object.__setattr__(self, "spread", spread)
        for name in ("limit", "radius", "bound", "step_size", "unit"):
            _check.positive(**{name: getattr(self, name)})
        _check.non_negative(constant=self.constant)
        _check.finite(middle=self.middle)
        _check.count(size=self.size)
        if _check.count(least=0, n_classes=self.n_classes) == 1:
            raise InputError("Expected n_classes of at least 2, or 0 for a number, got 1.")
        if _check.count(steps=self.steps) > MOST_STEPS:
            raise InputError(f"Expected steps of at most {MOST_STEPS:,}, got {self.steps:,}.")
        check_size(self.steps * (self.width + 1) * self.outputs)

    def fits(self, schema: PublicSchema) -> None:
        """Check features and label against the owner's schema."""
        if self.width != schema.width:
            raise InputError(f"Expected centre of {schema.width} features, got {self.width}.")
        if self.n_classes == 0:
            public.numeric_label(schema)
        elif self.n_classes != len(schema.classes):
            raise InputError(f"Expected n_classes to be {len(schema.classes)}, got {self.n_classes}.")

    def seconds(self, schema: PublicSchema, *, rows: int) -> float:
        """Each row meets all weights, twice, in every step."""
        return rows * (int(schema.width) + 1) * (2 * self.steps * self.outputs + 1) / PACE

    @property
    def width(self) -> int:
        """Number of features, without the constant."""
        return len(self.centre)

    @property
    def outputs(self) -> int:
        """Scores of a row."""
        return max(1, self.n_classes)

    @property
    def reach(self) -> float:
        """How far one unit moves a sum."""
        return self.bound * self.guarantee.unit.max_rows * (2.0 if replaces(self.guarantee) else 1.0)

    def features(self, X: FloatArray) -> FloatArray:
        """Z of every row, number by number: no row's depends on another."""
        with np.errstate(all="ignore"):  # what overflows is held to the limit, or is 0
            standard = np.nan_to_num((X - self.centre) / self.spread)
        inside = np.clip(standard, -self.limit, self.limit) / self.radius
        return np.column_stack([np.full(len(X), float(self.constant)), inside])

    def names(self) -> tuple[str, ...]:
        """Names of the draws, in order."""
        return tuple(f"gradient_{t}" for t in range(self.steps))

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        return dict.fromkeys(self.names(), (self.width + 1, self.outputs))

    def planned(self) -> Plan:
        """T Gaussian sums of equal noise; together they use up the guarantee."""
        return public.equal_sums(self.names(), reach=self.reach, guarantee=self.guarantee)

    def start(self) -> FloatArray:
        """The first point: nothing."""
        return np.zeros((self.width + 1, self.outputs))

    def go_on(self, V: FloatArray, gradient: FloatArray) -> FloatArray:
        """One step, from a released sum: the same on both sides."""
        if self.n_classes:  # exact gradients of the softmax loss have no part there
            gradient = gradient - gradient.mean(axis=1, keepdims=True)
        return V - self.step_size * gradient / self.size


__all__ = ["LabelDescent"]
