"""Noisy moments of residuals: what a handful of public directions, or some public features, would correct.

**Mixture.** Public models predict f_1 ... f_J for a record; a mixture of them has the residual r. Directions
Φ in which the mixture may be corrected (a shift of every output, the difference of each model from the
mixture, the mixture's spread) are affine functions of the predictions with values in the outputs' space, and
each has one coefficient, whatever the number of outputs. Asked for are ``A = Σ Φ Φ'``, ``b = Σ Φ r`` and
``s = Σ |r|²``.

**Correction.** Public features z of a record, mapped affinely, have one coefficient for each output. Asked
for are ``A = Σ z z'`` and ``b = Σ z r'``.

**Proof.** Everything but the sums is public or was released. A record's Φ (or z) is shortened to norm R and
its residual to norm c; both are functions of that record alone. So ``|Φ Φ'| <= R²`` (Frobenius) and, because
the inner product of two positive semi-definite matrices is not negative, another record in its place moves A
by at most ``√(R⁴ + R⁴) = √2 R²``. What is added are the N entries on and above the diagonal, those above
it times √2, so that lengths are Frobenius norms; truncation toward zero moves each by less than a grid step
h, so the two records' vectors by ``2 √N h`` together, which is added. ``|Φ r| <= R c`` and truncation only
shortens, so b moves by at most ``2 R c``; s by at most ``c²``. A person's m records move them m times as far.
The Gaussian draws compose exactly: ``μ² = Σ μ_i²``. What is made of them is post-processing.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.linear.questions import public
from privada.methods.linear.questions.features import PublicFeatures, read_features, write_features
from privada.privacy.guarantee import Guarantee
from privada.privacy.mechanism import Gaussian, Plan, gaussian_event
from privada.privacy.release import PublicSchema, Question

MOST_DIRECTIONS = 1_000


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ResidualMoments(Question):
    """What both questions share.

    Parameters
    ----------
    size : int
        Public number n of private rows.
    features : PublicFeatures
    weights, intercepts : arrays of shape (features.width, outputs) and (outputs,)
        The public model so far, of which r is the residual. Classes are 1 or 0 in every output (of two
        classes: in the one output of the second).
    radius, clip : float
        R and c.
    """

    size: int
    features: PublicFeatures
    weights: FloatArray
    intercepts: FloatArray
    radius: float
    clip: float
    answered_by: ClassVar[str] = "privada.methods.reweighting.owner.answer:answer_moments"
    shares: ClassVar[Mapping[str, float]]  # of μ², by draw

    def validate(self) -> None:
        """Check every public parameter by name."""
        public.replaced(self.guarantee)
        public.gaussian(self.guarantee, "A sum of moments")
        _check.count(size=self.size)
        if not isinstance(self.features, PublicFeatures):
            raise InputError(f"Expected features to be PublicFeatures, got {type(self.features).__name__}.")
        weights = public.matrix(weights=self.weights, width=self.features.outputs)
        if len(weights) != self.features.width:
            raise InputError(f"Expected weights of {self.features.width} rows, got {len(weights)}.")
        object.__setattr__(self, "weights", weights)
        intercepts = public.vector(intercepts=self.intercepts, length=self.outputs)
        object.__setattr__(self, "intercepts", intercepts)
        _check.positive(radius=self.radius)
        _check.positive(clip=self.clip)

    def fits(self, schema: PublicSchema) -> None:
        """Check size, features and label against the owner's schema."""
        public.declared(self.size, schema, self.features.columns)
        if self.features.link == "identity":
            public.numeric_label(schema)
            return
        classes = len(schema.classes)
        if self.outputs != (1 if classes == 2 else classes):
            raise InputError(f"Expected outputs for {classes} classes, got {self.outputs}.")

    @property
    def outputs(self) -> int:
        """Numbers that are predicted."""
        return int(self.weights.shape[1])

    @property
    @abstractmethod
    def directions_count(self) -> int:
        """Size of A."""

    @abstractmethod
    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload: A as the entries on and above its diagonal, by rows."""

    def planned(self) -> Plan:
        """A Gaussian draw for each of the moments; together they use up the guarantee."""
        mu, rows = self.guarantee.gaussian_mu(), self.guarantee.unit.max_rows
        k, R, c = self.directions_count, float(self.radius), float(self.clip)
        reaches = {"moments": math.sqrt(2) * R * R, "products": 2 * R * c, "squares": c * c}
        draws = {}
        for name, share in self.shares.items():
            part, reach = mu * math.sqrt(share), rows * reaches[name]
            grid = public.fine_grid(reach, reach / part)
            if name == "moments":
                reach += rows * 2 * math.sqrt(k * (k + 1) / 2) * grid.step
            draws[name] = Gaussian.calibrated(sensitivity=reach, mu=part, grid=grid)
        return Plan(draws=draws, event=gaussian_event(math.hypot(*(draw.mu for draw in draws.values()))))

    def noise(self, name: str) -> float:
        """Standard deviation of the noise on each number of a draw."""
        return self.plan.find(name, Gaussian).scale

    def parts(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Plain values and arrays, the features' own among them."""
        plain, arrays = super().parts()
        more_plain, more_arrays = write_features(plain.pop("features"))
        return plain | more_plain, arrays | more_arrays

    @classmethod
    def from_parts(
        cls, plain: dict[str, Any], arrays: dict[str, npt.NDArray[Any]], *, guarantee: Guarantee, salt: str
    ) -> Self:
        """Make the question from its parts; everything is validated anew."""
        plain, arrays = dict(plain), dict(arrays)
        features = read_features(plain, arrays)
        parts: dict[str, Any] = plain | arrays
        return cls(**parts, features=features, guarantee=guarantee, salt=salt)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MixtureMoments(ResidualMoments):
    """Ask how a mixture of public models should be corrected, by a handful of numbers.

    Parameters
    ----------
    size, features, weights, intercepts, radius, clip
        As in `ResidualMoments`.
    directions : array of shape (k, models * outputs + 1, outputs)
        Φ as affine functions of all predictions, the constant last.

    Privacy
    -------
    Unit and relation are the guarantee's (replace-one). L2 sensitivities ``√2 R²``, ``2 R c`` and ``c²``,
    times the rows of a person. Proof: the module's docstring and privacy.md, section 6.5.
    """

    directions: FloatArray
    kind: ClassVar[str] = "reweighting.mixture"
    shares: ClassVar[Mapping[str, float]] = {"moments": 0.3, "products": 0.6, "squares": 0.1}

    def validate(self) -> None:
        """Check every public parameter by name."""
        super().validate()
        array = np.asarray(self.directions, dtype=np.float64)
        shape = (len(self.features.starts) + 1, self.outputs)
        if array.ndim != 3 or array.shape[1:] != shape or not 0 < len(array) <= MOST_DIRECTIONS:
            raise InputError(f"Expected directions of shape (k, {shape[0]}, {shape[1]}), got {array.shape}.")
        flat = public.matrix(directions=array.reshape(len(array), -1))
        object.__setattr__(self, "directions", flat.reshape(array.shape))

    @property
    def directions_count(self) -> int:
        """Number of directions."""
        return len(self.directions)

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        k = self.directions_count
        return {"moments": (k * (k + 1) // 2,), "products": (k,), "squares": (1,)}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CorrectionMoments(ResidualMoments):
    """Ask for the least-squares correction of a model along some public features.

    Parameters
    ----------
    size, features, weights, intercepts, radius, clip
        As in `ResidualMoments`.
    transform, shift : arrays of shape (features.width, k) and (k,)
        z as an affine function of the features.

    Privacy
    -------
    Unit and relation are the guarantee's (replace-one). L2 sensitivities ``√2 R²`` and ``2 R c``, times the
    rows of a person. Proof: the module's docstring and privacy.md, section 6.5.
    """

    transform: FloatArray
    shift: FloatArray
    kind: ClassVar[str] = "reweighting.correction"
    shares: ClassVar[Mapping[str, float]] = {"moments": 0.3, "products": 0.7}

    def validate(self) -> None:
        """Check every public parameter by name."""
        super().validate()
        transform = public.matrix(transform=self.transform)
        if len(transform) != self.features.width or transform.shape[1] > MOST_DIRECTIONS:
            raise InputError(f"Expected transform of {self.features.width} rows, got {transform.shape}.")
        object.__setattr__(self, "transform", transform)
        object.__setattr__(self, "shift", public.vector(shift=self.shift, length=transform.shape[1]))

    @property
    def directions_count(self) -> int:
        """Number of mapped features."""
        return int(self.transform.shape[1])

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        k = self.directions_count
        return {"moments": (k * (k + 1) // 2,), "products": (k, self.outputs)}


__all__ = ["CorrectionMoments", "MixtureMoments", "ResidualMoments"]
