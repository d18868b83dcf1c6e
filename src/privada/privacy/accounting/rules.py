"""What is known of each kind of event, by itself: one `Rule` each.

`accounting.accountant` adds rules up over compositions; `accounting.sampled` has those of events
inside a sample.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.privacy.accounting import curves

if TYPE_CHECKING:  # dp-accounting takes a second to import: at run time, whoever has an event has done so
    from dp_accounting import (
        DiscreteLaplaceDpEvent,
        DpEvent,
        GaussianDpEvent,
        LaplaceDpEvent,
        NoOpDpEvent,
        RandomizedResponseDpEvent,
        ZCDpEvent,
    )

E = TypeVar("E", bound="DpEvent")


class Rule(ABC, Generic[E]):
    """What is known of one kind of event, per single application."""

    @abstractmethod
    def renyi(self, event: E, order: float) -> float:
        """Rényi divergence at ``order``, worst over neighbours and directions."""

    @abstractmethod
    def zcdp(self, event: E) -> float:
        """Smallest known ρ."""

    @abstractmethod
    def pure(self, event: E) -> float:
        """Pure epsilon, infinite if there is none."""

    def mu(self, event: E) -> float:
        """Gaussian μ; for a pure event the curve through its corner."""
        pure = self.pure(event)
        return curves.pure_to_gaussian(pure) if math.isfinite(pure) else math.inf

    @abstractmethod
    def pld(self, event: E, step: float) -> Any:
        """A pessimistic privacy-loss distribution."""

    @abstractmethod
    def widened(self, event: E, steps: int) -> E:
        """The event over ``steps`` steps of its relation (group privacy)."""


class _Gaussian(Rule["GaussianDpEvent"]):
    def renyi(self, event: GaussianDpEvent, order: float) -> float:
        return order * self.zcdp(event)

    def zcdp(self, event: GaussianDpEvent) -> float:
        return self.mu(event) ** 2 / 2

    def pure(self, event: GaussianDpEvent) -> float:  # noqa: ARG002
        return math.inf

    def mu(self, event: GaussianDpEvent) -> float:
        return 1 / event.noise_multiplier if event.noise_multiplier else math.inf

    def pld(self, event: GaussianDpEvent, step: float) -> Any:
        from dp_accounting.pld import privacy_loss_distribution as pld

        return pld.from_gaussian_mechanism(event.noise_multiplier, value_discretization_interval=step)

    def widened(self, event: GaussianDpEvent, steps: int) -> GaussianDpEvent:
        return type(event)(event.noise_multiplier / steps)


class _Laplace(Rule["LaplaceDpEvent"]):
    def renyi(self, event: LaplaceDpEvent, order: float) -> float:
        epsilon = self.pure(event)
        up = math.log(order / (2 * order - 1)) + (order - 1) * epsilon
        down = math.log((order - 1) / (2 * order - 1)) - order * epsilon
        return max(0.0, float(np.logaddexp(up, down)) / (order - 1))

    def zcdp(self, event: LaplaceDpEvent) -> float:
        return curves.laplace_to_zcdp(self.pure(event))

    def pure(self, event: LaplaceDpEvent) -> float:
        return 1 / event.noise_multiplier if event.noise_multiplier else math.inf

    def pld(self, event: LaplaceDpEvent, step: float) -> Any:
        from dp_accounting.pld import privacy_loss_distribution as pld

        return pld.from_laplace_mechanism(event.noise_multiplier, value_discretization_interval=step)

    def widened(self, event: LaplaceDpEvent, steps: int) -> LaplaceDpEvent:
        return type(event)(event.noise_multiplier / steps)


class _DiscreteLaplace(Rule["DiscreteLaplaceDpEvent"]):
    """Discrete Laplace on the integers."""

    def renyi(self, event: DiscreteLaplaceDpEvent, order: float) -> float:
        a, shift = event.noise_parameter, _check.count(least=0, sensitivity=event.sensitivity)
        if a * shift == 0:
            return 0.0
        most, fall = (order - 1) * a * shift, a * (2 * order - 1)
        tail = -math.log1p(math.exp(-a))
        parts = [tail + most, tail - a * shift - most]
        if shift > 1:  # between the two ends the terms are geometric, each e^-fall times the one before
            terms = math.log(-math.expm1(-fall * (shift - 1))) - math.log(-math.expm1(-fall))
            parts.append(math.log(math.tanh(a / 2)) + most - fall + terms)
        return max(0.0, float(np.logaddexp.reduce(parts)) / (order - 1))

    def zcdp(self, event: DiscreteLaplaceDpEvent) -> float:
        return curves.pure_to_zcdp(self.pure(event))

    def pure(self, event: DiscreteLaplaceDpEvent) -> float:
        return float(event.noise_parameter * _check.count(least=0, sensitivity=event.sensitivity))

    def pld(self, event: DiscreteLaplaceDpEvent, step: float) -> Any:
        from dp_accounting.pld import privacy_loss_distribution as pld

        return pld.from_discrete_laplace_mechanism(
            event.noise_parameter, event.sensitivity, value_discretization_interval=step
        )

    def widened(self, event: DiscreteLaplaceDpEvent, steps: int) -> DiscreteLaplaceDpEvent:
        return type(event)(event.noise_parameter, event.sensitivity * steps)


class RandomisedResponseRule(Rule["RandomizedResponseDpEvent"]):
    """Randomised response over k buckets; with two it dominates every pure mechanism."""

    def _masses(self, event: RandomizedResponseDpEvent) -> tuple[float, float]:
        _check.share(noise_parameter=event.noise_parameter)  # above 1 the truth would be the rarest answer
        _check.count(least=2, num_buckets=event.num_buckets)
        other = event.noise_parameter / event.num_buckets
        return 1 - event.noise_parameter + other, other

    def renyi(self, event: RandomizedResponseDpEvent, order: float) -> float:
        keep, other = self._masses(event)
        loss = (order - 1) * self.pure(event)
        if not math.isfinite(loss):
            return math.inf
        parts = [math.log(keep) + loss, math.log(other) - loss]
        if event.num_buckets > 2:
            parts.append(math.log((event.num_buckets - 2) * other))
        return max(0.0, float(np.logaddexp.reduce(parts)) / (order - 1))

    def outcomes(self, event: RandomizedResponseDpEvent) -> tuple[tuple[float, float], ...]:
        """Probability and privacy loss of each kind of answer: the truth, the neighbour's, another's."""
        (keep, other), loss = self._masses(event), self.pure(event)
        return (keep, loss), (other, -loss), ((event.num_buckets - 2) * other, 0.0)

    def zcdp(self, event: RandomizedResponseDpEvent) -> float:
        return curves.pure_to_zcdp(self.pure(event))

    def pure(self, event: RandomizedResponseDpEvent) -> float:
        keep, other = self._masses(event)
        return math.log(keep / other) if other else math.inf

    def pld(self, event: RandomizedResponseDpEvent, step: float) -> Any:
        from dp_accounting.pld import privacy_loss_distribution as pld

        return pld.from_randomized_response(
            event.noise_parameter, event.num_buckets, value_discretization_interval=step
        )

    def widened(self, event: RandomizedResponseDpEvent, steps: int) -> RandomizedResponseDpEvent:
        """Binary response at ``steps`` times the epsilon dominates whatever loses as much."""
        return type(event)(curves.response(steps * self.pure(event)), 2)


class _ZeroConcentrated(Rule["ZCDpEvent"]):
    """A mechanism of which only the zCDP constant is recorded."""

    def renyi(self, event: ZCDpEvent, order: float) -> float:
        return float(event.xi + order * event.rho)

    def zcdp(self, event: ZCDpEvent) -> float:
        return float(event.rho) if event.xi == 0 else math.inf

    def pure(self, event: ZCDpEvent) -> float:  # noqa: ARG002
        return math.inf

    def pld(self, event: ZCDpEvent, step: float) -> Any:
        """From the convex hull of the bound on δ.

        The bound is no profile: at ε = 0 it is steeper than a symmetric one can be. A profile is convex in
        ``e^ε``, so whatever lies below the bound lies below its convex hull.
        """
        top = curves._smallest(lambda value: curves.zcdp_delta(value, event.rho, event.xi) <= 1e-15)
        grid = step * np.arange(math.ceil(top / step) + 1, dtype=np.float64)
        bound = two_sided(grid, curves.zcdp_deltas(grid, event.rho, event.xi))
        return distribution(_convex_hull(np.concatenate([-grid[:0:-1], grid]), bound), step)

    def widened(self, event: ZCDpEvent, steps: int) -> ZCDpEvent:
        if event.xi != 0:
            raise InputError("An event with xi > 0 cannot be converted to another relation.")
        return type(event)(event.rho * steps**2)


class _Nothing(Rule["NoOpDpEvent"]):
    def renyi(self, event: NoOpDpEvent, order: float) -> float:  # noqa: ARG002
        return 0.0

    def zcdp(self, event: NoOpDpEvent) -> float:  # noqa: ARG002
        return 0.0

    def pure(self, event: NoOpDpEvent) -> float:  # noqa: ARG002
        return 0.0

    def mu(self, event: NoOpDpEvent) -> float:  # noqa: ARG002
        return 0.0

    def pld(self, event: NoOpDpEvent, step: float) -> Any:  # noqa: ARG002
        from dp_accounting.pld import privacy_loss_distribution as pld

        return pld.identity(step)

    def widened(self, event: NoOpDpEvent, steps: int) -> NoOpDpEvent:  # noqa: ARG002
        return event


def two_sided(epsilons: FloatArray, deltas: FloatArray) -> FloatArray:
    """δ at ``-ε_n ... -ε_1, 0, ε_1 ... ε_n`` from a symmetric profile at ``0, ε_1 ... ε_n``.

    ``δ(-ε) = 1 - e^-ε + e^-ε δ(ε)``.
    """
    below = -epsilons[:0:-1]
    return np.concatenate([-np.expm1(below) + np.exp(below) * deltas[:0:-1], deltas])


def distribution(deltas: FloatArray, step: float) -> Any:
    """Certified distribution from a convex bound on δ at ``-n step ... n step`` (connect the dots)."""
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as pld

    half = len(deltas) // 2
    rounded = np.arange(-half, half + 1)
    return pld.PrivacyLossDistribution(pld_pmf.create_pmf_pessimistic_connect_dots(step, rounded, deltas))


def _convex_hull(epsilons: FloatArray, deltas: FloatArray) -> FloatArray:
    """The largest function below ``deltas`` that is convex in ``e^ε``, at the same ε."""
    kept: list[int] = []
    for k in range(len(epsilons)):
        while len(kept) > 1 and _dents(epsilons, deltas, kept[-2], kept[-1], k):
            kept.pop()
        kept.append(k)
    corners, places = np.array(kept), np.arange(len(epsilons))
    left = corners[np.searchsorted(corners, places, side="right") - 1]
    right = corners[np.searchsorted(corners, places)]
    gap = np.where(right > left, np.expm1(epsilons[right] - epsilons[left]), 1.0)
    share = np.expm1(epsilons - epsilons[left]) / gap
    return np.asarray(deltas[left] + share * (deltas[right] - deltas[left]))


def _dents(epsilons: FloatArray, deltas: FloatArray, i: int, j: int, k: int) -> bool:
    """Whether point j lies above the chord from i to k, in ``e^ε``."""
    share = math.expm1(epsilons[j] - epsilons[i]) / math.expm1(epsilons[k] - epsilons[i])
    return bool(deltas[j] > deltas[i] + share * (deltas[k] - deltas[i]))


SIMPLE: dict[str, Rule[Any]] = {
    "NoOpDpEvent": _Nothing(),
    "GaussianDpEvent": _Gaussian(),
    "LaplaceDpEvent": _Laplace(),
    "DiscreteLaplaceDpEvent": _DiscreteLaplace(),
    "RandomizedResponseDpEvent": RandomisedResponseRule(),
    "ZCDpEvent": _ZeroConcentrated(),
}

__all__ = ["SIMPLE", "RandomisedResponseRule", "Rule", "distribution", "two_sided"]
