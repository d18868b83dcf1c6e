"""The kinds of events that privada knows, with one `Rule` for each.

`privada.privacy.accounting.accountant` adds up what the rules say over compositions. It imports this module
when it first sees an event, because importing dp-accounting takes a second.

dp-accounting has an event for a sample that stays secret, but none for a sample whose members are visible.
Visible samples protect less: a member (a share γ of all rows) loses what the mechanism loses, and everybody
else loses nothing. `VisiblySampledDpEvent` is our event for them. If 0 marks the mechanism itself:

=====================  ==================================================
δ(ε), ε >= 0           ``γ δ₀(ε)``, at the same ε
Rényi, order α         ``log(1 - γ + γ e^((α-1) D₀)) / (α - 1)``
ε, ρ and μ             those of the mechanism
=====================  ==================================================

The proof is in privacy.md, section 3 (c), which also shows why rows at attribute level are such a sample
however secretly they were drawn.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import attr
import numpy as np
from dp_accounting.dp_event import (
    DiscreteLaplaceDpEvent,
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NoOpDpEvent,
    RandomizedResponseDpEvent,
    SampledWithoutReplacementDpEvent,
    ZCDpEvent,
)
from dp_accounting.pld import pld_pmf
from dp_accounting.pld import privacy_loss_distribution as pld

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.privacy.accounting import accountant, curves

LogProfile = Callable[[FloatArray], FloatArray]
E = TypeVar("E", bound=DpEvent)

STEP = 1e-4
FARTHEST = 600.0  # the largest ε that is evaluated: exp overflows at 709
CELLS = 20_000  # cells of the integral over a profile
NEGLIGIBLE = 40.0  # e^-40 of a moment is left out of that integral, and added as a bound


@attr.s(frozen=True, slots=True, auto_attribs=True)
class VisiblySampledDpEvent(DpEvent):
    """A mechanism on ``sample_size`` of ``source_dataset_size`` rows, drawn anew; its members are visible.

    The fields are those of dp-accounting's ``SampledWithoutReplacementDpEvent``.
    """

    source_dataset_size: int
    sample_size: int
    event: DpEvent


Sampled = SampledWithoutReplacementDpEvent | VisiblySampledDpEvent


class Rule(ABC, Generic[E]):
    """The privacy loss of one kind of event, per single application."""

    @abstractmethod
    def renyi(self, event: E, order: float) -> float:
        """Rényi divergence at ``order``, worst over neighbours and directions."""

    def pure(self, event: E) -> float:  # noqa: ARG002
        """Pure epsilon; infinite, unless the kind of event has one."""
        return math.inf

    def zcdp(self, event: E) -> float:
        """Smallest known ρ; by default the one that follows from the pure epsilon."""
        return curves.pure_to_zcdp(self.pure(event))

    def mu(self, event: E) -> float:
        """Gaussian μ; for a pure event, that of the curve through the corner of its trade-off curve."""
        epsilon = self.pure(event)
        return curves.pure_to_gaussian(epsilon) if math.isfinite(epsilon) else math.inf

    @abstractmethod
    def pld(self, event: E, step: float) -> Any:
        """A pessimistic privacy-loss distribution."""

    @abstractmethod
    def widened(self, event: E, steps: int) -> E:
        """The event over ``steps`` steps of its relation (group privacy)."""


class GaussianRule(Rule[GaussianDpEvent]):
    """Gaussian noise."""

    def renyi(self, event: GaussianDpEvent, order: float) -> float:
        return order * self.zcdp(event)

    def zcdp(self, event: GaussianDpEvent) -> float:
        return self.mu(event) ** 2 / 2

    def mu(self, event: GaussianDpEvent) -> float:
        return 1 / event.noise_multiplier if event.noise_multiplier else math.inf

    def pld(self, event: GaussianDpEvent, step: float) -> Any:
        return pld.from_gaussian_mechanism(event.noise_multiplier, value_discretization_interval=step)

    def widened(self, event: GaussianDpEvent, steps: int) -> GaussianDpEvent:
        return type(event)(event.noise_multiplier / steps)


class LaplaceRule(Rule[LaplaceDpEvent]):
    """Continuous Laplace noise."""

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
        return pld.from_laplace_mechanism(event.noise_multiplier, value_discretization_interval=step)

    def widened(self, event: LaplaceDpEvent, steps: int) -> LaplaceDpEvent:
        return type(event)(event.noise_multiplier / steps)


class DiscreteLaplaceRule(Rule[DiscreteLaplaceDpEvent]):
    """Discrete Laplace noise on the integers."""

    def renyi(self, event: DiscreteLaplaceDpEvent, order: float) -> float:
        a, shift = event.noise_parameter, _check.count(least=0, sensitivity=event.sensitivity)
        if a * shift == 0:
            return 0.0
        most, fall = (order - 1) * a * shift, a * (2 * order - 1)
        tail = -math.log1p(math.exp(-a))
        parts = [tail + most, tail - a * shift - most]
        if shift > 1:
            # Between the two ends the terms are geometric: each is e^-fall times the one before.
            terms = math.log(-math.expm1(-fall * (shift - 1))) - math.log(-math.expm1(-fall))
            parts.append(math.log(math.tanh(a / 2)) + most - fall + terms)
        return max(0.0, float(np.logaddexp.reduce(parts)) / (order - 1))

    def pure(self, event: DiscreteLaplaceDpEvent) -> float:
        return float(event.noise_parameter * _check.count(least=0, sensitivity=event.sensitivity))

    def pld(self, event: DiscreteLaplaceDpEvent, step: float) -> Any:
        return pld.from_discrete_laplace_mechanism(
            event.noise_parameter, event.sensitivity, value_discretization_interval=step
        )

    def widened(self, event: DiscreteLaplaceDpEvent, steps: int) -> DiscreteLaplaceDpEvent:
        return type(event)(event.noise_parameter, event.sensitivity * steps)


class RandomisedResponseRule(Rule[RandomizedResponseDpEvent]):
    """Randomised response over k buckets; with two it dominates every pure mechanism."""

    def outcomes(self, event: RandomizedResponseDpEvent) -> tuple[tuple[float, float], ...]:
        """Probability and privacy loss of each kind of answer: the truth, the neighbour's, another's."""
        # Above 1 the truth would be the rarest answer, and its loss negative.
        _check.share(noise_parameter=event.noise_parameter)
        _check.count(least=2, num_buckets=event.num_buckets)
        other = event.noise_parameter / event.num_buckets
        truth = 1 - event.noise_parameter + other
        loss = math.log(truth / other) if other else math.inf
        return (truth, loss), (other, -loss), ((event.num_buckets - 2) * other, 0.0)

    def renyi(self, event: RandomizedResponseDpEvent, order: float) -> float:
        (truth, loss), (other, _), _ = self.outcomes(event)
        loss *= order - 1
        if not math.isfinite(loss):
            return math.inf
        parts = [math.log(truth) + loss, math.log(other) - loss]
        if event.num_buckets > 2:
            parts.append(math.log((event.num_buckets - 2) * other))
        return max(0.0, float(np.logaddexp.reduce(parts)) / (order - 1))

    def pure(self, event: RandomizedResponseDpEvent) -> float:
        return self.outcomes(event)[0][1]

    def pld(self, event: RandomizedResponseDpEvent, step: float) -> Any:
        return pld.from_randomized_response(
            event.noise_parameter, event.num_buckets, value_discretization_interval=step
        )

    def widened(self, event: RandomizedResponseDpEvent, steps: int) -> RandomizedResponseDpEvent:
        """Binary response at ``steps`` times the epsilon, which dominates whatever loses as much."""
        return type(event)(curves.response(steps * self.pure(event)), 2)


class ZeroConcentratedRule(Rule[ZCDpEvent]):
    """A mechanism of which only the zCDP constant is recorded."""

    def renyi(self, event: ZCDpEvent, order: float) -> float:
        return float(event.xi + order * event.rho)

    def zcdp(self, event: ZCDpEvent) -> float:
        return float(event.rho) if event.xi == 0 else math.inf

    def pld(self, event: ZCDpEvent, step: float) -> Any:
        """From the convex hull of the bound on δ."""
        top = curves.find_smallest(lambda value: curves.zcdp_delta(value, event.rho, event.xi) <= 1e-15)
        grid = step * np.arange(math.ceil(top / step) + 1, dtype=np.float64)
        bound = two_sided(grid, curves.zcdp_deltas(grid, event.rho, event.xi))
        # The bound is no profile: at ε = 0 it is steeper than a symmetric one can be. A profile is convex in
        # e^ε, so whatever lies below the bound lies below its convex hull.
        return _make_distribution(_convex_hull(np.concatenate([-grid[:0:-1], grid]), bound), step)

    def widened(self, event: ZCDpEvent, steps: int) -> ZCDpEvent:
        if event.xi != 0:
            raise InputError("An event with xi > 0 cannot be converted to another relation.")
        return type(event)(event.rho * steps**2)


class NoOpRule(Rule[NoOpDpEvent]):
    """An event that reveals nothing."""

    def renyi(self, event: NoOpDpEvent, order: float) -> float:  # noqa: ARG002
        return 0.0

    def pure(self, event: NoOpDpEvent) -> float:  # noqa: ARG002
        return 0.0

    def mu(self, event: NoOpDpEvent) -> float:  # noqa: ARG002
        return 0.0

    def pld(self, event: NoOpDpEvent, step: float) -> Any:  # noqa: ARG002
        return pld.identity(step)

    def widened(self, event: NoOpDpEvent, steps: int) -> NoOpDpEvent:  # noqa: ARG002
        return event


class VisibleSample(Rule[Sampled]):
    """A sample whose members are visible: ``γ δ(ε)``.

    This holds for every sample, secret or not, under every relation: which rows are drawn does not depend on
    any value, so the profile is a mixture of the mechanism's and zero (privacy.md, section 3 (c)).
    """

    def rate(self, event: Sampled) -> float:
        """Sampling rate γ."""
        size = _check.count(source_dataset_size=event.source_dataset_size)
        drawn = _check.count(least=0, sample_size=event.sample_size)
        if not 0 < drawn <= size:
            raise InputError(f"Expected a sample of 1 to {size}, got {drawn}.")
        return drawn / size

    def renyi(self, event: Sampled, order: float) -> float:
        """Of the mixture: the moments ``E[(P/Q)^(α-1)]`` average."""
        rate, divergence = self.rate(event), accountant.renyi(event.event, order)
        power = (order - 1) * divergence
        if not math.isfinite(power):
            return divergence
        log_rest = math.log1p(-rate) if rate < 1 else -math.inf
        return max(0.0, float(np.logaddexp(log_rest, math.log(rate) + power)) / (order - 1))

    def zcdp(self, event: Sampled) -> float:
        """That of the mechanism: at large orders the rate does not help."""
        self.rate(event)
        return accountant.zcdp(event.event)

    def pure(self, event: Sampled) -> float:
        """That of the mechanism: a member of the sample has its full loss."""
        self.rate(event)
        return accountant.pure_epsilon(event.event)

    def mu(self, event: Sampled) -> float:
        """That of the mechanism."""
        self.rate(event)
        return accountant.gaussian_mu(event.event)

    def pld(self, event: Sampled, step: float) -> Any:
        """From the profile, which is symmetric and convex."""
        profile = self.log_profile(event, step)
        # Beyond this ε the profile is 1e-15, or no more than what the inner distribution cut off.
        epsilon = self.pure(event)
        least = max(math.log(1e-15), float(profile(np.array([min(epsilon, FARTHEST)]))[0]) + 1e-9)
        reach = curves.find_smallest(lambda value: float(profile(np.array([value]))[0]) <= least)
        grid = step * np.arange(math.ceil(min(reach, epsilon) / step) + 1, dtype=np.float64)
        return _make_distribution(two_sided(grid, np.exp(profile(grid))), step)

    def log_profile(self, event: Sampled, step: float) -> LogProfile:
        """``log δ`` of the sampled mechanism at an array of ε >= 0."""
        rate, inner = self.rate(event), event.event
        closed = accountant.closed_profile(inner)
        distribution: Any = accountant.privacy_loss_distribution(inner, step=step) if closed is None else None

        def log_deltas(epsilons: FloatArray) -> FloatArray:
            inner_epsilons = self.inner_epsilons(epsilons, rate)
            if closed is not None:
                return math.log(rate) + closed(inner_epsilons)
            with np.errstate(divide="ignore"):
                deltas = np.maximum(distribution.get_delta_for_epsilon(inner_epsilons), 0.0)
                return math.log(rate) + np.asarray(np.log(deltas))

        return log_deltas

    def inner_epsilons(self, epsilons: FloatArray, rate: float) -> FloatArray:  # noqa: ARG002
        """The ε at which the profile of the mechanism inside is evaluated."""
        return epsilons

    def widened(self, event: Sampled, steps: int) -> Sampled:  # noqa: ARG002
        """Refuse: a group may be in the sample in part."""
        raise InputError(
            f"A sampled event is priced under its own relation only, not over {steps} steps of it."
        )


class SecretSample(VisibleSample):
    """A mechanism on a secret random subset of fixed size, **under replace-one only**.

    At sampling rate γ the profile ``f(ε) = γ δ(log(1 + (e^ε - 1)/γ))`` for ε >= 0, extended to ε < 0 by
    symmetry, is convex and dominates (Balle, Barthe and Gaboardi 2018; privacy.md, section 3 (c)). The proof
    compares a sample that holds a record with one that holds *another* record instead, so it needs the
    mechanism's δ between any two records: at attribute level that is not what δ says. Sampling never costs
    more than the mechanism itself, so its ρ and μ hold for the sample too.
    """

    def inner_epsilons(self, epsilons: FloatArray, rate: float) -> FloatArray:
        """``log(1 + (e^ε - 1)/γ)``, also where ``e^ε`` overflows."""
        small = np.log1p(np.expm1(np.minimum(epsilons, 1.0)) / rate)
        large = epsilons + np.log1p((rate - 1) * np.exp(-np.maximum(epsilons, 1.0))) - math.log(rate)
        return np.where(epsilons < 1, small, large)

    def pure(self, event: Sampled) -> float:
        """``log(1 + γ (e^ε - 1))``."""
        rate, inner = self.rate(event), accountant.pure_epsilon(event.event)
        return math.log1p(rate * math.expm1(inner)) if inner < 700 else math.inf

    def renyi(self, event: Sampled, order: float) -> float:
        """From the profile: ``E[(P/Q)^α] = 1 + α(α-1) ∫₀^∞ (e^((α-1)ε) + e^(-αε)) δ(ε) dε``, from above.

        Beyond ``top`` the bound ``δ(ε) <= e^((2α-1)(D - ε))``, D the mechanism's divergence at order 2α,
        leaves less than ``2 e^-40`` of the integral's unit. All is computed in logarithms.
        """
        divergence, far = accountant.renyi(event.event, order), accountant.renyi(event.event, 2 * order)
        if not math.isfinite(far):
            return divergence
        top = ((2 * order - 1) * far + NEGLIGIBLE) / order
        epsilons = np.linspace(0.0, top, CELLS + 1)
        # δ falls, so its value at the left end of a cell bounds it on the cell.
        log_deltas = np.minimum(
            self.log_profile(event, min(STEP, top / 1000))(epsilons), (2 * order - 1) * (far - epsilons)
        )[:-1]
        width = top / CELLS
        up = (order - 1) * epsilons[1:] + math.log(-math.expm1(-(order - 1) * width) / (order - 1))
        down = -order * epsilons[:-1] + math.log(-math.expm1(-order * width) / order)
        parts = log_deltas + np.logaddexp(up, down)
        rest = math.log(2 / order) - NEGLIGIBLE
        log_excess = math.log(order * (order - 1)) + float(np.logaddexp.reduce([*parts, rest]))
        return min(divergence, float(np.logaddexp(0.0, log_excess)) / (order - 1))


def two_sided(epsilons: FloatArray, deltas: FloatArray) -> FloatArray:
    """δ at ``-ε_n ... -ε_1, 0, ε_1 ... ε_n`` from a symmetric profile at ``0, ε_1 ... ε_n``.

    ``δ(-ε) = 1 - e^-ε + e^-ε δ(ε)``.
    """
    below = -epsilons[:0:-1]
    return np.concatenate([-np.expm1(below) + np.exp(below) * deltas[:0:-1], deltas])


def _make_distribution(deltas: FloatArray, step: float) -> Any:
    """Certified distribution from a convex bound on δ at ``-n step ... n step`` (connect the dots)."""
    half = len(deltas) // 2
    rounded = np.arange(-half, half + 1)
    return pld.PrivacyLossDistribution(pld_pmf.create_pmf_pessimistic_connect_dots(step, rounded, deltas))


def _convex_hull(epsilons: FloatArray, deltas: FloatArray) -> FloatArray:
    """The largest function below ``deltas`` that is convex in ``e^ε``, at the same ε."""

    def lies_above_chord(i: int, j: int, k: int) -> bool:
        share = math.expm1(epsilons[j] - epsilons[i]) / math.expm1(epsilons[k] - epsilons[i])
        return bool(deltas[j] > deltas[i] + share * (deltas[k] - deltas[i]))

    # Andrew's monotone chain: a point above the chord of its neighbours is no corner of the hull.
    chain: list[int] = []
    for k in range(len(epsilons)):
        while len(chain) > 1 and lies_above_chord(chain[-2], chain[-1], k):
            chain.pop()
        chain.append(k)
    corners, places = np.array(chain), np.arange(len(epsilons))
    start = corners[np.searchsorted(corners, places, side="right") - 1]
    end = corners[np.searchsorted(corners, places)]
    gap = np.where(end > start, np.expm1(epsilons[end] - epsilons[start]), 1.0)
    share = np.expm1(epsilons - epsilons[start]) / gap
    return np.asarray(deltas[start] + share * (deltas[end] - deltas[start]))


RULES: dict[str, Rule[Any]] = {
    "NoOpDpEvent": NoOpRule(),
    "GaussianDpEvent": GaussianRule(),
    "LaplaceDpEvent": LaplaceRule(),
    "DiscreteLaplaceDpEvent": DiscreteLaplaceRule(),
    "RandomizedResponseDpEvent": RandomisedResponseRule(),
    "ZCDpEvent": ZeroConcentratedRule(),
    "SampledWithoutReplacementDpEvent": SecretSample(),
    "VisiblySampledDpEvent": VisibleSample(),
}

__all__ = ["RULES", "Rule", "VisiblySampledDpEvent"]
