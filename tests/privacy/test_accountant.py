import math

import dp_accounting
import pytest
from dp_accounting import pld
from dp_accounting.dp_event import DiscreteLaplaceDpEvent

from privada.exceptions import InputError
from privada.privacy import ZCDP, ApproxDP, Gaussian, Laplace, PureDP
from privada.privacy.accounting import accountant, curves
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

    wanted = ApproxDP(epsilon=8, delta=1e-5, relation="replace-one")
    assert accountant.satisfies(plan(0.738), wanted)
    assert not accountant.satisfies(plan(0.735), wanted)


def test_calibrate_is_tight_and_never_overspends():
    def plan(sigma):
        return dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(sigma), 7)

    for wanted in (ApproxDP(epsilon=1, delta=1e-5, relation=AR), ZCDP(rho=0.3, relation=AR)):
        sigma = accountant.calibrate(plan, wanted)
        assert accountant.satisfies(plan(sigma), wanted)
        assert not accountant.satisfies(plan(sigma * (1 - 1e-6)), wanted)
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
    for guarantee, kept in (
        (ZCDP(rho=0.5, relation=AR), True),
        (ZCDP(rho=0.49, relation=AR), False),
        (ApproxDP(epsilon=1, delta=0.127, relation=AR), True),
        (ApproxDP(epsilon=1, delta=0.126, relation=AR), False),
        (PureDP(epsilon=100, relation=AR), False),
    ):
        assert accountant.keeps(plan, guarantee) is kept
    both = Plan(draws={"sums": noisy, "counts": Laplace(sensitivity=1, scale=2.0)})
    assert accountant.keeps(both, ApproxDP(epsilon=3, delta=1e-2, relation=AR))
    assert not accountant.keeps(both, ApproxDP(epsilon=1, delta=1e-2, relation=AR))


def test_what_a_distribution_said_is_remembered():
    draws = {"sums": Gaussian.calibrated(sensitivity=1, mu=0.3), "counts": Laplace(sensitivity=1, scale=4.0)}
    plan, wanted = Plan(draws=draws), ApproxDP(epsilon=2, delta=1e-4, relation=AR)
    assert accountant.keeps(plan, wanted)
    before = accountant._kept.cache_info().hits
    assert accountant.keeps(Plan(draws=draws), wanted)
    assert accountant._kept.cache_info().hits == before + 1


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 1.0])
def test_a_plan_far_from_its_guarantee_is_found_out_without_a_huge_distribution(epsilon):
    """A step that is small beside ε alone would need 1e10 points for these."""
    wanted = ApproxDP(epsilon=epsilon, delta=1e-9, relation=AR)
    draws = {"sums": Gaussian.calibrated(sensitivity=1, mu=8.0), "counts": Laplace(sensitivity=1, scale=0.1)}
    assert not accountant.keeps(Plan(draws=draws), wanted)
