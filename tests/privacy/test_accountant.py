"""Events compose, plans keep guarantees, prices convert, and statements of totals hold whenever one stops."""

import itertools
import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld
from dp_accounting.dp_event import DiscreteLaplaceDpEvent
from scipy.stats import norm

from privada.exceptions import InputError, RelationError
from privada.privacy import ZCDP, ApproxDP, Gaussian, Laplace, Price, PureDP, Relation, Unit
from privada.privacy.accounting import accountant, curves
from privada.privacy.accounting.accountant import STATED_DELTA, Use, add_statements, state_total, weakest
from privada.privacy.mechanism import Plan, pure_event

AR = "add/remove"
LEAVES = [
    dp_accounting.GaussianDpEvent(2.0),
    dp_accounting.LaplaceDpEvent(3.0),
    DiscreteLaplaceDpEvent(0.5, 3),
    dp_accounting.RandomizedResponseDpEvent(0.4, 5),
    dp_accounting.ZCDpEvent(0.05),
    pure_event(1.0),
]


@pytest.mark.parametrize("event", LEAVES, ids=lambda e: type(e).__name__)
def test_a_repetition_is_never_forgotten(event):
    """The bug that under-counts a repeated event (20 repetitions at ε = 1 reported as 1.006)."""
    repeated = dp_accounting.SelfComposedDpEvent(event, 20)
    written_out = dp_accounting.ComposedDpEvent([event] * 20)
    for measure in (accountant.zcdp, accountant.pure_epsilon, lambda e: accountant.renyi(e, 7.5)):
        assert measure(repeated) == pytest.approx(20 * measure(event))
        assert measure(written_out) == pytest.approx(20 * measure(event))
    assert accountant.delta(repeated, 1.0, step=1e-3) == pytest.approx(
        accountant.delta(written_out, 1.0, step=1e-3)
    )


def test_twenty_exponential_mechanisms_cost_more_than_one():
    """ε-DP twenty times over: 13.3 by the pure event's loss distribution, nowhere near 1.006."""
    epsilon = accountant.epsilon(dp_accounting.SelfComposedDpEvent(pure_event(1.0), 20), 1e-6, step=1e-3)
    assert 10 < epsilon <= 20


def test_gaussians_compose_exactly():
    events = dp_accounting.ComposedDpEvent(
        [
            dp_accounting.GaussianDpEvent(5.0),
            dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(8.0), 9),
        ]
    )
    mu = math.sqrt(1 / 25 + 9 / 64)
    assert accountant.gaussian_mu(events) == pytest.approx(mu)
    certified = pld.PLDAccountant().compose(events)
    assert accountant.epsilon(events, 1e-6) == pytest.approx(certified.get_epsilon(1e-6), rel=1e-3)


def test_mixtures_by_privacy_loss_distribution():
    """privacy.md, section 3: total (8, 1e-5) with randomised labels at ε' = 2 leaves σ = 0.737 (2R)."""
    rest = 10 / (math.exp(2) + 9)

    def plan(sigma):
        labels = dp_accounting.RandomizedResponseDpEvent(rest, 10)
        return dp_accounting.ComposedDpEvent([dp_accounting.GaussianDpEvent(sigma), labels])

    guarantee = ApproxDP(epsilon=8, delta=1e-5, relation="replace-one")
    assert accountant.satisfies(plan(0.738), guarantee)
    assert not accountant.satisfies(plan(0.735), guarantee)


def test_calibrate_is_tight_and_never_overspends():
    def plan(sigma):
        return dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(sigma), 7)

    for guarantee in (ApproxDP(epsilon=1, delta=1e-5, relation=AR), ZCDP(rho=0.3, relation=AR)):
        sigma = accountant.calibrate(plan, guarantee)
        assert accountant.satisfies(plan(sigma), guarantee)
        assert not accountant.satisfies(plan(sigma * (1 - 1e-6)), guarantee)
    scale = accountant.calibrate(dp_accounting.LaplaceDpEvent, PureDP(epsilon=0.25, relation=AR))
    assert scale == pytest.approx(4, rel=1e-8)


def test_laplace_in_many_small_steps_beats_adding_epsilons():
    """66 Laplace draws of 0.1 at 1e-6: 3.68 by PLD, 6.6 by adding."""
    event = dp_accounting.SelfComposedDpEvent(dp_accounting.LaplaceDpEvent(10.0), 66)
    assert accountant.epsilon(event, 1e-6, step=1e-3) == pytest.approx(3.68, abs=0.02)


def test_widening_is_group_privacy():
    for event in LEAVES:
        if type(event).__name__ == "ZCDpEvent":
            assert accountant.zcdp(accountant.widened(event, 2)) == pytest.approx(4 * accountant.zcdp(event))
        elif type(event).__name__ == "GaussianDpEvent":
            assert accountant.gaussian_mu(accountant.widened(event, 2)) == pytest.approx(2 / 2.0)
        else:
            twice = accountant.pure_epsilon(accountant.widened(event, 2))
            assert twice == pytest.approx(2 * accountant.pure_epsilon(event))
    nested = dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(2.0), 3)
    assert accountant.widened(nested, 2) == dp_accounting.SelfComposedDpEvent(
        dp_accounting.GaussianDpEvent(1.0), 3
    )


@pytest.mark.parametrize("event", LEAVES, ids=lambda e: type(e).__name__)
def test_plain_form_round_trip(event):
    nested = dp_accounting.ComposedDpEvent([event, dp_accounting.SelfComposedDpEvent(event, 3)])
    assert accountant.from_dict(accountant.to_dict(nested)) == nested


@pytest.mark.parametrize(
    "form", [{}, {"type": "NonPrivateDpEvent"}, {"type": "os.system"}, {"type": "GaussianDpEvent", "x": 1}]
)
def test_unknown_events_are_refused(form):
    with pytest.raises(InputError):
        accountant.from_dict(form)


def test_events_without_a_rule_are_refused():
    with pytest.raises(InputError, match="cannot account for NonPrivateDpEvent"):
        accountant.renyi(dp_accounting.NonPrivateDpEvent(), 2.0)


def test_a_loss_beyond_floats_is_infinite_and_no_fault():
    event = pure_event(800.0)
    for steps in (1, 2):
        assert accountant.pure_epsilon(accountant.widened(event, steps)) == math.inf
    assert accountant.pure_epsilon(accountant.widened(pure_event(400.0), 2)) == math.inf
    assert accountant.pure_epsilon(pure_event(600.0)) == pytest.approx(600.0)


@pytest.mark.parametrize("count", [0.5, 1.5, -1, True, None, "2", math.inf])
def test_repetitions_are_whole_numbers(count):
    """Half a repetition halved a cost."""
    event = dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(1.0), count)
    for measure in (accountant.zcdp, accountant.gaussian_mu, accountant.pure_epsilon):
        with pytest.raises(InputError, match="count"):
            measure(event)


def test_zcdp_composed_with_itself_says_something():
    twenty = dp_accounting.SelfComposedDpEvent(dp_accounting.ZCDpEvent(0.05), 20)
    exact = curves.gaussian_delta(8.0, math.sqrt(2.0))
    assert exact <= accountant.delta(twenty, 8.0, step=1e-3) < 1e-3


def test_a_plan_keeps_its_guarantee_or_not():
    noisy = Gaussian.calibrated(sensitivity=1, mu=1.0)
    plan = Plan(draws={"sums": noisy})
    for guarantee, is_kept in (
        (ZCDP(rho=0.5, relation=AR), True),
        (ZCDP(rho=0.49, relation=AR), False),
        (ApproxDP(epsilon=1, delta=0.127, relation=AR), True),
        (ApproxDP(epsilon=1, delta=0.126, relation=AR), False),
        (PureDP(epsilon=100, relation=AR), False),
    ):
        assert accountant.keeps(plan, guarantee) is is_kept
    both = Plan(draws={"sums": noisy, "counts": Laplace(sensitivity=1, scale=2.0)})
    assert accountant.keeps(both, ApproxDP(epsilon=3, delta=1e-2, relation=AR))
    assert not accountant.keeps(both, ApproxDP(epsilon=1, delta=1e-2, relation=AR))


def test_what_a_distribution_said_is_remembered():
    draws = {"sums": Gaussian.calibrated(sensitivity=1, mu=0.3), "counts": Laplace(sensitivity=1, scale=4.0)}
    plan, guarantee = Plan(draws=draws), ApproxDP(epsilon=2, delta=1e-4, relation=AR)
    assert accountant.keeps(plan, guarantee)
    before = accountant._satisfies_cached.cache_info().hits
    assert accountant.keeps(Plan(draws=draws), guarantee)
    assert accountant._satisfies_cached.cache_info().hits == before + 1


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 1.0])
def test_a_plan_far_from_its_guarantee_is_found_out_without_a_huge_distribution(epsilon):
    """A step that is small beside ε alone would need 1e10 points for these."""
    guarantee = ApproxDP(epsilon=epsilon, delta=1e-9, relation=AR)
    draws = {"sums": Gaussian.calibrated(sensitivity=1, mu=8.0), "counts": Laplace(sensitivity=1, scale=0.1)}
    assert not accountant.keeps(Plan(draws=draws), guarantee)


# Prices
@pytest.mark.parametrize("times", [0.5, 0, -2, True])
def test_a_price_is_repeated_whole_times(times):
    guarantee = ZCDP(rho=0.5, relation=AR)
    one = Price(event=dp_accounting.GaussianDpEvent(1.0), guarantee=guarantee)
    with pytest.raises(InputError, match="times"):
        one * times
    with pytest.raises(InputError, match="times"):
        Price.from_dict(one.to_dict() | {"times": times})


def made(**more):
    fields = {"event": dp_accounting.LaplaceDpEvent(2.0), "guarantee": PureDP(epsilon=0.5, relation=AR)}
    return Price(**(fields | {"epsilon": 0.5} | more))


def test_repetitions_multiply_and_are_written_out():
    thrice = made() * 3 * 2
    assert thrice.times == 6
    assert thrice.whole_event() == dp_accounting.SelfComposedDpEvent(made().event, 6)
    assert made().whole_event() == made().event


def test_another_relation_costs_its_steps_and_remembers_where_it_came_from():
    price = made(times=2)
    assert price.under(Relation.ADD_REMOVE) is price
    wide = price.under(Relation.REPLACE_ONE)
    assert (wide.epsilon, wide.guarantee.epsilon, wide.times) == (1.0, 1.0, 2)
    assert accountant.pure_epsilon(wide.event) == 1.0
    assert (wide.relation, wide.origin) == (Relation.REPLACE_ONE, Relation.ADD_REMOVE)
    with pytest.raises(RelationError):
        wide.under(Relation.ADD_REMOVE)


@pytest.mark.parametrize("price", [made(), made(times=3, epsilon=None), made().under(Relation.REPLACE_ONE)])
def test_a_price_reads_back(price):
    assert Price.from_dict(price.to_dict()) == price


def test_what_is_no_price_is_refused():
    for wrong in ({}, {"event": None}, made().to_dict() | {"guarantee": {}}):
        with pytest.raises(InputError):
            Price.from_dict(wrong)
    with pytest.raises(InputError, match="epsilon"):
        made(epsilon=0.0)


# Totals of several uses
ADD, REPLACE = "add/remove", "replace-one"


def pure(epsilon, relation=ADD, **more):
    guarantee = PureDP(epsilon=epsilon, relation=relation, **more)
    return Use(
        guarantee=guarantee,
        prices=(
            Price(event=dp_accounting.LaplaceDpEvent(1 / epsilon), guarantee=guarantee, epsilon=epsilon),
        ),
    )


def gaussian(epsilon, delta=1e-5, relation=ADD):
    guarantee = ApproxDP(epsilon=epsilon, delta=delta, relation=relation)
    sigma = curves.gaussian_sigma(epsilon=epsilon, delta=delta)
    return Use(
        guarantee=guarantee, prices=(Price(event=dp_accounting.GaussianDpEvent(sigma), guarantee=guarantee),)
    )


def concentrated(rho, relation=ADD):
    guarantee = ZCDP(rho=rho, relation=relation)
    event = dp_accounting.GaussianDpEvent(1 / math.sqrt(2 * rho))
    return Use(guarantee=guarantee, prices=(Price(event=event, guarantee=guarantee),))


def test_one_use_is_its_own_guarantee():
    for use in (pure(0.3), gaussian(1.0), concentrated(0.1)):
        assert state_total([use]) == use.guarantee


def test_epsilons_add_up():
    assert state_total([pure(0.25), pure(0.5), pure(0.25)]) == PureDP(epsilon=1, relation=ADD)


def test_gaussians_cost_less_than_their_epsilons_and_no_less_than_their_composition():
    for count in (2, 5, 20, 100):
        total = state_total([gaussian(1.0)] * count)
        mu = curves.gaussian_mu(epsilon=1, delta=1e-5) * math.sqrt(count)
        assert curves.gaussian_epsilon(total.delta, mu) < total.epsilon < count
        assert total.delta == pytest.approx(2e-5)


def test_the_statement_holds_for_somebody_who_stops_when_it_looks_good():
    """E[(1 - exp(ε(T) - L))₊] ≤ δ for the best stopping rule against Gaussian answers, on a grid."""
    delta, most = 1e-3, 12
    use = gaussian(1.0, delta)
    mu = curves.gaussian_mu(epsilon=1.0, delta=delta)
    stated = [state_total([use] * count).epsilon for count in range(1, most + 1)]
    losses = np.linspace(-25, 25, 4001)
    gain = np.maximum(0.0, 1 - np.exp(stated[-1] - losses))
    kernel = norm.pdf(losses[None, :] - losses[:, None], loc=mu**2 / 2, scale=mu) * (losses[1] - losses[0])
    for epsilon in reversed(stated[:-1]):
        gain = np.maximum(kernel @ gain, np.maximum(0.0, 1 - np.exp(epsilon - losses)))
    first = float(np.interp(0.0, losses, kernel @ gain))
    assert delta * 0.5 < first <= 2 * delta  # the first fit alone takes δ exactly


def test_rho_is_stated_at_a_delta_because_its_sum_is_no_rho():
    total = state_total([concentrated(0.1), concentrated(0.1)])
    assert total.delta == pytest.approx(2 * STATED_DELTA)
    assert total.epsilon > curves.zcdp_epsilon(2 * STATED_DELTA, 0.2)


def test_pure_uses_before_the_first_other_one_add_to_it():
    total, alone = state_total([pure(0.5), gaussian(1.0)]), state_total([gaussian(1.0)] * 2)
    assert total.delta == pytest.approx(1e-5)
    assert 0.5 + 1.0 < total.epsilon < 0.5 + alone.epsilon
    assert state_total([gaussian(1.0), pure(0.5)]).epsilon < 1.5 + 0.5


def test_order_of_later_uses_does_not_matter_and_more_uses_never_cost_less():
    uses = [gaussian(1.0), pure(0.2), concentrated(0.05), pure(0.7)]
    epsilons = {round(state_total([uses[0], *rest]).epsilon, 9) for rest in itertools.permutations(uses[1:])}
    assert len(epsilons) == 1
    totals = [state_total(uses[: count + 1]).epsilon for count in range(1, 4)]
    assert totals == sorted(totals)


def test_relations_are_joined_and_units_are_not():
    mixed = state_total([pure(0.5), pure(0.5, REPLACE)])
    assert mixed == PureDP(epsilon=1.5, relation=REPLACE)
    with pytest.raises(RelationError, match="no common guarantee"):
        state_total([pure(0.5), pure(0.5, unit=Unit(name="person", max_rows=2))])
    with pytest.raises(InputError, match="at least one use"):
        state_total([])


def test_the_weakest_follows_from_all():
    some = [
        PureDP(epsilon=1, relation=ADD),
        ApproxDP(epsilon=0.5, delta=1e-6, relation=ADD),
        ZCDP(rho=0.2, relation=REPLACE),
    ]
    for guarantees in itertools.permutations(some):
        common = weakest(guarantees)
        assert all(guarantee.implies(common) for guarantee in guarantees)
    assert weakest(some[:1] * 2) == some[0]


def test_statements_of_other_answers_add_up():
    pure = PureDP(epsilon=0.5, relation="add/remove")
    loose = ApproxDP(epsilon=1.0, delta=1e-6, relation="add/remove")
    rho = ZCDP(rho=0.1, relation="add/remove")
    assert add_statements([rho]) is rho
    assert add_statements([pure, pure]) == PureDP(epsilon=1.0, relation="add/remove")
    both = add_statements([pure, loose, loose])
    assert (both.epsilon, both.delta) == (2.5, 2e-6)
    mixed = add_statements([loose, rho])
    assert mixed.epsilon == pytest.approx(1 + curves.zcdp_epsilon(STATED_DELTA, 0.1))
    assert mixed.delta == 1e-6 + STATED_DELTA
    replaced = add_statements([pure, PureDP(epsilon=0.25, relation="replace-one")])
    assert replaced == PureDP(epsilon=1.25, relation="replace-one")
    person = PureDP(epsilon=0.5, relation="add/remove", unit=Unit(name="person", max_rows=2))
    with pytest.raises(RelationError, match="no sum"):
        add_statements([pure, person])


@pytest.mark.parametrize(("a", "b"), [(a, b) for a in (-2.0, -0.1, 0.0, 0.3) for b in (-1.0, 0.0, 2.0)])
def test_the_inequality_that_their_proof_uses(a, b):
    excess = [max(0.0, 1 - math.exp(loss)) for loss in (a + b, a, b)]
    assert excess[0] <= excess[1] + excess[2] + 1e-15
