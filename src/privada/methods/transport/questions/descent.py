"""The noisy descent of `privada.methods.linear`, as this room asks for it: a logistic regression.

A row's coordinates are those of the public map, ``z = (x - c) P``, and a constant γR; the map's radius R is
the root mean squared norm of the target's own coordinates. No row is clipped inside its score: what it adds
to a sum is shortened to norm ``c R √(1 + γ²)``, c the largest pull of the reduced loss. The proof is that of
`privada.methods.linear.questions.descent`.

How long the descent may go on follows from public numbers: after time ``τ = T η/(1 - β)`` the noise of the
weights is about ``τ Δ/(n μ)`` for each coordinate, Δ the sensitivity of a sum, whatever T is; τ is chosen
such that a usual row's score has `DRIFT` logits of it, or as far as T stable steps reach, if that is less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from privada.exceptions import InputError
from privada.methods.linear.questions import losses, public
from privada.methods.linear.questions.descent import LinearDescent
from privada.methods.transport.questions.features import FeatureMap
from privada.privacy.guarantee import Guarantee

CONSTANT = 0.7  # γ, in units of R
STEPS, MOMENTUM = 30, 0.8
THRESHOLD = 0.5  # κ₁, a loss: beyond it a row pulls less than its gradient would
DRIFT = 2.0


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Descent(LinearDescent):
    """Ask for a noisy logistic regression in the target's coordinates; `LinearDescent` has the parameters.

    Privacy
    -------
    Unit and relation are the guarantee's (replace-one). L2 sensitivity of each sum ``2 c r``, times the
    rows of a person. Proof: `privada.methods.linear.questions.descent`.

    >>> from privada.privacy import ApproxDP
    >>> guarantee = ApproxDP(epsilon=1, delta=1e-5, relation="replace-one")
    >>> features = FeatureMap(projection=np.eye(2), centre=np.zeros(2), radius=1.0)
    >>> question = Descent.through(features, size=100, n_classes=2, guarantee=guarantee)
    >>> question.width_mapped, question.outputs, round(question.bound, 3)
    (3, 1, 0.551)
    """

    kind: ClassVar[str] = "transport.descent"

    @property
    def ends_by_noise(self) -> bool:
        """Whether noise, not the number of steps, says how far the descent goes."""
        return self.step_size < stable_step(self.loss, self.radius) * (1 - 1e-9)

    @classmethod
    def through(
        cls, features: FeatureMap, *, size: int, n_classes: int, guarantee: Guarantee, salt: str = ""
    ) -> Self:
        """Ask through a public map, which may not rescale rows one by one."""
        public.gaussian(guarantee, "A descent")  # its μ sets the step, before anything else is checked
        if features.rescale != "none":
            raise InputError('Expected a map with rescale="none": a descent asks through an affine one.')
        loss = "logistic" if n_classes == 2 else "softmax"
        outputs, constant = losses.outputs(loss, n_classes), CONSTANT * features.radius
        radius = math.hypot(features.radius, constant)
        width, k = features.width, features.components + 1
        step = step_size(loss, radius, size=size, mu=guarantee.gaussian_mu() / guarantee.unit.max_rows)
        return cls(
            size=size,
            weights=np.zeros((width, outputs)),
            intercepts=np.zeros(outputs),
            transform=np.column_stack([features.projection, np.zeros(width)]),
            shift=np.append(-features.centre @ features.projection, constant),
            curvature=np.zeros((k, k)),
            radius=radius,
            threshold=THRESHOLD,
            alpha=0.0,
            loss=loss,
            steps=STEPS,
            step_size=step,
            momentum=MOMENTUM,
            guarantee=guarantee,
            salt=salt,
        )


def stable_step(loss: str, radius: float) -> float:
    """The largest η at which a heavy ball over rows of this norm does not overshoot."""
    return (1 + MOMENTUM) / (radius**2 / (4 if loss == "logistic" else 2))


def step_size(loss: str, radius: float, *, size: int, mu: float) -> float:
    """η, from public numbers: no more than is stable, nor than `DRIFT` logits of noise allow.

    >>> few, many = (step_size("logistic", 1.0, size=size, mu=0.3) for size in (100, 100_000))
    >>> round(few, 2), many
    (0.44, 7.2)
    """
    reach = 2 * losses.largest_pull(loss, THRESHOLD) * radius
    horizon = DRIFT * size * mu / (reach * radius)
    return min(stable_step(loss, radius), horizon * (1 - MOMENTUM) / STEPS)


__all__ = ["Descent", "stable_step", "step_size"]
