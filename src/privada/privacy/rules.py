"""What is known of each kind of event, by itself: one `Rule` each.

`privada.privacy.accountant` adds rules up over compositions, and has the one of events inside a sample.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from privada.exceptions import InputError
from privada.privacy import curves

Event = Any  # dp_accounting.DpEvent: imported where used, for it takes a second


class Rule(ABC):
    """What is known of one kind of event, per single application."""

    @abstractmethod
    def renyi(self, event: Event, order: float) -> float:
        """Rényi divergence at ``order``, worst over neighbours and directions."""

    @abstractmethod
    def zcdp(self, event: Event) -> float:
        """Smallest known ρ."""

    @abstractmethod
    def pure(self, event: Event) -> float:
        """Pure epsilon, infinite if there is none."""

    def mu(self, event: Event) -> float:
        """Gaussian μ; for a pure event the curve through its corner."""
        pure = self.pure(event)
        return curves.pure_to_gaussian(pure) if math.isfinite(pure) else math.inf

    @abstractmethod
    def pld(self, event: Event, step: float) -> Any:
        """A pessimistic privacy-loss distribution."""

    @abstractmethod
    def widened(self, event: Event, steps: int) -> Event:
        """The event over ``steps`` steps of its relation (group privacy)."""


class _Gaussian(Rule):
    def renyi(self, event: Event, order: float) -> float:
        return order * self.zcdp(event)

    def zcdp(self, event: Event) -> float:
        return self.mu(event) ** 2 / 2

    def pure(self, event: Event) -> float:  # noqa: ARG002
        return math.inf

    def mu(self, event: Event) -> float:
        return 1 / event.noise_multiplier if event.noise_multiplier else math.inf

    def pld(self, event: Event, step: float) -> Any:
        from dp_accounting.pld import privacy_loss_distribution as pld

        return pld.from_gaussian_mechanism(event.noise_multiplier, value_discretization_interval=step)

    def widened(self, event: Event, steps: int) -> Event:
        return type(event)(event.noise_multiplier / steps)


class _Laplace(Rule):
    def renyi(self, event: Event, order: float) -> float:
        epsilon = self.pure(event)
        up = math.log(order / (2 * order - 1)) + (order - 1) * epsilon
        down = math.log((order - 1) / (2 * order - 1)) - order * epsilon
        return max(0.0, float(np.logaddexp(up, down)) / (order - 1))

    def zcdp(self, event: Event) -> float:
        return curves.laplace_to_zcdp(self.pure(event))

    def pure(self, event: Event) -> float:
        return 1 / event.noise_multiplier if event.noise_multiplier else math.inf

    def pld(self, event: Event, step: float) -> Any:
        from dp_accounting.pld import privacy_loss_distribution as pld

        return pld.from_laplace_mechanism(event.noise_multiplier, value_discretization_interval=step)

    def widened(self, event: Event, steps: int) -> Event:
        return type(event)(event.noise_multiplier / steps)


class _DiscreteLaplace(Rule):
    """Discrete Laplace on the integers."""

    def renyi(self, event: Event, order: float) -> float:
        a, shift = event.noise_parameter, event.sensitivity
        if a * shift == 0:
            return 0.0
        most, fall = (order - 1) * a * shift, a * (2 * order - 1)
        tail = -math.log1p(math.exp(-a))
        parts = [tail + most, tail - a * shift - most]
        if shift > 1:  # between the two ends the terms are geometric, each e^-fall times the one before
            terms = math.log(-math.expm1(-fall * (shift - 1))) - math.log(-math.expm1(-fall))
            parts.append(math.log(math.tanh(a / 2)) + most - fall + terms)
        return max(0.0, float(np.logaddexp.reduce(parts)) / (order - 1))

    def zcdp(self, event: Event) -> float:
        return curves.pure_to_zcdp(self.pure(event))

    def pure(self, event: Event) -> float:
        return float(event.noise_parameter * event.sensitivity)

    def pld(self, event: Event, step: float) -> Any:
        from dp_accounting.pld import privacy_loss_distribution as pld

        return pld.from_discrete_laplace_mechanism(
            event.noise_parameter, event.sensitivity, value_discretization_interval=step
        )

    def widened(self, event: Event, steps: int) -> Event:
        return type(event)(event.noise_parameter, event.sensitivity * steps)


class _RandomisedResponse(Rule):
    """Randomised response over k buckets; with two it dominates every pure mechanism."""

    def _masses(self, event: Event) -> tuple[float, float]:
        other = event.noise_parameter / event.num_buckets
        return 1 - event.noise_parameter + other, other

    def renyi(self, event: Event, order: float) -> float:
        keep, other = self._masses(event)
        loss = (order - 1) * self.pure(event)
        if not math.isfinite(loss):
            return math.inf
        parts = [math.log(keep) + loss, math.log(other) - loss]
        if event.num_buckets > 2:
            parts.append(math.log((event.num_buckets - 2) * other))
        return max(0.0, float(np.logaddexp.reduce(parts)) / (order - 1))

    def zcdp(self, event: Event) -> float:
        return curves.pure_to_zcdp(self.pure(event))

    def pure(self, event: Event) -> float:
        keep, other = self._masses(event)
        return math.log(keep / other) if other else math.inf

    def pld(self, event: Event, step: float) -> Any:
        from dp_accounting.pld import privacy_loss_distribution as pld

        return pld.from_randomized_response(
            event.noise_parameter, event.num_buckets, value_discretization_interval=step
        )

    def widened(self, event: Event, steps: int) -> Event:
        """Binary response at ``steps`` times the epsilon dominates whatever loses as much."""
        return type(event)(curves.response(steps * self.pure(event)), 2)


class _ZeroConcentrated(Rule):
    """A mechanism of which only the zCDP constant is recorded."""

    def renyi(self, event: Event, order: float) -> float:
        return float(event.xi + order * event.rho)

    def zcdp(self, event: Event) -> float:
        return float(event.rho) if event.xi == 0 else math.inf

    def pure(self, event: Event) -> float:  # noqa: ARG002
        return math.inf

    def pld(self, event: Event, step: float) -> Any:
        return _profile_pld(lambda epsilon: curves.zcdp_delta(epsilon, event.rho), step)

    def widened(self, event: Event, steps: int) -> Event:
        if event.xi != 0:
            raise InputError("An event with xi > 0 cannot be converted to another relation.")
        return type(event)(event.rho * steps**2)


class _Nothing(Rule):
    def renyi(self, event: Event, order: float) -> float:  # noqa: ARG002
        return 0.0

    def zcdp(self, event: Event) -> float:  # noqa: ARG002
        return 0.0

    def pure(self, event: Event) -> float:  # noqa: ARG002
        return 0.0

    def mu(self, event: Event) -> float:  # noqa: ARG002
        return 0.0

    def pld(self, event: Event, step: float) -> Any:  # noqa: ARG002
        from dp_accounting.pld import privacy_loss_distribution as pld

        return pld.identity(step)

    def widened(self, event: Event, steps: int) -> Event:  # noqa: ARG002
        return event


def _profile_pld(profile: Callable[[float], float], step: float) -> Any:
    """Certified distribution from any hockey-stick profile (connect the dots)."""
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as pld

    top = curves._smallest(lambda value: profile(value) <= 1e-15)
    rounded = np.arange(-math.ceil(top / step), math.ceil(top / step) + 1)
    deltas = [_two_sided(profile, step * float(k)) for k in rounded]
    return pld.PrivacyLossDistribution(pld_pmf.create_pmf_pessimistic_connect_dots(step, rounded, deltas))


def _two_sided(profile: Callable[[float], float], epsilon: float) -> float:
    """Extend a symmetric profile to negative ε: ``1 - e^ε + e^ε δ(-ε)``."""
    if epsilon >= 0:
        return profile(epsilon)
    return -math.expm1(epsilon) + math.exp(epsilon) * profile(-epsilon)


SIMPLE: dict[str, Rule] = {
    "NoOpDpEvent": _Nothing(),
    "GaussianDpEvent": _Gaussian(),
    "LaplaceDpEvent": _Laplace(),
    "DiscreteLaplaceDpEvent": _DiscreteLaplace(),
    "RandomizedResponseDpEvent": _RandomisedResponse(),
    "ZCDpEvent": _ZeroConcentrated(),
}

__all__ = ["SIMPLE", "Event", "Rule"]
