"""What events cost: measures of an event, the guarantees that it keeps, prices, and statements of totals.

An event is a `dp_accounting.DpEvent`, so an outsider can recompute every figure. Its parameters are relative
to the sensitivity *under the relation of the ledger*, so dp-accounting must be asked with its plain relation
(``ADD_OR_REMOVE_ONE``; randomised response with ``REPLACE_ONE``). An event does not say under which relation
it holds; `check_relation` refuses a secret sample under any but replace-one.

Each kind of event has one `privada.privacy.accounting.events.Rule`. The functions here add the rules up over
compositions, so a repetition cannot be forgotten.

>>> import dp_accounting
>>> pair = dp_accounting.ComposedDpEvent([dp_accounting.GaussianDpEvent(2.0)] * 4)
>>> gaussian_mu(pair)
1.0

**Totals of several uses.** A filter has a budget and refuses what exceeds it. An odometer (`state_total`) has
no budget and states what was spent so far. The statement must hold although each use, its price, and whether
there is another one, are chosen after seeing all earlier answers. For the uses of one unit, in their order:

===================  =====================================================================================
uses                 statement
===================  =====================================================================================
one                  its own guarantee
all pure             ε = the sum of epsilons
any other            ε at δ: the epsilons of the pure uses before the first that is not, and for the others
                     the least over `ORDERS` of what the summed Rényi divergence implies at δ / K, K the
                     number of orders. δ is that of the first use that is not pure (`STATED_DELTA` if it was
                     asked for as ρ), doubled if it is the first of all: its own statement took the other δ
===================  =====================================================================================

Relations are joined first: if one use is under replace-one, all are converted to it. The proof is in
``docs/explanation/accounting.md``, "Rows that are used again".

>>> once = PureDP(epsilon=0.5, relation="add/remove")
>>> print(state_total([Use(guarantee=once, prices=())]))
ε = 0.5 (pure), add/remove one row
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError, RelationError
from privada.privacy.accounting import curves
from privada.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP
from privada.privacy.relation import Relation

if TYPE_CHECKING:  # importing dp-accounting takes a second; whoever passes an event has done it already
    from dp_accounting import DpEvent

    from privada.privacy.accounting.events import LogProfile, Rule
    from privada.privacy.mechanism import Plan

PLD_STEP = 1e-4
COMPOSITIONS = ("ComposedDpEvent", "SelfComposedDpEvent")
GAUSSIAN = ("GaussianDpEvent", "NoOpDpEvent")
SECRET, VISIBLE = "SampledWithoutReplacementDpEvent", "VisiblySampledDpEvent"

# The orders and the δ of statements are fixed before any row is used: the proof needs it.
ORDERS = (1.5, 2.0, 3.0, 4.5, 6.5, 10.0, 15.0, 25.0, 45.0, 100.0, 400.0, 2000.0)
STATED_DELTA = 1e-6  # where no use has a δ: a sum of ρ that may stop anywhere is not ρ-zCDP
MOST_DELTA = 1 - 1e-9
LEAST_EPSILON = 1e-15


def leaves(event: DpEvent, times: int = 1) -> Iterator[tuple[Rule[Any], Any, int]]:
    """Reduce an event to its single applications: rule, event of the rule's kind, number of times."""
    import attr
    import dp_accounting

    from privada.privacy.accounting.events import RULES

    name = type(event).__name__
    if type(event) is dp_accounting.SelfComposedDpEvent:
        yield from leaves(event.event, times * _check.count(least=0, count=event.count))
    elif type(event) is dp_accounting.ComposedDpEvent:
        for part in event.events:
            yield from leaves(part, times)
    elif name in RULES:
        # dp-accounting's events check nothing, and a negative number would lower the price.
        numbers = [value for value in attr.astuple(event, recurse=False) if not attr.has(type(value))]
        if times < 0 or not all(isinstance(value, (int, float)) and value >= 0 for value in numbers):
            raise InputError(f"Expected the numbers of an event to be >= 0, got {event!r}, {times} times.")
        yield RULES[name], event, times
    else:
        raise InputError(f"privada cannot account for {name}; known: {', '.join(sorted(RULES))}.")


def check_relation(event: DpEvent, relation: Relation) -> None:
    """Raise `RelationError` if the event relies on a secret sample under a relation other than replace-one.

    The proof of amplification compares samples with a record to samples with another record instead. If two
    data sets differ in one attribute, the other attributes reveal who was drawn; and data sets of different
    sizes are sampled at different rates (privacy.md, section 3 (c)).
    """
    if amplifies_wrongly(event, relation):
        raise RelationError(
            f"Sampling amplifies under replace-one only, not under {relation}: price the sample as one that "
            "shows (VisiblySampledDpEvent), or ask under replace-one."
        )


def amplifies_wrongly(event: DpEvent, relation: Relation) -> bool:
    """Whether the event relies on a secret sample under a relation for which sampling does not amplify."""
    return relation is not Relation.REPLACE_ONE and SECRET in _list_kinds(event)


def _list_kinds(event: DpEvent) -> set[str]:
    """Names of all events in an event."""
    parts = getattr(event, "events", [getattr(event, "event", None)])
    return {type(event).__name__}.union(*(_list_kinds(part) for part in parts if part is not None))


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

    There is one for Gaussians, for Gaussians with a single randomised response (a mixture over its
    answers), and for one sample of either.
    """
    from privada.privacy.accounting.events import RandomisedResponseRule, VisibleSample

    parts = [part for part in leaves(event) if part[2] > 0]
    gaussian = [part for part in parts if type(part[1]).__name__ in GAUSSIAN]
    others = [part for part in parts if type(part[1]).__name__ not in GAUSSIAN]
    mu = math.sqrt(math.fsum(times * rule.mu(leaf) ** 2 for rule, leaf, times in gaussian))
    if not others:
        return lambda epsilons: (
            curves.gaussian_log_deltas(epsilons, mu) if mu else np.full_like(epsilons, -np.inf)
        )
    ((rule, leaf, times),) = others[:1]
    if len(others) > 1 or times > 1:
        return None
    if isinstance(rule, RandomisedResponseRule) and mu > 0:
        outcomes = rule.outcomes(leaf)
        return lambda epsilons: _mix_log_deltas(epsilons, mu, outcomes)
    if isinstance(rule, VisibleSample) and not mu and closed_profile(leaf.event) is not None:
        return rule.log_profile(leaf, PLD_STEP)
    return None


def _mix_log_deltas(epsilons: FloatArray, mu: float, outcomes: tuple[tuple[float, float], ...]) -> FloatArray:
    """Mean over an answer's privacy loss ℓ of the Gaussian's ``δ(ε - ℓ)``."""
    total = np.full_like(epsilons, -np.inf)
    for mass, loss in outcomes:
        if mass > 0 and loss > -math.inf:
            shifted = epsilons - loss
            log_deltas = curves.gaussian_log_deltas(np.abs(shifted), mu)
            # Where ε - ℓ is negative, δ follows by symmetry: δ(-ε) = 1 - e^-ε + e^-ε δ(ε).
            below = np.minimum(shifted, 0.0)
            with np.errstate(divide="ignore"):
                mirrored = np.log(-np.expm1(below) + np.exp(below + log_deltas))
            total = np.logaddexp(total, math.log(mass) + np.where(shifted >= 0, log_deltas, mirrored))
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
    return curves.find_smallest(lambda value: float(closed(np.array([value]))[0]) <= target)


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

    if not _list_kinds(event) & {SECRET, VISIBLE}:
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
    if isinstance(guarantee, PureDP):
        return pure_epsilon(event) <= guarantee.epsilon * (1 + 1e-12)
    if isinstance(guarantee, ZCDP):
        return zcdp(event) <= guarantee.rho * (1 + 1e-12)
    assert isinstance(guarantee, ApproxDP)
    limit = guarantee.delta * (1 + 1e-9)
    if closed_profile(event) is not None:
        return delta(event, guarantee.epsilon) <= limit
    # Every distribution is pessimistic, so a coarse one that is good enough spares the fine one.
    steps = (pld_step(event, guarantee.epsilon, fineness=times) for times in (1, 10))
    return any(delta(event, guarantee.epsilon, step=step) <= limit for step in steps)


def pld_step(event: DpEvent, epsilon: float, *, fineness: float = 1.0) -> float:
    """A step for the event's privacy-loss distribution that is small compared with ε, if that is affordable.

    It is never so small that the distribution of the event's loss has many millions of points: a coarse
    distribution is enough to reject a plan that is far from keeping ε.

    >>> import dp_accounting
    >>> [pld_step(dp_accounting.LaplaceDpEvent(1 / e), e) for e in (1e-6, 1.0, 8.0, 100.0)]
    [1e-09, 0.001, 0.001, 0.01]
    """
    small = max(min(1e-3, epsilon * 1e-3), epsilon * 1e-4) / fineness
    mu, rho = gaussian_mu(event), zcdp(event)
    spread = min(mu**2 / 2 + 10 * mu, rho + 12 * math.sqrt(rho))
    return max(small, spread * 1e-6) if math.isfinite(spread) else small


def keeps(plan: Plan, guarantee: Guarantee) -> bool:
    """Whether a plan's event, or its pure epsilon, satisfies a guarantee, up to a rounding of 1e-9.

    Gaussian plans, pure plans and zCDP are decided at once. Where a privacy-loss distribution is needed, its
    result is cached.

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
    return _satisfies_cached(json.dumps(to_dict(plan.event), sort_keys=True), guarantee)


@lru_cache(maxsize=1024)
def _satisfies_cached(event: str, guarantee: Guarantee) -> bool:
    return satisfies(from_dict(json.loads(event)), guarantee)


def calibrate(make: Callable[[float], DpEvent], guarantee: Guarantee) -> float:
    """Smallest scale for which ``make(scale)`` keeps the guarantee.

    ``make`` turns a noise scale into the event of a whole plan; larger scales must lose less. The result is
    rounded up (by 1e-9 for Gaussian plans, by 1e-4 where a privacy-loss distribution is needed), so it
    always keeps the guarantee.

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
        return [plain(element) for element in value] if isinstance(value, (list, tuple)) else value

    return {"type": type(event).__name__} | {
        field.name: plain(getattr(event, field.name)) for field in attr.fields(type(event))
    }


def from_dict(form: dict[str, Any]) -> DpEvent:
    """Read the JSON form back; only known event classes are made."""
    from dp_accounting import dp_event

    from privada.privacy.accounting import events

    fields = dict(form)
    name = fields.pop("type", None)
    if name not in {*events.RULES, *COMPOSITIONS}:
        raise InputError(f"{name!r} is not an event that privada knows.")

    def read(value: Any) -> Any:
        if isinstance(value, dict):
            return from_dict(value)
        return [read(element) for element in value] if isinstance(value, list) else value

    kind = getattr(events if name == VISIBLE else dp_event, name)
    try:
        return kind(**{key: read(value) for key, value in fields.items()})
    except TypeError:
        raise InputError(f"{name} does not take the fields {', '.join(sorted(fields))}.") from None


@dataclass(frozen=True, kw_only=True)
class Price:
    """What a question costs, known before any row is opened: an event, repeated ``times`` times.

    Attributes
    ----------
    event : dp_accounting.DpEvent
        One application, relative to the sensitivity under ``guarantee.relation``.
    guarantee : Guarantee
        What one application satisfies by itself; it names the relation and the unit.
    epsilon : float or None, default=None
        Pure epsilon of one application, if any. The event may be only an upper bound of it.
    times : int, default=1
        How often the event is applied.
    computed_under : Relation or None, default=None
        The relation under which the event was computed, if the price was converted from another one.
    """

    event: DpEvent
    guarantee: Guarantee
    epsilon: float | None = None
    times: int = 1
    computed_under: Relation | None = None

    def __post_init__(self) -> None:
        _check.count(times=self.times)
        if self.epsilon is not None:
            _check.positive(epsilon=self.epsilon)
        if self.computed_under is not None:
            object.__setattr__(self, "computed_under", Relation.parse(self.computed_under))

    def __mul__(self, times: int) -> Self:
        return replace(self, times=self.times * _check.count(times=times))

    @property
    def relation(self) -> Relation:
        """The neighbouring relation under which the price is stated."""
        return self.guarantee.relation

    @property
    def origin(self) -> Relation:
        """The neighbouring relation under which the event was computed."""
        return self.relation if self.computed_under is None else self.computed_under

    @property
    def pure_epsilon(self) -> float:
        """Pure epsilon of one application, infinite if there is none."""
        return pure_epsilon(self.event) if self.epsilon is None else self.epsilon

    def under(self, relation: Relation) -> Price:
        """Convert to the relation of a ledger, or raise `RelationError`."""
        steps = self.relation.steps_to(relation)
        if steps == 1 and self.relation is relation:
            return self
        return replace(
            self,
            event=widened(self.event, steps),
            guarantee=self.guarantee.under(relation),
            epsilon=None if self.epsilon is None else steps * self.epsilon,
            computed_under=self.origin,
        )

    def whole_event(self) -> DpEvent:
        """The event with its repetitions written out for dp-accounting."""
        import dp_accounting

        return self.event if self.times == 1 else dp_accounting.SelfComposedDpEvent(self.event, self.times)

    def to_dict(self) -> dict[str, Any]:
        """Plain form for ledgers and headers."""
        plain = {
            "event": to_dict(self.event),
            "guarantee": self.guarantee.to_dict(),
            "epsilon": self.epsilon,
            "times": self.times,
        }
        return plain if self.computed_under is None else plain | {"computed_under": str(self.computed_under)}

    @classmethod
    def from_dict(cls, form: dict[str, Any]) -> Self:
        """Read the plain form back."""
        try:
            return cls(
                event=from_dict(form["event"]),
                guarantee=Guarantee.from_dict(form["guarantee"]),
                epsilon=form["epsilon"],
                times=form["times"],
                computed_under=form.get("computed_under"),
            )
        except (KeyError, TypeError) as error:
            raise InputError(f"This is not the plain form of a price: {error}.") from None


@dataclass(frozen=True, kw_only=True)
class Use:
    """One use of some rows: the guarantee that it states by itself, and the prices charged for it."""

    guarantee: Guarantee
    prices: tuple[Price, ...]


def state_total(uses: Sequence[Use]) -> Guarantee:
    """The guarantee of all uses of one unit together, in the order in which they happened.

    Uses that protect different units raise a `RelationError`, because units are never converted.
    """
    if not uses:
        raise InputError("Expected at least one use.")
    relation = _weakest_relation(use.guarantee.relation for use in uses)
    if len({use.guarantee.unit for use in uses}) > 1:
        raise RelationError("Uses of rows and of persons have no common guarantee.")
    if len(uses) == 1:
        return uses[0].guarantee
    unit = uses[0].guarantee.unit
    prices = [[price.under(relation) for price in use.prices] for use in uses]
    pure = [math.fsum(price.times * price.pure_epsilon for price in part) for part in prices]
    if all(map(math.isfinite, pure)):
        return PureDP(epsilon=math.fsum(pure), relation=relation, unit=unit)
    first = next(place for place, epsilon in enumerate(pure) if not math.isfinite(epsilon))
    delta = _delta_of(uses[first].guarantee)
    epsilon = math.fsum(pure[:first]) + _least_epsilon(prices[first:], delta)
    stated_delta = min(delta if first else 2 * delta, MOST_DELTA)
    return ApproxDP(epsilon=epsilon, delta=stated_delta, relation=relation, unit=unit)


def _least_epsilon(prices: Sequence[Sequence[Price]], delta: float) -> float:
    """The least ε over all orders; a union bound over the orders gives each its part of δ."""
    epsilons = []
    for order in ORDERS:
        # A divergence is at most the pure epsilon. Sums are rounded once per use.
        divergence = math.fsum(
            math.fsum(price.times * min(renyi(price.event, order), price.pure_epsilon) for price in part)
            for part in prices
        )
        epsilons.append(curves.renyi_epsilon(delta / len(ORDERS), order, divergence))
    return max(min(epsilons), LEAST_EPSILON)


def weakest(guarantees: Sequence[Guarantee]) -> Guarantee:
    """A guarantee that follows from each of several, as strong as their numbers allow."""
    for guarantee in guarantees:
        if all(other.implies(guarantee) for other in guarantees):
            return guarantee
    relation = _weakest_relation(guarantee.relation for guarantee in guarantees)
    converted = [guarantee.under(relation) for guarantee in guarantees]
    delta = max((part.delta for part in converted if isinstance(part, ApproxDP)), default=STATED_DELTA)
    epsilon = max(_epsilon_at(part, delta) for part in converted)
    return ApproxDP(epsilon=epsilon, delta=delta, relation=relation, unit=converted[0].unit)


def add_statements(statements: Sequence[Guarantee]) -> Guarantee:
    """The guarantee that statements about one unit, each on other answers, imply together, in any order.

    Epsilons and deltas add up, also where every answer is chosen after seeing those of all others
    (accounting.md, "Rows that are used again").
    """
    if len(statements) == 1:
        return statements[0]
    relation = _weakest_relation(statement.relation for statement in statements)
    if len({statement.unit for statement in statements}) > 1:
        raise RelationError("Statements about rows and about persons have no sum.")
    converted = [statement.under(relation) for statement in statements]
    unit = converted[0].unit
    deltas = [0.0 if isinstance(part, PureDP) else _delta_of(part) for part in converted]
    epsilon = math.fsum(_epsilon_at(part, delta) for part, delta in zip(converted, deltas, strict=True))
    if not any(deltas):
        return PureDP(epsilon=epsilon, relation=relation, unit=unit)
    return ApproxDP(epsilon=epsilon, delta=min(math.fsum(deltas), MOST_DELTA), relation=relation, unit=unit)


def _epsilon_at(guarantee: Guarantee, delta: float) -> float:
    if isinstance(guarantee, (ApproxDP, PureDP)):
        return guarantee.epsilon
    return curves.zcdp_epsilon(delta, guarantee.zcdp_constant())


def _delta_of(guarantee: Guarantee) -> float:
    return guarantee.delta if isinstance(guarantee, ApproxDP) else STATED_DELTA


def _weakest_relation(relations: Iterable[Relation]) -> Relation:
    """The relation to which all others can be converted."""
    given_relations = set(relations)
    for relation in (Relation.ATTRIBUTE, Relation.REPLACE_ONE, Relation.ADD_REMOVE):
        if relation in given_relations:
            return relation
    raise InputError("Expected at least one use.")


__all__ = [
    "ORDERS",
    "STATED_DELTA",
    "Price",
    "Use",
    "add_statements",
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
    "state_total",
    "to_dict",
    "unsampled",
    "weakest",
    "widened",
    "zcdp",
]
