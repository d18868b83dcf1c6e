"""Mechanisms: noise, sensitivity and accounting event in one frozen value.

The lattice mechanisms add integer noise to integer sums and are exact in
finite arithmetic. Two lemmas relate them to the events that accountants know
(proofs: ``docs/explanation/lattice.md``):

* *Gaussian.* A discrete Gaussian of ``σ`` grid steps is, up to a factor
  ``1 ± 1e-33`` per coordinate, a post-processing of a continuous Gaussian of
  variance ``σ² - 4``; so its event is the continuous one at that variance, in
  any dimension.
* *Laplace.* A discrete Laplace of scale ``b`` steps and L1 sensitivity ``Δ``
  is a post-processing of the continuous one with sensitivity ``Δ (1 + 2τ)``,
  ``2τ = 1 - 2 b (log 2 - log(1 + exp(-1/b)))``, about ``1/(4b)``. Its pure
  epsilon is exactly ``Δ/b``; where that alone is a better bound, as on a grid of
  whole counts, the event is the pure one.

K-norm mechanisms have no lattice sampler: they are flagged
``idealised = True`` ("idealised arithmetic") and are never a default.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada.privacy.accounting import curves
from privada.privacy.bounds import Grid
from privada.privacy.noise import Noise
from privada.privacy.samplers import LARGEST_SCALE

if TYPE_CHECKING:
    from dp_accounting import DpEvent


SMOOTHING = 2.0  # grid steps of Gaussian noise that the rounding lemma uses up; error 2 exp(-2 π² 4) = 1e-34
LARGEST_MOVE = 2.0**60  # grid steps of a contribution: a larger one would not fit 64 bits with its noise
LARGEST_INVERSE = 700.0  # of a Laplace scale in steps: beyond it, the mean noise underflows
_MARGIN = 1 + 1e-9  # calibrated scales are rounded up by this, so that no last bit overspends


@dataclass(frozen=True, kw_only=True)
class Mechanism(ABC):
    """Turns an exact value into a released one."""

    sensitivity: float  # the largest change between neighbours, in the norm, rounding to the grid included
    family: ClassVar[str]
    norm: ClassVar[int]
    idealised: ClassVar[bool] = False

    @property
    @abstractmethod
    def event(self) -> DpEvent:
        """The accounting event of one draw."""

    @property
    def epsilon(self) -> float | None:
        """Pure epsilon of one draw, or None if it has none."""
        return None

    @abstractmethod
    def draw(self, exact: npt.NDArray[Any], noise: Noise) -> npt.NDArray[Any]:
        """Release one noisy copy of ``exact``."""

    def half_width(self, confidence: float) -> float:  # noqa: ARG002
        """Half-width of the interval that holds each single noise value with this confidence."""
        raise InputError(f"The {self.family} mechanism states no interval for single values.")

    def note(self) -> dict[str, Any]:
        """What a release states about its noise; all of it is public."""
        return {"family": self.family, "idealised": self.idealised}


@dataclass(frozen=True, kw_only=True)
class Lattice(Mechanism):
    """A mechanism on integer multiples of a public grid step."""

    scale: float
    grid: Grid = field(default_factory=Grid)

    def __post_init__(self) -> None:
        _check.positive(scale=self.scale)
        _check.positive(sensitivity=self.sensitivity)
        # Checked here, so that an impossible draw is refused before anything is charged.
        if not 0 < self.steps <= LARGEST_SCALE:
            raise InputError(
                f"Expected a noise scale of at most 2**50 grid steps, got {self.scale:g} on steps of "
                f"{self.grid.step:g}; ask for less noise, or use a coarser grid."
            )
        if not self.sensitivity / self.grid.step <= LARGEST_MOVE:
            raise InputError(
                f"Expected a sensitivity of at most 2**60 grid steps, got {self.sensitivity:g} on steps of "
                f"{self.grid.step:g}; ask for more noise, or use a coarser grid."
            )

    @property
    def steps(self) -> float:
        """The noise scale in grid steps."""
        return self.scale / self.grid.step

    def place(self, counts: npt.ArrayLike) -> IntArray:
        """Convert whole numbers to grid steps, exactly."""
        if self.grid.exponent > 0:
            raise InputError("Whole numbers do not fit a grid of steps above 1.")
        return np.asarray(counts, dtype=np.int64) << -self.grid.exponent

    @property
    @abstractmethod
    def variance(self) -> float:
        """Variance of the noise on each number."""

    @property
    @abstractmethod
    def mean_absolute(self) -> float:
        """Mean of ``|noise|`` of each number."""

    @abstractmethod
    def characteristic(self, theta: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Characteristic function of the noise: the mean of ``cos(theta noise)``."""

    @abstractmethod
    def _integers(self, shape: tuple[int, ...], noise: Noise) -> IntArray:
        """Integer noise, in grid steps."""

    def draw(self, exact: npt.NDArray[Any], noise: Noise) -> npt.NDArray[Any]:
        """Add integer noise to whole grid steps and scale back."""
        if not np.issubdtype(np.asarray(exact).dtype, np.integer):
            raise InputError(f"A {self.family} mechanism takes whole grid steps, got {exact.dtype}.")
        return self.grid.values(exact + self._integers(exact.shape, noise))

    def note(self) -> dict[str, Any]:
        """Family, scale and grid step."""
        return super().note() | {"scale": self.scale, "step": self.grid.step}


@dataclass(frozen=True, kw_only=True)
class Laplace(Lattice):
    """Discrete Laplace noise; ``sensitivity`` is L1.

    >>> from privada.privacy import Laplace
    >>> count = Laplace(sensitivity=1, scale=2.0)
    >>> count.epsilon
    0.5
    """

    family: ClassVar[str] = "discrete Laplace"
    norm: ClassVar[int] = 1

    @property
    def epsilon(self) -> float:
        """Exact: whole steps of sensitivity over scale."""
        # An integer vector moves by whole steps only.
        return max(1, math.floor(self.sensitivity / self.grid.step * (1 + 1e-12))) / self.steps

    @property
    def event(self) -> DpEvent:
        """The continuous event that dominates the lattice (second lemma above), or the pure one.

        On a coarse grid the discrete law is closer to randomised response at the same epsilon (with a
        sensitivity of one step it is the same); the event is whichever loses less.
        """
        from dp_accounting import LaplaceDpEvent

        inverse = 1 / self.steps
        doubled_tau = 1 - 2 * (math.log(2) - math.log1p(math.exp(-inverse))) / inverse
        if inverse < 1e-4:
            # The difference above cancels; its series is inverse/4 - inverse³/96 ...
            doubled_tau = inverse / 4
        widened = self.epsilon * (1 + doubled_tau)
        if curves.pure_to_zcdp(self.epsilon) < curves.laplace_to_zcdp(widened):
            return pure_event(self.epsilon)
        return LaplaceDpEvent(1 / widened)

    @classmethod
    def calibrated(cls, *, sensitivity: float, epsilon: float, grid: Grid | None = None) -> Self:
        """The least noise that is ``epsilon``-private."""
        return cls(
            sensitivity=sensitivity,
            scale=sensitivity / _check.positive(epsilon=epsilon),
            grid=Grid() if grid is None else grid,
        )

    @property
    def variance(self) -> float:
        """``2q/(1-q)²`` steps² with ``q = exp(-1/b)``, a little under ``2b²``."""
        # Where noise is so rare that the number underflows, this is 0.
        steps_squared = 2 * math.exp(-1 / self.steps) / math.expm1(-1 / self.steps) ** 2
        return self.grid.step**2 * steps_squared

    @property
    def mean_absolute(self) -> float:
        """``2q/(1-q²)`` steps, that is ``1/sinh(1/b)``.

        >>> round(Laplace(sensitivity=1, scale=20.0).mean_absolute, 2)
        19.99
        """
        inverse = 1 / self.steps
        return self.grid.step / math.sinh(inverse) if inverse < LARGEST_INVERSE else 0.0

    def characteristic(self, theta: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """``1 / (1 + 2 v sin²(theta/2))`` with v the variance and theta in radians per step."""
        variance = self.variance / self.grid.step**2
        return 1 / (1 + 2 * variance * np.sin(theta * self.grid.step / 2) ** 2)

    def _integers(self, shape: tuple[int, ...], noise: Noise) -> IntArray:
        return noise.discrete_laplace(self.steps, shape)

    def half_width(self, confidence: float) -> float:
        """Smallest grid multiple h with ``P(|noise| <= h) >= confidence``."""
        miss = 1 - _check.probability(confidence=confidence)
        steps = self.steps * (math.log(2 / miss) - math.log1p(math.exp(-1 / self.steps))) - 1
        return max(0, math.ceil(steps)) * self.grid.step


@dataclass(frozen=True, kw_only=True)
class Gaussian(Lattice):
    """Discrete Gaussian noise of standard deviation ``scale``; ``sensitivity`` is L2.

    >>> from privada.privacy import Gaussian
    >>> f"{Gaussian.calibrated(sensitivity=1, mu=0.25).scale:.4f}"
    '4.0000'
    """

    family: ClassVar[str] = "discrete Gaussian"
    norm: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.steps < 2 * SMOOTHING:
            raise InputError(
                f"A scale of {self.scale:g} is under {2 * SMOOTHING:g} steps of {self.grid.step:g}; "
                "use a finer grid."
            )

    @property
    def mu(self) -> float:
        """Sensitivity over the standard deviation that the rounding lemma leaves."""
        return self.sensitivity / self.grid.step / math.sqrt(self.steps**2 - SMOOTHING**2)

    @property
    def event(self) -> DpEvent:
        """The continuous event that dominates the lattice (first lemma above)."""
        from dp_accounting import GaussianDpEvent

        return GaussianDpEvent(1 / self.mu)

    @classmethod
    def calibrated(
        cls, *, sensitivity: float, mu: float, grid: Grid | None = None, whole: bool = False
    ) -> Self:
        """The least noise at ``mu``; the default grid is 2^-20 of it, and at most 1 for ``whole`` numbers."""
        sigma = sensitivity / _check.positive(mu=mu) * _MARGIN
        if grid is None:
            grid = Grid.finer_than(min(sigma * 2.0**-20, 1.0 if whole else math.inf))
        return cls(sensitivity=sensitivity, scale=math.hypot(sigma, SMOOTHING * grid.step), grid=grid)

    @property
    def variance(self) -> float:
        """The scale squared: the lattice is so fine that the discrete law has the same variance."""
        return self.scale**2

    @property
    def mean_absolute(self) -> float:
        """That of the normal law, which the fine lattice does not change."""
        return self.scale * math.sqrt(2 / math.pi)

    def characteristic(self, theta: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """That of the normal law, which the fine lattice does not change."""
        return np.exp(-((self.scale * theta) ** 2) / 2)

    def _integers(self, shape: tuple[int, ...], noise: Noise) -> IntArray:
        return noise.discrete_gaussian(self.steps, shape)

    def half_width(self, confidence: float) -> float:
        """The normal quantile, rounded up to the grid."""
        quantile = NormalDist().inv_cdf((1 + _check.probability(confidence=confidence)) / 2)
        return math.ceil(quantile * self.steps) * self.grid.step


@dataclass(frozen=True, kw_only=True)
class _PureMechanism(Mechanism):
    """A mechanism that is given its pure epsilon."""

    budget: float

    @property
    def epsilon(self) -> float:
        return self.budget

    def note(self) -> dict[str, Any]:
        return super().note() | {"epsilon": self.budget}


@dataclass(frozen=True, kw_only=True)
class KNorm(_PureMechanism):
    """K-norm noise on a ball: density ``exp(-ε ||z||₂ / Δ)`` in the full dimension.

    Its epsilon follows from the triangle inequality. Idealised arithmetic: drawn in float64, without a
    lattice proof. The quantile of a single number depends on the dimension of the draw and is not stated.
    """

    family: ClassVar[str] = "K-norm (ball)"
    norm: ClassVar[int] = 2
    idealised: ClassVar[bool] = True

    @property
    def event(self) -> DpEvent:
        """Binary randomised response, which dominates every pure mechanism."""
        return pure_event(self.budget)

    def draw(self, exact: npt.NDArray[Any], noise: Noise) -> npt.NDArray[Any]:
        """Add noise of uniform direction and Gamma radius to the whole array."""
        flat = np.asarray(exact, dtype=np.float64)
        z = noise.k_norm_ball(dimension=flat.size, radius=self.sensitivity, epsilon=self.budget, size=1)
        return flat + z.reshape(flat.shape)

    def note(self) -> dict[str, Any]:
        return super().note() | {"radius": self.sensitivity}


@dataclass(frozen=True, kw_only=True)
class KNormCylinder(KNorm):
    """K-norm noise on the cylinder ``[-1, 1] x ball``: a count and a sum of vectors, drawn together.

    ``exact`` has one row per cell: the count, then the sum; ``sensitivity`` is
    the radius of the ball. No split of the budget is needed (privacy.md, section 1).
    """

    family: ClassVar[str] = "K-norm (cylinder)"

    def draw(self, exact: npt.NDArray[Any], noise: Noise) -> npt.NDArray[Any]:
        """Add one independent cylinder draw to each row."""
        table = np.asarray(exact, dtype=np.float64)
        counts, sums = noise.k_norm_cylinder(
            dimension=table.shape[1] - 1, radius=self.sensitivity, epsilon=self.budget, size=len(table)
        )
        return table + np.column_stack([counts, sums])


@dataclass(frozen=True, kw_only=True)
class Exponential(_PureMechanism):
    """Choose among public candidates: probability proportional to ``exp(ε score / (2 Δ))``.

    ``sensitivity`` bounds the change of every single score.
    """

    family: ClassVar[str] = "exponential"
    norm: ClassVar[int] = 0

    @property
    def event(self) -> DpEvent:
        """The loss has range ε, hence ``ε²/8``-zCDP."""
        from dp_accounting import ZCDpEvent

        return ZCDpEvent(curves.bounded_range_to_zcdp(self.budget))

    def draw(self, exact: npt.NDArray[Any], noise: Noise) -> npt.NDArray[Any]:
        """Index of the chosen candidate, as an array of one number."""
        chosen = noise.exponential(np.asarray(exact), epsilon=self.budget, sensitivity=self.sensitivity)
        return np.array([chosen], dtype=np.int64)

    def note(self) -> dict[str, Any]:
        return super().note() | {"sensitivity": self.sensitivity}


@dataclass(frozen=True, kw_only=True)
class RandomisedResponse(_PureMechanism):
    """Each code is kept with probability ``e^ε / (e^ε + q - 1)``, else replaced by another one of q.

    Defined under replace-one: the number of rows is published.
    """

    n_classes: int
    sensitivity: float = 1.0
    family: ClassVar[str] = "randomised response"
    norm: ClassVar[int] = 0

    def __post_init__(self) -> None:
        _check.positive(epsilon=self.budget)
        _check.count(least=2, n_classes=self.n_classes)

    @property
    def event(self) -> DpEvent:
        """Randomised response over q buckets, in dp-accounting's parameters."""
        from dp_accounting import RandomizedResponseDpEvent

        # Where e^ε overflows, the event has no noise: a loss without bound, never too small a one.
        others = math.exp(-self.budget) if self.budget <= 700 else 0.0
        rest = self.n_classes * others / (1 + (self.n_classes - 1) * others)
        return RandomizedResponseDpEvent(rest, self.n_classes)

    def channel(self) -> FloatArray:
        """Probability of each released code (columns) given the true one (rows)."""
        total = math.exp(self.budget) + self.n_classes - 1
        return (np.ones((self.n_classes,) * 2) + (math.exp(self.budget) - 1) * np.eye(self.n_classes)) / total

    def draw(self, exact: npt.NDArray[Any], noise: Noise) -> npt.NDArray[Any]:
        """Respond for every row independently."""
        codes = np.asarray(exact, dtype=np.int64)
        return noise.randomised_response(codes, n_classes=self.n_classes, epsilon=self.budget)

    def note(self) -> dict[str, Any]:
        return super().note() | {"n_classes": self.n_classes}


def gaussian_event(mu: float) -> DpEvent:
    """The event of Gaussian noise at μ, the joint sensitivity over the standard deviation."""
    from dp_accounting import GaussianDpEvent

    return GaussianDpEvent(1 / mu)


def pure_event(epsilon: float) -> DpEvent:
    """The event that dominates every pure mechanism: binary randomised response."""
    from dp_accounting import RandomizedResponseDpEvent

    return RandomizedResponseDpEvent(curves.response(_check.positive(epsilon=epsilon)), 2)


M = TypeVar("M", bound=Mechanism)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All draws of one question, fixed by public parameters before any row is opened.

    Each mechanism is drawn exactly once. ``event`` and ``epsilon`` account for all draws together: by default
    the draws compose, but a question with a tighter proof (parallel cells, joint sensitivity) states its own.
    """

    draws: Mapping[str, Mechanism]
    event: DpEvent = None  # type: ignore[assignment]  # composed of the draws' where none is given
    epsilon: float | None = None

    def __post_init__(self) -> None:
        given_event: DpEvent | None = self.event
        if given_event is not None:
            return
        if not self.draws:
            raise InputError("A plan needs at least one draw.")
        from dp_accounting import ComposedDpEvent

        events = [draw.event for draw in self.draws.values()]
        object.__setattr__(self, "event", events[0] if len(events) == 1 else ComposedDpEvent(events))
        epsilons = [draw.epsilon for draw in self.draws.values()]
        if self.epsilon is None and None not in epsilons:
            object.__setattr__(self, "epsilon", math.fsum(filter(None, epsilons)))

    def lattice(self, name: str) -> Lattice:
        """The draw of this name, which is on a grid."""
        return self.find(name, Lattice)  # type: ignore[type-abstract]  # used for isinstance only

    def find(self, name: str, family: type[M]) -> M:
        """The draw of this name; `InputError` if it is not of this family."""
        draw = self.draws.get(name)
        if not isinstance(draw, family):
            has = "nothing" if draw is None else f"a {draw.family} draw"
            raise InputError(f"The plan has {has} of the name {name!r}, not a {family.__name__}.")
        return draw
