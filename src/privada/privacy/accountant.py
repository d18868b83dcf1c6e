"""From events to guarantees.

An event is a `dp_accounting.DpEvent`, so an outsider can recompute every
figure. Its parameters are relative to the sensitivity *under the relation of
the ledger*, so dp-accounting must be asked with its plain relation
(``ADD_OR_REMOVE_ONE``; randomised response with ``REPLACE_ONE``).

Each kind of event has one `Rule`: its Rényi divergence, its zCDP constant, its
pure epsilon, its Gaussian μ and its privacy-loss distribution. Compositions
add up over their parts, so a repetition cannot be forgotten.

>>> import dp_accounting
>>> pair = dp_accounting.ComposedDpEvent([dp_accounting.GaussianDpEvent(2.0)] * 4)
>>> gaussian_mu(pair)
1.0
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import InputError
from privada.privacy import curves
from privada.privacy.guarantee import ZCDP, Approximate, Guarantee, Pure
from privada.privacy.rules import SIMPLE, Event, Rule

FloatArray = npt.NDArray[np.float64]
PLD_STEP = 1e-4


class _SampledWithoutReplacement(Rule):
    """A mechanism on a secret random subset of fixed size, under replace-one.

    At sampling rate g the profile ``f(ε) = g δ(log(1 + (e^ε - 1)/g))`` for ε >= 0, extended to ε < 0 by
    symmetry, is convex and dominates (Balle, Barthe and Gaboardi 2018; PRIVACY, section 3 (c)). Sampling
    never costs more than the mechanism itself, whose ρ and μ therefore stand for it too.
    """

    def _rate(self, event: Event) -> float:
        if not 0 < event.sample_size <= event.source_dataset_size:
            raise InputError(
                f"Expected a sample of 1 to {event.source_dataset_size}, got {event.sample_size}."
            )
        return float(event.sample_size / event.source_dataset_size)

    def _profile(self, event: Event, step: float) -> Callable[[FloatArray], FloatArray]:
        """The profile at an array of ε >= 0, from the inner mechanism's δ."""
        rate, inner = self._rate(event), event.event
        composed = None if only_gaussian(inner) else privacy_loss_distribution(inner, step=step)

        def profile(epsilons: FloatArray) -> FloatArray:
            inside = np.log1p(np.expm1(epsilons) / rate)
            if composed is None:
                return rate * _gaussian_deltas(inside, gaussian_mu(inner))
            return rate * np.asarray(composed.get_delta_for_epsilon(inside))

        return profile

    def renyi(self, event: Event, order: float) -> float:
        """From the profile: ``E[(P/Q)^α] = α(α-1) ∫ e^((α-1)ε) δ(ε) dε``, ε over the reals."""
        profile, whole = self._profile(event, PLD_STEP), renyi(event.event, order)
        if not math.isfinite(whole):
            return whole
        top = 1.0
        while top < 200 and float(profile(np.array([top]))[0]) * math.exp((order - 1) * top) > 1e-14:
            top *= 1.25
        epsilons = np.linspace(0.0, top, 4001)
        f = profile(epsilons)
        up = np.diff(np.exp((order - 1) * epsilons)) / (order - 1)  # f falls: its left end bounds a cell
        down = -np.diff(np.exp(-order * epsilons)) / order
        moment = 1 + order * (order - 1) * (float(np.sum(f[:-1] * (up + down))) + 1e-12)
        return min(whole, math.log(moment) / (order - 1))

    def zcdp(self, event: Event) -> float:
        self._rate(event)
        return zcdp(event.event)

    def pure(self, event: Event) -> float:
        inner = pure_epsilon(event.event)
        return math.log1p(self._rate(event) * math.expm1(inner)) if inner < 700 else math.inf

    def mu(self, event: Event) -> float:
        self._rate(event)
        return gaussian_mu(event.event)

    def pld(self, event: Event, step: float) -> Any:
        profile = self._profile(event, step)
        top = curves._smallest(lambda value: float(profile(np.array([value]))[0]) <= 1e-15)
        deltas = profile(np.arange(math.ceil(top / step) + 1, dtype=np.float64) * step)
        return _sampled_pld(deltas, step)

    def widened(self, event: Event, steps: int) -> Event:  # noqa: ARG002
        raise InputError(
            f"A sampled event is priced under its own relation only, not over {steps} steps of it."
        )


RULES: dict[str, Rule] = {**SIMPLE, "SampledWithoutReplacementDpEvent": _SampledWithoutReplacement()}


def leaves(event: Event, times: int = 1) -> Iterator[tuple[Rule, Event, int]]:
    """Walk an event down to its single applications: rule, event, how often."""
    name = type(event).__name__
    if name == "SelfComposedDpEvent":
        yield from leaves(event.event, times * event.count)
    elif name == "ComposedDpEvent":
        for part in event.events:
            yield from leaves(part, times)
    elif name in RULES:
        _check_numbers(event, times)
        yield RULES[name], event, times
    else:
        raise InputError(f"privada cannot account for {name}; known: {', '.join(sorted(RULES))}.")


def _check_numbers(event: Event, times: int) -> None:
    """dp-accounting's events check nothing; a negative number would pay for less than nothing."""
    import attr

    numbers = [value for value in attr.astuple(event, recurse=False) if not attr.has(type(value))]
    if times < 0 or not all(value >= 0 for value in numbers):
        raise InputError(f"Expected the numbers of an event to be >= 0, got {event!r}, {times} times.")


def renyi(event: Event, order: float) -> float:
    """Rényi divergence of an event at one order."""
    return math.fsum(times * rule.renyi(leaf, order) for rule, leaf, times in leaves(event))


def zcdp(event: Event) -> float:
    """Smallest known ρ of an event."""
    return math.fsum(times * rule.zcdp(leaf) for rule, leaf, times in leaves(event))


def pure_epsilon(event: Event) -> float:
    """Pure epsilon of an event, infinite if it has none."""
    return math.fsum(times * rule.pure(leaf) for rule, leaf, times in leaves(event))


def gaussian_mu(event: Event) -> float:
    """Smallest known μ for which the event is μ-Gaussian differentially private."""
    return math.sqrt(math.fsum(times * rule.mu(leaf) ** 2 for rule, leaf, times in leaves(event)))


def only_gaussian(event: Event) -> bool:
    """Whether the event is made of Gaussian noise alone, which composes exactly."""
    exact = "GaussianDpEvent", "NoOpDpEvent"
    return all(type(leaf).__name__ in exact for _, leaf, _ in leaves(event))


def delta(event: Event, epsilon: float, *, step: float = PLD_STEP) -> float:
    """δ(ε) of an event: exact for Gaussians, a certified privacy-loss distribution otherwise."""
    if only_gaussian(event):
        mu = gaussian_mu(event)
        return curves.gaussian_delta(epsilon, mu) if mu else 0.0
    return float(privacy_loss_distribution(event, step=step).get_delta_for_epsilon(epsilon))


def epsilon(event: Event, delta: float, *, step: float = PLD_STEP) -> float:
    """ε(δ) of an event: exact for Gaussians, a certified privacy-loss distribution otherwise."""
    if only_gaussian(event):
        mu = gaussian_mu(event)
        return curves.gaussian_epsilon(delta, mu) if mu else 0.0
    return float(privacy_loss_distribution(event, step=step).get_epsilon_for_delta(delta))


def privacy_loss_distribution(event: Event, *, step: float = PLD_STEP) -> Any:
    """Compose the privacy-loss distributions of all parts (pessimistic)."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    total = pld.identity(step)
    for rule, leaf, times in leaves(event):
        part = rule.pld(leaf, step)
        total = total.compose(part.self_compose(times) if times > 1 else part)
    return total


def _gaussian_deltas(epsilons: FloatArray, mu: float) -> FloatArray:
    """`curves.gaussian_delta` at many ε."""
    from scipy.special import log_ndtr

    upper = log_ndtr(mu / 2 - epsilons / mu)
    lower = np.minimum(epsilons + log_ndtr(-mu / 2 - epsilons / mu), upper)
    return np.asarray(np.exp(upper) * -np.expm1(lower - upper))


def _sampled_pld(deltas: FloatArray, step: float) -> Any:
    """Certified distribution from δ at 0, step, 2 step ... of a symmetric profile."""
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as pld

    below = -step * np.arange(len(deltas) - 1, 0, -1)
    mirrored = -np.expm1(below) + np.exp(below) * deltas[:0:-1]
    rounded = np.arange(1 - len(deltas), len(deltas))
    both = np.concatenate([mirrored, deltas])
    return pld.PrivacyLossDistribution(pld_pmf.create_pmf_pessimistic_connect_dots(step, rounded, both))


def widened(event: Event, steps: int) -> Event:
    """The event over ``steps`` steps of its relation; compositions keep their shape."""
    import dp_accounting

    if steps == 1:
        return event
    parts = [(rule.widened(leaf, steps), times) for rule, leaf, times in leaves(event)]
    composed = [
        dp_accounting.SelfComposedDpEvent(part, times) if times > 1 else part for part, times in parts
    ]
    return composed[0] if len(composed) == 1 else dp_accounting.ComposedDpEvent(composed)


def satisfies(event: Event, guarantee: Guarantee) -> bool:
    """Whether the event keeps the guarantee (under the guarantee's own relation)."""
    return _SATISFIES[type(guarantee)](event, guarantee)


_SATISFIES: dict[type[Guarantee], Callable[[Event, Any], bool]] = {
    Pure: lambda event, wanted: pure_epsilon(event) <= wanted.epsilon * (1 + 1e-12),
    ZCDP: lambda event, wanted: zcdp(event) <= wanted.rho * (1 + 1e-12),
    Approximate: lambda event, wanted: delta(event, wanted.epsilon) <= wanted.delta * (1 + 1e-9),
}


def calibrate(make: Callable[[float], Event], guarantee: Guarantee) -> float:
    """Smallest scale for which ``make(scale)`` keeps the guarantee.

    ``make`` turns a noise scale into the events of a whole plan; larger scales
    must lose less. The answer is rounded up (by 1e-9 for Gaussian plans, by 1e-4
    where a privacy-loss distribution is needed), so it always keeps the guarantee.

    >>> import dp_accounting
    >>> plan = lambda sigma: dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(sigma), 100)
    >>> f"{calibrate(plan, Approximate(epsilon=1, delta=1e-5, relation='add/remove')):.3f}"
    '37.306'
    """
    low, high = 1.0, 1.0
    while not satisfies(make(high), guarantee):
        high *= 2
    while satisfies(make(low), guarantee):
        low /= 2
    exact = not isinstance(guarantee, Approximate) or only_gaussian(make(high))
    while high / low > 1 + (1e-9 if exact else 1e-4):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if satisfies(make(middle), guarantee) else (middle, high)
    return high


def to_dict(event: Event) -> dict[str, Any]:
    """JSON form of an event: its dp-accounting class name and fields."""
    import attr

    def plain(value: Any) -> Any:
        if attr.has(type(value)):
            return to_dict(value)
        return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value

    return {"type": type(event).__name__} | {
        field.name: plain(getattr(event, field.name)) for field in attr.fields(type(event))
    }


def from_dict(form: dict[str, Any]) -> Event:
    """Read the JSON form back; only known event classes are made."""
    from dp_accounting import dp_event

    fields = dict(form)
    name = fields.pop("type", None)
    if name not in {*RULES, "SelfComposedDpEvent", "ComposedDpEvent"}:
        raise InputError(f"{name!r} is not an event that privada knows.")
    try:
        return getattr(dp_event, name)(**{key: _read(value) for key, value in fields.items()})
    except TypeError:
        raise InputError(f"{name} does not take the fields {', '.join(sorted(fields))}.") from None


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        return from_dict(value)
    return [_read(item) for item in value] if isinstance(value, list) else value


__all__ = [
    "Event",
    "calibrate",
    "delta",
    "epsilon",
    "from_dict",
    "gaussian_mu",
    "only_gaussian",
    "privacy_loss_distribution",
    "pure_epsilon",
    "renyi",
    "satisfies",
    "to_dict",
    "widened",
    "zcdp",
]
