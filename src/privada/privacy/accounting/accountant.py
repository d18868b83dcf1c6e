"""From events to guarantees.

An event is a `dp_accounting.DpEvent`, so an outsider can recompute every
figure. Its parameters are relative to the sensitivity *under the relation of
the ledger*, so dp-accounting must be asked with its plain relation
(``ADD_OR_REMOVE_ONE``; randomised response with ``REPLACE_ONE``).

Two facts are not in an event. The first is its relation: `check_relation` refuses a secret sample under any
but replace-one. And dp-accounting has no event for a visible sample: `accounting.events` has ours.

Each kind of event has one `Rule`: its Rényi divergence, its zCDP constant, its
pure epsilon, its Gaussian μ and its privacy-loss distribution. Compositions
add up over their parts, so a repetition cannot be forgotten.

>>> import dp_accounting
>>> pair = dp_accounting.ComposedDpEvent([dp_accounting.GaussianDpEvent(2.0)] * 4)
>>> gaussian_mu(pair)
1.0
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError, RelationError
from privada.privacy.accounting import curves
from privada.privacy.accounting.rules import SIMPLE, RandomisedResponseRule, Rule
from privada.privacy.accounting.sampled import LogProfile, Measures, SecretSample, VisibleSample
from privada.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP
from privada.privacy.relation import Relation

if TYPE_CHECKING:
    from dp_accounting import DpEvent

    from privada.privacy.mechanism import Plan

PLD_STEP = 1e-4
COMPOSITIONS = ("ComposedDpEvent", "SelfComposedDpEvent")
GAUSSIAN = ("GaussianDpEvent", "NoOpDpEvent")
SECRET, VISIBLE = "SampledWithoutReplacementDpEvent", "VisiblySampledDpEvent"


def leaves(event: DpEvent, times: int = 1) -> Iterator[tuple[Rule[Any], Any, int]]:
    """Reduce an event to its single applications: rule, event of the rule's kind, how often."""
    import dp_accounting

    name = type(event).__name__
    if type(event) is dp_accounting.SelfComposedDpEvent:
        yield from leaves(event.event, times * _check.count(least=0, count=event.count))
    elif type(event) is dp_accounting.ComposedDpEvent:
        for part in event.events:
            yield from leaves(part, times)
    elif name in RULES:
        _check_numbers(event, times)
        yield RULES[name], event, times
    else:
        raise InputError(f"privada cannot account for {name}; known: {', '.join(sorted(RULES))}.")


def _check_numbers(event: DpEvent, times: int) -> None:
    """dp-accounting's events check nothing; a negative number would lower the price."""
    import attr

    numbers = [value for value in attr.astuple(event, recurse=False) if not attr.has(type(value))]
    plain = all(isinstance(value, (int, float)) and value >= 0 for value in numbers)
    if times < 0 or not plain:
        raise InputError(f"Expected the numbers of an event to be >= 0, got {event!r}, {times} times.")


def check_relation(event: DpEvent, relation: Relation) -> None:
    """Raise `RelationError` if the event relies on a secret sample under another relation than replace-one.

    A secret sample amplifies between samples that contain a record and samples that contain another one
    instead. If two data sets differ in one attribute, the other attributes reveal who was drawn; and data
    sets of different sizes are sampled at different rates (privacy.md, section 3 (c)).
    """
    if amplifies_wrongly(event, relation):
        raise RelationError(
            f"Sampling amplifies under replace-one only, not under {relation}: price the sample as one that "
            "shows (VisiblySampledDpEvent), or ask under replace-one."
        )


def amplifies_wrongly(event: DpEvent, relation: Relation) -> bool:
    """Whether the event relies on a secret sample under a relation for which sampling does not amplify."""
    return relation is not Relation.REPLACE_ONE and SECRET in _kinds(event)


def _kinds(event: DpEvent) -> set[str]:
    """Names of all events in an event."""
    parts = getattr(event, "events", [getattr(event, "event", None)])
    return {type(event).__name__}.union(*(_kinds(part) for part in parts if part is not None))


def renyi(event: DpEvent, order: float) -> float:
    """Rényi divergence of an event at one order."""
    return math.fsum(times * rule.renyi(leaf, order) for rule, leaf, times in leaves(event))


def zcdp(event: DpEvent) -> float:
    """Smallest known ρ of an event."""
    return math.fsum(times * rule.zcdp(leaf) for rule, leaf, times in leaves(event))


def pure_epsilon(event: DpEvent) -> float:
    """Pure epsilon of an event, infinite if it has none."""
    return math.fsum(times * rule.pure(leaf) for rule, leaf, times in leaves(event))


def gaussian_mu(event: DpEvent) -> float:
    """Smallest known μ for which the event is μ-Gaussian differentially private."""
    return math.sqrt(math.fsum(times * rule.mu(leaf) ** 2 for rule, leaf, times in leaves(event)))


def only_gaussian(event: DpEvent) -> bool:
    """Whether the event is made of Gaussian noise alone, which composes exactly."""
    return all(type(leaf).__name__ in GAUSSIAN for _, leaf, _ in leaves(event))


def closed_profile(event: DpEvent) -> LogProfile | None:
    """``log δ`` at an array of ε >= 0 in closed form, or None if no closed form is known.

    There is one for Gaussians, for Gaussians beside a single randomised response (a mixture over its
    answers), and for one sample of either.
    """
    parts = [part for part in leaves(event) if part[2] > 0]
    gaussian = [part for part in parts if type(part[1]).__name__ in GAUSSIAN]
    others = [part for part in parts if type(part[1]).__name__ not in GAUSSIAN]
    mu = math.sqrt(math.fsum(times * rule.mu(leaf) ** 2 for rule, leaf, times in gaussian))
    if not others:
        return lambda epsilons: _gaussian_log_deltas(epsilons, mu)
    ((rule, leaf, times),) = others[:1]
    if len(others) > 1 or times > 1:
        return None
    if isinstance(rule, RandomisedResponseRule) and mu > 0:
        outcomes = rule.outcomes(leaf)
        return lambda epsilons: _mixed_log_deltas(epsilons, mu, outcomes)
    if isinstance(rule, VisibleSample) and not mu and closed_profile(leaf.event) is not None:
        return rule.log_profile(leaf, PLD_STEP)
    return None


def _gaussian_log_deltas(epsilons: FloatArray, mu: float) -> FloatArray:
    return curves.gaussian_log_deltas(epsilons, mu) if mu else np.full_like(epsilons, -np.inf)


def _mixed_log_deltas(
    epsilons: FloatArray, mu: float, outcomes: tuple[tuple[float, float], ...]
) -> FloatArray:
    """Mean over an answer's privacy loss ℓ of the Gaussian's ``δ(ε - ℓ)``."""
    total = np.full_like(epsilons, -np.inf)
    for mass, loss in outcomes:
        if mass > 0 and loss > -math.inf:
            shifted = epsilons - loss
            found = curves.gaussian_log_deltas(np.abs(shifted), mu)
            below = np.minimum(shifted, 0.0)
            with np.errstate(divide="ignore"):  # where nothing is mirrored
                mirrored = np.log(-np.expm1(below) + np.exp(below + found))
            total = np.logaddexp(total, math.log(mass) + np.where(shifted >= 0, found, mirrored))
    return total


def delta(event: DpEvent, epsilon: float, *, step: float = PLD_STEP) -> float:
    """δ(ε) of an event: exact where it has a closed form, else by a certified privacy-loss distribution."""
    closed = closed_profile(event)
    if closed is not None:
        return math.exp(min(0.0, float(closed(np.array([epsilon]))[0])))
    return float(privacy_loss_distribution(event, step=step).get_delta_for_epsilon(epsilon))


def epsilon(event: DpEvent, delta: float, *, step: float = PLD_STEP) -> float:
    """ε(δ) of an event: exact where it has a closed form, else by a certified privacy-loss distribution."""
    closed = closed_profile(event)
    if closed is None:
        return float(privacy_loss_distribution(event, step=step).get_epsilon_for_delta(delta))
    if not math.isfinite(gaussian_mu(event)):
        return math.inf
    target = math.log(delta)
    if float(closed(np.array([0.0]))[0]) <= target:
        return 0.0
    return curves._smallest(lambda value: float(closed(np.array([value]))[0]) <= target)


def privacy_loss_distribution(event: DpEvent, *, step: float = PLD_STEP) -> Any:
    """Compose the privacy-loss distributions of all parts (pessimistic)."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    total = pld.identity(step)
    for rule, leaf, times in leaves(event):
        part = rule.pld(leaf, step)
        total = total.compose(part.self_compose(times) if times > 1 else part)
    return total


def widened(event: DpEvent, steps: int) -> DpEvent:
    """The event over ``steps`` steps of its relation; compositions keep their shape."""
    import dp_accounting

    if steps == 1:
        return event
    parts = [(rule.widened(leaf, steps), times) for rule, leaf, times in leaves(event)]
    composed = [
        dp_accounting.SelfComposedDpEvent(part, times) if times > 1 else part for part, times in parts
    ]
    return composed[0] if len(composed) == 1 else dp_accounting.ComposedDpEvent(composed)


def unsampled(event: DpEvent) -> DpEvent:
    """The event without its samples, which costs no less; itself if it has none."""
    import dp_accounting

    if not _kinds(event) & {SECRET, VISIBLE}:
        return event
    if type(event) is dp_accounting.SelfComposedDpEvent:
        return dp_accounting.SelfComposedDpEvent(unsampled(event.event), event.count)
    if type(event) is dp_accounting.ComposedDpEvent:
        return dp_accounting.ComposedDpEvent([unsampled(part) for part in event.events])
    sample: Any = event
    return unsampled(sample.event)


def satisfies(event: DpEvent, guarantee: Guarantee) -> bool:
    """Whether the event keeps the guarantee (under the guarantee's own relation)."""
    check_relation(event, guarantee.relation)
    return _SATISFIES[type(guarantee)](event, guarantee)


def _satisfies_approximate(event: DpEvent, wanted: ApproxDP) -> bool:
    """Every distribution is pessimistic, so a coarse one that is good enough spares the fine one."""
    most = wanted.delta * (1 + 1e-9)
    if closed_profile(event) is not None:
        return delta(event, wanted.epsilon) <= most
    steps = (pld_step(event, wanted.epsilon, fineness=times) for times in (1, 10))
    return any(delta(event, wanted.epsilon, step=step) <= most for step in steps)


def pld_step(event: DpEvent, epsilon: float, *, fineness: float = 1.0) -> float:
    """A step for the event's privacy-loss distribution that is small beside ε, if that is affordable.

    It is never so small beside what the event may lose that the distribution has many millions of points: a
    plan that is far from keeping ε is found out by a coarse one.

    >>> import dp_accounting
    >>> [pld_step(dp_accounting.LaplaceDpEvent(1 / e), e) for e in (1e-6, 1.0, 8.0, 100.0)]
    [1e-09, 0.001, 0.001, 0.01]
    """
    small = max(min(1e-3, epsilon * 1e-3), epsilon * 1e-4) / fineness
    mu, rho = gaussian_mu(event), zcdp(event)
    spread = min(mu**2 / 2 + 10 * mu, rho + 12 * math.sqrt(rho))
    return max(small, spread * 1e-6) if math.isfinite(spread) else small


_SATISFIES: dict[type[Guarantee], Callable[[DpEvent, Any], bool]] = {
    PureDP: lambda event, wanted: pure_epsilon(event) <= wanted.epsilon * (1 + 1e-12),
    ZCDP: lambda event, wanted: zcdp(event) <= wanted.rho * (1 + 1e-12),
    ApproxDP: _satisfies_approximate,
}


def keeps(plan: Plan, guarantee: Guarantee) -> bool:
    """Whether a plan's event, or its pure epsilon, satisfies a guarantee, up to a rounding of 1e-9.

    Gaussian plans, pure ones and zCDP are settled at once; where a privacy-loss distribution is needed, what
    it says is remembered.

    >>> from privada.privacy.mechanism import Laplace, Plan
    >>> plan = Plan(draws={"count": Laplace(sensitivity=1, scale=2.0)})
    >>> [keeps(plan, PureDP(epsilon=epsilon, relation="add/remove")) for epsilon in (0.4, 0.5)]
    [False, True]
    """
    check_relation(plan.event, guarantee.relation)
    if plan.epsilon is not None:
        pure = PureDP(epsilon=plan.epsilon / (1 + 1e-9), relation=guarantee.relation, unit=guarantee.unit)
        if pure.implies(guarantee):
            return True
    return _kept(json.dumps(to_dict(plan.event), sort_keys=True), guarantee)


@lru_cache(maxsize=1024)
def _kept(event: str, guarantee: Guarantee) -> bool:
    return satisfies(from_dict(json.loads(event)), guarantee)


def calibrate(make: Callable[[float], DpEvent], guarantee: Guarantee) -> float:
    """Smallest scale for which ``make(scale)`` keeps the guarantee.

    ``make`` turns a noise scale into the events of a whole plan; larger scales
    must lose less. The answer is rounded up (by 1e-9 for Gaussian plans, by 1e-4
    where a privacy-loss distribution is needed), so it always keeps the guarantee.

    >>> import dp_accounting
    >>> plan = lambda sigma: dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(sigma), 100)
    >>> f"{calibrate(plan, ApproxDP(epsilon=1, delta=1e-5, relation='add/remove')):.3f}"
    '37.306'
    """
    low, high = 1.0, 1.0
    while not satisfies(make(high), guarantee):
        high *= 2
    while satisfies(make(low), guarantee):
        low /= 2
    exact = not isinstance(guarantee, ApproxDP) or only_gaussian(make(high))
    while high / low > 1 + (1e-9 if exact else 1e-4):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if satisfies(make(middle), guarantee) else (middle, high)
    return high


def to_dict(event: DpEvent) -> dict[str, Any]:
    """JSON form of an event: its dp-accounting class name and fields."""
    import attr

    def plain(value: Any) -> Any:
        if attr.has(type(value)):
            return to_dict(value)
        return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value

    return {"type": type(event).__name__} | {
        field.name: plain(getattr(event, field.name)) for field in attr.fields(type(event))
    }


def from_dict(form: dict[str, Any]) -> DpEvent:
    """Read the JSON form back; only known event classes are made."""
    from dp_accounting import dp_event

    from privada.privacy.accounting import events

    fields = dict(form)
    name = fields.pop("type", None)
    if name not in {*RULES, *COMPOSITIONS}:
        raise InputError(f"{name!r} is not an event that privada knows.")
    kind = getattr(events if name == VISIBLE else dp_event, name)
    try:
        made: DpEvent = kind(**{key: _read(value) for key, value in fields.items()})
    except TypeError:
        raise InputError(f"{name} does not take the fields {', '.join(sorted(fields))}.") from None
    return made


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        return from_dict(value)
    return [_read(item) for item in value] if isinstance(value, list) else value


_MEASURES = Measures(
    renyi=renyi,
    zcdp=zcdp,
    pure=pure_epsilon,
    mu=gaussian_mu,
    closed=closed_profile,
    pld=lambda event, step: privacy_loss_distribution(event, step=step),
)
RULES: dict[str, Rule[Any]] = {**SIMPLE, SECRET: SecretSample(_MEASURES), VISIBLE: VisibleSample(_MEASURES)}

__all__ = [
    "amplifies_wrongly",
    "calibrate",
    "check_relation",
    "closed_profile",
    "delta",
    "epsilon",
    "from_dict",
    "gaussian_mu",
    "keeps",
    "only_gaussian",
    "pld_step",
    "privacy_loss_distribution",
    "pure_epsilon",
    "renyi",
    "satisfies",
    "to_dict",
    "unsampled",
    "widened",
    "zcdp",
]
