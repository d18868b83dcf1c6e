"""A noisy descent on the reduced objective: one question, one charge, all steps.

**Where.** A public affine map takes a record's features to ``z = x P + s``; public weights give it a base
score ``x W + b``. The descent looks for a correction V in these coordinates: scores are ``x W + b + z V``,
V starts at 0, the warm start. Step t receives ``g_t = (1/n) Σ clip(z ⊗ ψ, c r) + noise`` (`losses` defines
ψ) and continues from ``V + v``, ``v <- βv - η((1 - α) g_t + α H V)``, H a public curvature: the quadratic
that majorises the public loss at the warm start, where its gradient vanishes.

Only the contribution is clipped, never the features inside the score: for squared loss a record's residual
is clipped to ``±c r/|z|``, which is the Huber loss with a threshold of its own for each record (κ₁ = (c
r/|z|)²), a convex loss of the very linear model that is returned. Clipping z in the score as well would fit
another, non-linear model.

**Proof.** Everything but the sum is public or was released. A record's contribution is a function of that
record and of V alone, it is shortened to norm ``c r`` (and is 0 if V makes it overflow), and truncation
toward zero shortens it further; replacing a record moves the sum by at most ``2 c r``, replacing a
person's m records by m times that. Each of T sums gets Gaussian noise at ``μ/√T``, and Gaussians compose
exactly, adaptively too: ``μ² = Σ μ_t²``. Averaging, and the model, are post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.linear.questions import losses, public
from privada.privacy.mechanism import Plan
from privada.privacy.release import PublicSchema, Question


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LinearDescent(Question):
    """Ask for a noisy, preconditioned, warm-started descent on the reduced objective.

    A room gives it a ``kind``.

    Parameters
    ----------
    size : int
        Public number n of private rows.
    weights, intercepts : arrays of shape (features, outputs) and (outputs,)
        The warm start, fitted on public data.
    transform, shift : arrays of shape (features, k) and (k,)
        Public preconditioner.
    curvature : array of shape (k, k)
        Public quadratic that holds the descent to the warm start, times ``alpha``.
    radius : float
        r, a usual length of transformed features.
    threshold : float
        c for squared loss, where a record of length r has its residual clipped to ``±c``; κ₁ for logistic
        and softmax (a loss), of which c follows (`losses.largest_pull`).
    loss : "squared", "logistic" or "softmax"
    alpha : float
        Weight of the public data.
    steps, step_size, momentum : int, float and float

    Notes
    -----
    The payload is ``gradient_0`` ...: noisy sums over the private rows, shape (k, outputs). `trajectory` of
    the learner makes the iterates from them.

    Privacy
    -------
    Unit and relation are the guarantee's (replace-one). L2 sensitivity of each sum ``2 c r``, times the
    rows of a person. Proof: above and privacy.md, section 6.5.
    """

    size: int
    weights: FloatArray
    intercepts: FloatArray
    transform: FloatArray
    shift: FloatArray
    curvature: FloatArray
    radius: float
    threshold: float
    alpha: float
    loss: str = "squared"
    steps: int = 64
    step_size: float = 0.1
    momentum: float = 0.0
    answered_by: ClassVar[str] = "privada.methods.linear.owner.descent:answer_descent"

    def validate(self) -> None:
        """Check every public parameter by name."""
        public.replaced(self.guarantee)
        public.gaussian(self.guarantee, "A descent")
        _check.count(size=self.size)
        weights = public.matrix(weights=self.weights)
        transform = public.matrix(transform=self.transform)
        if len(transform) != len(weights):
            raise InputError(f"Expected transform of {len(weights)} rows, got {len(transform)}.")
        k = transform.shape[1]
        made = {
            "weights": weights,
            "transform": transform,
            "intercepts": public.vector(intercepts=self.intercepts, length=weights.shape[1]),
            "shift": public.vector(shift=self.shift, length=k),
            "curvature": public.matrix(curvature=self.curvature, width=k),
        }
        if len(made["curvature"]) != k:
            raise InputError(f"Expected curvature of shape ({k}, {k}), got {made['curvature'].shape}.")
        for name, array in made.items():
            object.__setattr__(self, name, array)
        self._validate_numbers()

    def _validate_numbers(self) -> None:
        _check.one_of(losses.LOSSES, loss=self.loss)
        if self.outputs != 1 and self.loss != "softmax":
            raise InputError(f"Expected weights of one output for {self.loss} loss, got {self.outputs}.")
        for name in ("radius", "threshold", "step_size"):
            _check.positive(**{name: getattr(self, name)})
        _check.share(alpha=self.alpha)
        if not 0 <= _check.share(momentum=self.momentum) < 1:
            raise InputError(f"Expected momentum below 1, got {self.momentum!r}.")
        if _check.count(steps=self.steps) > public.MOST_STEPS:
            raise InputError(f"Expected steps of at most {public.MOST_STEPS:,}, got {self.steps:,}.")
        public.few_numbers(self.steps * self.width_mapped * self.outputs, "all gradients")

    @property
    def kept_bytes(self) -> int:
        """Prepared rows: in single precision with base, label and cap, or in double precision for softmax."""
        if self.loss == "softmax":
            return 8 * self.size * (self.width_mapped + self.outputs + 1)
        return self.size * (4 * self.width_mapped + 24)

    def fits(self, schema: PublicSchema) -> None:
        """Check size, features and label against the owner's schema."""
        public.declared(self.size, schema, len(self.weights))
        if self.loss == "squared":
            public.numeric_label(schema)
        elif losses.outputs(self.loss, len(schema.classes)) != self.outputs:
            raise InputError(
                f"Expected weights for {len(schema.classes)} classes, got {self.outputs} outputs."
            )

    @property
    def outputs(self) -> int:
        """Number of outputs of the model."""
        return int(self.weights.shape[1])

    @property
    def width_mapped(self) -> int:
        """Number k of mapped features."""
        return int(self.transform.shape[1])

    @property
    def bound(self) -> float:
        """``c r``, to which the contribution of a record is clipped."""
        return losses.largest_pull(self.loss, self.threshold) * self.radius

    @property
    def reach(self) -> float:
        """How far one step of the relation moves the sum: ``2 c r`` for each row of a unit."""
        return 2 * self.bound * self.guarantee.unit.max_rows

    def names(self) -> tuple[str, ...]:
        """Names of the draws, in order."""
        return tuple(f"gradient_{t}" for t in range(self.steps))

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        return dict.fromkeys(self.names(), (self.width_mapped, self.outputs))

    def planned(self) -> Plan:
        """T Gaussian sums of equal noise; together they use up the guarantee."""
        return public.equal_sums(self.names(), reach=self.reach, guarantee=self.guarantee)

    def start(self) -> tuple[FloatArray, FloatArray]:
        """The first point and velocity: nothing."""
        shape = (self.width_mapped, self.outputs)
        return np.zeros(shape), np.zeros(shape)

    def go_on(
        self, V: FloatArray, velocity: FloatArray, gradient: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """One step, from a released sum: the same on both sides."""
        slope = (1 - self.alpha) * gradient / self.size + self.alpha * (self.curvature @ V)
        velocity = self.momentum * velocity - self.step_size * slope
        return V + velocity, velocity


__all__ = ["LinearDescent"]
