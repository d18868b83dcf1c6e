"""How far the private target is from the public source, as a charged number.

The empirical discrepancy is a supremum of differences of mean losses in [0, B]; replacing one of n private
rows moves each mean, hence the supremum, by at most B/n. Two things are added to that: twice the solver's
tolerance, for the supremum must be exact (a local solver moves by n/4 times B/n, privacy.md, section 4 (b)),
and one grid step.

*The solver's error is bounded beforehand*, so an answer never fails for the rows' sake. At the shift s its
step ``w(s) = g/(λ + s)`` has a duality gap of at most ``(λ₁ + s)(A² - |w(s)|²)``, and s is bisected to
neighbouring numbers, over which ``(λ₁ + s)|w(s)|²`` moves by at most ``2A² ds``: some 1e-15 of ``|λ|A² +
2|g|A``, as is the error of the eigenvalues. Both samples being clipped, which is checked of the source's
moments block by block, that is at most 4B: far below the tolerance of 1e-9 B.

*Sums of rows.* Losses of a finite set of hypotheses are summed as whole steps of 2^-30 B, products of two
numbers of a record as whole steps δ of the largest such product: the same in every order. Truncation moves an
entry by less than δ times it, so a record's loss by less than ``δ (√k A r + label_bound)² <= δ k B``, and a
replaced record moves a mean loss by at most ``B (1 + 2δk)/n``. δ is 2^-46, or larger where 64 bits would not
hold the sums of n rows, but then below ``n 2^-61``: the tolerance covers ``2δkB/n``. Where persons have more
than n rows, a secret uniform choice of n counts (`adaptation` has the proof).

The paper's noise, Lap(B/n), is 1-private whatever epsilon is; here the scale follows from the guarantee.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.linear.questions import losses, public
from privada.privacy.bounds import Grid
from privada.privacy.guarantee import PureDP
from privada.privacy.mechanism import Gaussian, Laplace, Plan
from privada.privacy.release import PublicSchema, Question

_TOLERANCE = 1e-9  # of B: certified by the duality gap, far above rounding
_FINEST, _SUM_BITS = 46, 62  # of a step of second moments, and of their sums


def _noised(question: Question, sensitivity: float) -> Plan:
    guarantee = question.guarantee
    unit = sensitivity * guarantee.unit.max_rows
    budget = guarantee.epsilon if isinstance(guarantee, PureDP) else guarantee.gaussian_mu()
    grid = public.fine_grid(unit, unit / budget)
    reach = unit + grid.step
    if isinstance(guarantee, PureDP):
        return Plan(draws={"discrepancy": Laplace.calibrated(sensitivity=reach, epsilon=budget, grid=grid)})
    return Plan(draws={"discrepancy": Gaussian.calibrated(sensitivity=reach, mu=budget, grid=grid)})


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Discrepancy(Question):
    """Ask for the discrepancy under squared loss over linear predictors in a ball: an exact supremum.

    Hypotheses are ``x·w₀ + b₀ + z·v`` with ``|v| <= A`` and ``z = clip_r(x P + s)``; labels are clipped so
    that ``|y - x·w₀ - b₀| <= label_bound``. With P the identity and w₀ = 0 that is equation (2); with a
    public w₀ it is a local discrepancy.

    Parameters
    ----------
    size : int
        Public number n of private rows.
    weights, intercept : array of shape (features,) and float
        Centre of the hypotheses.
    transform, shift : arrays of shape (features, k) and (k,)
    radius, label_bound : float
        Public bounds r and of the label's residual; enforced by clipping.
    hypothesis_radius : float
        A.
    source_moments : array of shape (k + 1, k + 1)
        Second moments of (z, residual) over the public source, `discrepancy.moments`.
    labelled : bool
        Whether labels count; without them, the supremum over pairs of hypotheses.

    Notes
    -----
    The payload is ``discrepancy``, one number.

    Privacy
    -------
    Unit and relation are the guarantee's (replace-one). Sensitivity ``B/n`` with ``B = (A r +
    label_bound)²``, or ``(2 A r)²`` without labels, plus twice the solver's tolerance and a grid step,
    times a person's rows.
    """

    size: int
    weights: FloatArray
    intercept: float = 0.0
    transform: FloatArray
    shift: FloatArray
    source_moments: FloatArray
    radius: float
    label_bound: float = 1.0
    hypothesis_radius: float
    labelled: bool = True
    kind: ClassVar[str] = "reweighting.discrepancy"
    answered_by: ClassVar[str] = "privada.methods.reweighting.owner.answer:answer_discrepancy"

    def validate(self) -> None:
        """Check every public parameter by name."""
        public.replaced(self.guarantee)
        _check.count(size=self.size)
        _check.finite(intercept=self.intercept)
        for name in ("radius", "label_bound", "hypothesis_radius"):
            _check.positive(**{name: getattr(self, name)})
        if not isinstance(self.labelled, bool):
            raise InputError(f"Expected labelled to be true or false, got {self.labelled!r}.")
        weights, transform = public.vector(weights=self.weights), public.matrix(transform=self.transform)
        if len(transform) != len(weights):
            raise InputError(f"Expected transform of {len(weights)} rows, got {len(transform)}.")
        k = transform.shape[1]
        arrays = {
            "weights": weights,
            "transform": transform,
            "shift": public.vector(shift=self.shift, length=k),
            "source_moments": public.matrix(source_moments=self.source_moments, width=k + 1),
        }
        if len(arrays["source_moments"]) != k + 1:
            raise InputError(f"Expected source_moments of shape ({k + 1}, {k + 1}).")
        for name, array in arrays.items():
            object.__setattr__(self, name, array)
        self._moments_of_bounded_rows()

    def _moments_of_bounded_rows(self) -> None:
        """Second moments of clipped rows are bounded; larger ones would drown the answer in rounding."""
        r, bound, M = float(self.radius), float(self.label_bound), self.source_moments
        blocks = (
            (M[:-1, :-1], r * r),
            (M[:-1, -1], r * bound),
            (M[-1, :-1], r * bound),
            (M[-1, -1], bound * bound),
        )
        if any(float(np.linalg.norm(block)) > most * (1 + 1e-9) for block, most in blocks):
            raise InputError("Expected source_moments of rows clipped to the radius and label_bound.")

    def fits(self, schema: PublicSchema) -> None:
        """Check size, features and label against the owner's schema."""
        public.declared(self.size, schema, len(self.weights))
        public.numeric_label(schema)

    @property
    def largest_loss(self) -> float:
        """B."""
        root = float(self.hypothesis_radius) * float(self.radius)
        root += root if not self.labelled else float(self.label_bound)
        return root * root

    @property
    def tolerance(self) -> float:
        """How far from the supremum an answer may be."""
        return _TOLERANCE * self.largest_loss

    @property
    def grid(self) -> Grid:
        """Steps in which second moments are summed, as a part of the largest."""
        return Grid(-min(_FINEST, _SUM_BITS - self.size.bit_length()))

    def moments_of(self, steps: npt.NDArray[np.int64]) -> FloatArray:
        """Second moments of the private rows from sums on and above the diagonal, in steps of `grid`."""
        largest = np.full(len(steps), float(self.radius))
        largest[-1] = self.label_bound
        upper = self.grid.values(steps) * np.outer(largest, largest) / self.size
        return np.asarray(upper + np.triu(upper, 1).T)

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        return {"discrepancy": (1,)}

    def planned(self) -> Plan:
        """One number; Laplace noise for a pure guarantee, else Gaussian."""
        return _noised(self, self.largest_loss / self.size + 2 * self.tolerance)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FiniteDiscrepancy(Question):
    """Ask for the discrepancy over a finite public set of linear hypotheses, for any bounded loss.

    Parameters
    ----------
    size : int
        Public number n of private rows.
    weights, intercepts : arrays of shape (hypotheses, features) and (hypotheses,)
        With softmax loss, of shape (hypotheses, features, classes) and (hypotheses, classes).
    source_losses : array of shape (hypotheses,)
        Mean clipped loss of each hypothesis on the public source.
    loss : "squared", "logistic" or "softmax"
    largest_loss : float
        B, to which each record's loss is clipped.

    Privacy
    -------
    Unit and relation are the guarantee's (replace-one). Each mean, and their largest difference from the
    source's, moves by at most B/n, times a person's rows; plus rounding of the mean and a grid step. Losses
    are summed in whole steps.
    """

    size: int
    weights: FloatArray
    intercepts: FloatArray
    source_losses: FloatArray
    loss: str = "logistic"
    largest_loss: float = math.log(4)
    kind: ClassVar[str] = "reweighting.finite-discrepancy"
    answered_by: ClassVar[str] = "privada.methods.reweighting.owner.answer:answer_finite"

    def validate(self) -> None:
        """Check every public parameter by name."""
        public.replaced(self.guarantee)
        _check.count(size=self.size)
        _check.one_of(losses.LOSSES, loss=self.loss)
        _check.positive(largest_loss=self.largest_loss)
        if self.loss == "softmax":
            self._validate_classes()
            return
        weights = public.matrix(weights=self.weights)
        object.__setattr__(self, "weights", weights)
        for name in ("intercepts", "source_losses"):
            value = public.vector(length=len(weights), **{name: getattr(self, name)})
            object.__setattr__(self, name, value)
        if self.source_losses.min() < 0 or self.source_losses.max() > self.largest_loss * (1 + 1e-9):
            raise InputError(f"Expected source_losses from 0 to largest_loss, {self.largest_loss:g}.")

    def _validate_classes(self) -> None:
        """Hypotheses have a weight and an intercept for each class."""
        shape = np.shape(self.weights)
        if len(shape) != 3 or 0 in shape or shape[2] < 2:
            raise InputError(f"Expected weights of shape (hypotheses, features, 2 or more), got {shape}.")
        flat = public.matrix(weights=np.reshape(self.weights, (shape[0], -1)))
        intercepts = public.matrix(intercepts=self.intercepts, width=shape[2])
        if len(intercepts) != shape[0]:
            raise InputError(f"Expected intercepts of {shape[0]} hypotheses, got {len(intercepts)}.")
        arrays = {
            "weights": flat.reshape(shape),
            "intercepts": intercepts,
            "source_losses": public.vector(source_losses=self.source_losses, length=shape[0]),
        }
        for name, array in arrays.items():
            object.__setattr__(self, name, array)

    def table(self) -> tuple[FloatArray, FloatArray]:
        """Weights of all hypotheses side by side, and their intercepts: for all scores in one pass."""
        weights = np.moveaxis(self.weights, 0, 1).reshape(self.weights.shape[1], -1)
        return np.ascontiguousarray(weights), self.intercepts.ravel()

    def fits(self, schema: PublicSchema) -> None:
        """Check size, features and label against the owner's schema."""
        public.declared(self.size, schema, self.weights.shape[1])
        if self.loss == "squared":
            public.numeric_label(schema)
        elif self.loss == "softmax":
            if len(schema.classes) != self.weights.shape[2]:
                raise InputError(
                    f"Expected weights for {len(schema.classes)} classes, got {self.weights.shape[2]}."
                )
        elif len(schema.classes) != 2:
            raise InputError(
                f"Logistic loss needs a label of 2 classes, the schema has {len(schema.classes)}."
            )

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        return {"discrepancy": (1,)}

    def planned(self) -> Plan:
        """One number."""
        return _noised(self, self.largest_loss / self.size + 2 * _TOLERANCE * self.largest_loss)


__all__ = ["Discrepancy", "FiniteDiscrepancy"]
