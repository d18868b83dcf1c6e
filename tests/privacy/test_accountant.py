import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp
from dp_accounting.dp_event import DiscreteLaplaceDpEvent

from privada.exceptions import InputError
from privada.privacy import ZCDP, Approximate, Pure, accountant
from privada.privacy.mechanism import pure_event

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


@pytest.mark.parametrize("order", [1.5, 4.0, 17.8, 120.0])
def test_renyi_agrees_with_dp_accounting(order):
    for event in LEAVES:
        if isinstance(event, DiscreteLaplaceDpEvent):
            continue
        relation = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
        if isinstance(event, dp_accounting.RandomizedResponseDpEvent):
            relation = dp_accounting.NeighboringRelation.REPLACE_ONE
        peer = rdp.RdpAccountant(orders=[order], neighboring_relation=relation).compose(event)
        assert accountant.renyi(event, order) == pytest.approx(peer.rdp[0], rel=1e-6)


def test_discrete_laplace_renyi_is_its_sum():
    event = DiscreteLaplaceDpEvent(0.7, 4)
    x = np.arange(-300, 301)
    p = np.tanh(0.35) * np.exp(-0.7 * np.abs(x))
    q = np.tanh(0.35) * np.exp(-0.7 * np.abs(x - 4))
    direct = math.log(np.sum(p**3.5 * q ** (-2.5))) / 2.5
    assert accountant.renyi(event, 3.5) == pytest.approx(direct, rel=1e-9)
    coarse_limit = accountant.renyi(DiscreteLaplaceDpEvent(1e-4, 10_000), 3.5)
    assert coarse_limit == pytest.approx(accountant.renyi(dp_accounting.LaplaceDpEvent(1.0), 3.5), rel=1e-3)


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
    """PRIVACY, section 3: total (8, 1e-5) with randomised labels at ε' = 2 leaves σ = 0.737 (2R)."""
    rest = 10 / (math.exp(2) + 9)

    def plan(sigma):
        labels = dp_accounting.RandomizedResponseDpEvent(rest, 10)
        return dp_accounting.ComposedDpEvent([dp_accounting.GaussianDpEvent(sigma), labels])

    wanted = Approximate(epsilon=8, delta=1e-5, relation="replace-one")
    assert accountant.satisfies(plan(0.738), wanted)
    assert not accountant.satisfies(plan(0.735), wanted)


def test_calibrate_is_tight_and_never_overspends():
    def plan(sigma):
        return dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(sigma), 7)

    for wanted in (Approximate(epsilon=1, delta=1e-5, relation=AR), ZCDP(rho=0.3, relation=AR)):
        sigma = accountant.calibrate(plan, wanted)
        assert accountant.satisfies(plan(sigma), wanted)
        assert not accountant.satisfies(plan(sigma * (1 - 1e-6)), wanted)
    scale = accountant.calibrate(dp_accounting.LaplaceDpEvent, Pure(epsilon=0.25, relation=AR))
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


@pytest.mark.parametrize(("parameter", "shift"), [(1e-7, 10**7), (1e-6, 10**6), (1e-5, 2 * 10**5)])
def test_a_discrete_laplace_of_many_steps_loses_what_the_continuous_one_does(parameter, shift):
    """Every place between the two ends counts, also beyond the first hundred thousand."""
    fine = DiscreteLaplaceDpEvent(parameter, shift)
    continuous = dp_accounting.LaplaceDpEvent(1 / (parameter * shift))
    for order in (1.1, 2.0, 8.0, 64.0):
        wanted = accountant.renyi(continuous, order)
        assert accountant.renyi(fine, order) == pytest.approx(wanted, rel=1e-4)
    assert accountant.renyi(DiscreteLaplaceDpEvent(0.0, 3), 2.0) == 0.0


def test_a_loss_beyond_floats_is_infinite_and_no_fault():
    event = pure_event(800.0)
    for steps in (1, 2):
        assert accountant.pure_epsilon(accountant.widened(event, steps)) == math.inf
    assert accountant.pure_epsilon(accountant.widened(pure_event(400.0), 2)) == math.inf
    assert accountant.pure_epsilon(pure_event(600.0)) == pytest.approx(600.0)
