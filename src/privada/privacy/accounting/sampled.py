"""The rules of events inside a random sample: one that stays secret, and one that shows.

`privada.privacy.accounting.accountant` hands them the measures of the mechanism inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.privacy.accounting import curves
from privada.privacy.accounting.rules import Rule, distribution, two_sided

if TYPE_CHECKING:
    from dp_accounting import DpEvent, SampledWithoutReplacementDpEvent

    from privada.privacy.accounting.events import VisiblySampledDpEvent

    Sampled = SampledWithoutReplacementDpEvent | VisiblySampledDpEvent

LogProfile = Callable[[FloatArray], FloatArray]
STEP = 1e-4
FARTHEST = 600.0  # ε beyond which nothing is looked at: floats end at 709
CELLS = 20_000  # of the integral over a profile
NEGLIGIBLE = 40.0  # e^-40 of a moment is left out of that integral, and added as a bound


@dataclass(frozen=True)
class Measures:
    """What an accountant knows of the mechanism inside a sample."""

    renyi: Callable[[DpEvent, float], float]
    zcdp: Callable[[DpEvent], float]
    pure: Callable[[DpEvent], float]
    mu: Callable[[DpEvent], float]
    closed: Callable[[DpEvent], LogProfile | None]
    pld: Callable[[DpEvent, float], Any]


@dataclass(frozen=True)
class VisibleSample(Rule["Sampled"]):
    """Whoever is in the sample loses what the mechanism loses, everybody else nothing: ``γ δ(ε)``.

    This holds for every sample, secret or not, under every relation: who is in it does not depend on any
    value, so the profile is the mixture of the mechanism's and of nothing (privacy.md, section 3 (c)).
    """

    inside: Measures

    def rate(self, event: Sampled) -> float:
        """Sampling rate γ."""
        size = _check.count(source_dataset_size=event.source_dataset_size)
        drawn = _check.count(least=0, sample_size=event.sample_size)
        if not 0 < drawn <= size:
            raise InputError(f"Expected a sample of 1 to {size}, got {drawn}.")
        return drawn / size

    def renyi(self, event: Sampled, order: float) -> float:
        """Of the mixture: the moments ``E[(P/Q)^(α-1)]`` average."""
        rate, whole = self.rate(event), self.inside.renyi(event.event, order)
        power = (order - 1) * whole
        if not math.isfinite(power):
            return whole
        log_rest = math.log1p(-rate) if rate < 1 else -math.inf
        return max(0.0, float(np.logaddexp(log_rest, math.log(rate) + power)) / (order - 1))

    def zcdp(self, event: Sampled) -> float:
        """Of the mechanism: at large orders the rate does not help."""
        self.rate(event)
        return self.inside.zcdp(event.event)

    def pure(self, event: Sampled) -> float:
        """The mechanism's own: a member of the sample has its full loss."""
        self.rate(event)
        return self.inside.pure(event.event)

    def mu(self, event: Sampled) -> float:
        """Of the mechanism."""
        self.rate(event)
        return self.inside.mu(event.event)

    def pld(self, event: Sampled, step: float) -> Any:
        """From the profile, which is symmetric and convex."""
        profile = self.log_profile(event, step)
        reach = self._reach(event, profile)
        grid = step * np.arange(math.ceil(reach / step) + 1, dtype=np.float64)
        return distribution(two_sided(grid, np.exp(profile(grid))), step)

    def _reach(self, event: Sampled, profile: LogProfile) -> float:
        """The ε beyond which the profile is 1e-15, or no more than what the distribution inside cut off."""
        pure = self.pure(event)
        least = max(math.log(1e-15), float(profile(np.array([min(pure, FARTHEST)]))[0]) + 1e-9)
        found = curves._smallest(lambda value: float(profile(np.array([value]))[0]) <= least)
        return min(found, pure)

    def log_profile(self, event: Sampled, step: float) -> LogProfile:
        """``log δ`` of the sampled mechanism at an array of ε >= 0."""
        rate, inner = self.rate(event), event.event
        mechanism = self._log_deltas(inner, step)
        return lambda epsilons: math.log(rate) + mechanism(self.within(epsilons, rate))

    def within(self, epsilons: FloatArray, rate: float) -> FloatArray:  # noqa: ARG002
        """The ε at which the mechanism inside is asked."""
        return epsilons

    def _log_deltas(self, inner: DpEvent, step: float) -> LogProfile:
        closed = self.inside.closed(inner)
        if closed is not None:
            return closed
        composed = self.inside.pld(inner, step)

        def log_deltas(epsilons: FloatArray) -> FloatArray:
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(np.maximum(composed.get_delta_for_epsilon(epsilons), 0.0)))

        return log_deltas

    def widened(self, event: Sampled, steps: int) -> Sampled:  # noqa: ARG002
        """Refuse: a group may be in the sample in part."""
        raise InputError(
            f"A sampled event is priced under its own relation only, not over {steps} steps of it."
        )


@dataclass(frozen=True)
class SecretSample(VisibleSample):
    """A mechanism on a secret random subset of fixed size, **under replace-one only**.

    At sampling rate γ the profile ``f(ε) = γ δ(log(1 + (e^ε - 1)/γ))`` for ε >= 0, extended to ε < 0 by
    symmetry, is convex and dominates (Balle, Barthe and Gaboardi 2018; privacy.md, section 3 (c)). The proof
    compares a sample that holds a record with one that holds *another* record instead, so it needs the
    mechanism's δ between any two records: at attribute level that is not what δ says. Sampling never costs
    more than the mechanism itself, whose ρ and μ therefore stand for it too.
    """

    def within(self, epsilons: FloatArray, rate: float) -> FloatArray:
        """``log(1 + (e^ε - 1)/γ)``, also where ``e^ε`` is beyond floats."""
        small = np.log1p(np.expm1(np.minimum(epsilons, 1.0)) / rate)
        large = epsilons + np.log1p((rate - 1) * np.exp(-np.maximum(epsilons, 1.0))) - math.log(rate)
        return np.where(epsilons < 1, small, large)

    def pure(self, event: Sampled) -> float:
        """``log(1 + γ (e^ε - 1))``."""
        rate, inner = self.rate(event), self.inside.pure(event.event)
        return math.log1p(rate * math.expm1(inner)) if inner < 700 else math.inf

    def renyi(self, event: Sampled, order: float) -> float:
        """From the profile: ``E[(P/Q)^α] = 1 + α(α-1) ∫₀^∞ (e^((α-1)ε) + e^(-αε)) δ(ε) dε``, from above.

        Beyond ``top`` the bound ``δ(ε) <= e^((2α-1)(D - ε))``, D the mechanism's divergence at order 2α,
        leaves less than ``2 e^-40`` of the integral's unit. All is computed in logarithms.
        """
        whole, far = self.inside.renyi(event.event, order), self.inside.renyi(event.event, 2 * order)
        if not math.isfinite(far):
            return whole
        top = ((2 * order - 1) * far + NEGLIGIBLE) / order
        epsilons = np.linspace(0.0, top, CELLS + 1)
        log_f = np.minimum(
            self.log_profile(event, min(STEP, top / 1000))(epsilons), (2 * order - 1) * (far - epsilons)
        )[:-1]  # δ falls, so its value at the left end bounds a cell
        width = top / CELLS
        up = (order - 1) * epsilons[1:] + math.log(-math.expm1(-(order - 1) * width) / (order - 1))
        down = -order * epsilons[:-1] + math.log(-math.expm1(-order * width) / order)
        parts = log_f + np.logaddexp(up, down)
        rest = math.log(2 / order) - NEGLIGIBLE
        log_excess = math.log(order * (order - 1)) + float(np.logaddexp.reduce([*parts, rest]))
        return min(whole, float(np.logaddexp(0.0, log_excess)) / (order - 1))


__all__ = ["Measures", "SecretSample", "VisibleSample"]
