"""What is known of each kind of event by itself."""

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import rdp
from dp_accounting.dp_event import DiscreteLaplaceDpEvent

from privada.exceptions import InputError
from privada.privacy.accounting import accountant, curves
from privada.privacy.accounting.rules import SIMPLE, two_sided
from privada.privacy.mechanism import pure_event

LEAVES = [
    dp_accounting.GaussianDpEvent(2.0),
    dp_accounting.LaplaceDpEvent(3.0),
    DiscreteLaplaceDpEvent(0.5, 3),
    dp_accounting.RandomizedResponseDpEvent(0.4, 5),
    dp_accounting.ZCDpEvent(0.05),
    pure_event(1.0),
]


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


@pytest.mark.parametrize(("parameter", "shift"), [(1e-7, 10**7), (1e-6, 10**6), (1e-5, 2 * 10**5)])
def test_a_discrete_laplace_of_many_steps_loses_what_the_continuous_one_does(parameter, shift):
    """Every place between the two ends counts, also beyond the first hundred thousand."""
    fine = DiscreteLaplaceDpEvent(parameter, shift)
    continuous = dp_accounting.LaplaceDpEvent(1 / (parameter * shift))
    for order in (1.1, 2.0, 8.0, 64.0):
        wanted = accountant.renyi(continuous, order)
        assert accountant.renyi(fine, order) == pytest.approx(wanted, rel=1e-4)
    assert accountant.renyi(DiscreteLaplaceDpEvent(0.0, 3), 2.0) == 0.0


@pytest.mark.parametrize("parameter", [1.01, 1.5, 2.0, -0.1, math.nan])
def test_randomised_response_that_mostly_lies_has_no_negative_epsilon(parameter):
    """Above 1 the truth is the rarest answer: its log-ratio is below 0 and would pay for other questions."""
    event = dp_accounting.RandomizedResponseDpEvent(parameter, 3)
    for measure in (accountant.pure_epsilon, accountant.zcdp, lambda e: accountant.renyi(e, 2.0)):
        with pytest.raises(InputError):
            measure(event)
    with pytest.raises(InputError):
        accountant.pure_epsilon(dp_accounting.RandomizedResponseDpEvent(0.5, 1))


@pytest.mark.parametrize("shift", [0.5, 1.5, -1])
def test_a_discrete_laplace_moves_whole_steps(shift):
    with pytest.raises(InputError):
        accountant.renyi(DiscreteLaplaceDpEvent(0.5, shift), 2.0)


@pytest.mark.parametrize("rho", [1e-3, 0.05, 0.5, 3.0])
def test_the_distribution_of_zcdp_has_mass_one_and_keeps_its_bound(rho):
    """The bound on δ is steeper at ε = 0 than a profile can be: connected as it was, masses were 1.21."""
    event = dp_accounting.ZCDpEvent(rho)
    found = accountant.privacy_loss_distribution(event, step=1e-3)
    masses = found._pmf_remove.to_dense_pmf()
    assert masses._probs.sum() + masses._infinity_mass == pytest.approx(1, abs=1e-9)
    assert (masses._probs >= -1e-15).all()
    for epsilon in (0.0, 0.1, 1.0, 4.0):
        assert found.get_delta_for_epsilon(epsilon) <= curves.zcdp_delta(epsilon, rho) * (1 + 1e-3) + 1e-14
        assert curves.gaussian_delta(epsilon, math.sqrt(2 * rho)) <= found.get_delta_for_epsilon(epsilon)


@pytest.mark.parametrize("xi", [0.3, 2.0])
def test_xi_of_a_zcdp_event_is_paid_for(xi):
    """A loss of exactly ξ has divergence ξ at every order; its distribution once left ξ out."""
    event, plain = dp_accounting.ZCDpEvent(0.1, xi), dp_accounting.ZCDpEvent(0.1)
    for epsilon in (0.0, 1.0, 3.0):
        found = accountant.delta(event, epsilon + xi, step=1e-3)
        assert found == pytest.approx(curves.zcdp_delta(epsilon + xi, 0.1, xi), rel=1e-2, abs=1e-9)
        assert accountant.delta(event, epsilon, step=1e-3) > accountant.delta(plain, epsilon, step=1e-3)
    assert curves.zcdp_delta(xi, 0.0, xi) == 0
    assert curves.zcdp_delta(xi - 1e-9, 0.0, xi) == 1


@pytest.mark.parametrize("event", LEAVES, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("order", [1.01, 3.0, 40.0])
def test_no_measure_contradicts_another(event, order):
    """A divergence is at most ε, at most ρ times its order, and rises with the order."""
    rule = SIMPLE[type(event).__name__]
    divergence = rule.renyi(event, order)
    assert 0 <= divergence <= rule.pure(event) * (1 + 1e-12)
    assert divergence <= order * rule.zcdp(event) * (1 + 1e-9)
    assert divergence <= rule.renyi(event, 2 * order) * (1 + 1e-12)
    assert rule.renyi(rule.widened(event, 2), order) >= divergence


@pytest.mark.parametrize("event", LEAVES, ids=lambda e: type(e).__name__)
def test_mu_is_an_upper_bound_on_delta_where_there_is_one(event):
    rule = SIMPLE[type(event).__name__]
    if math.isfinite(rule.mu(event)):
        spread = rule.pld(event, 1e-3)
        for epsilon in (0.0, 0.2, 1.0):
            wanted = curves.gaussian_delta(epsilon, rule.mu(event))
            assert spread.get_delta_for_epsilon(epsilon) <= wanted * (1 + 1e-3) + 1e-9
    else:
        assert isinstance(event, dp_accounting.ZCDpEvent)


def test_no_noise_loses_without_bound_and_nothing_loses_nothing():
    assert SIMPLE["GaussianDpEvent"].mu(dp_accounting.GaussianDpEvent(0.0)) == math.inf
    assert SIMPLE["LaplaceDpEvent"].pure(dp_accounting.LaplaceDpEvent(0.0)) == math.inf
    nothing, event = SIMPLE["NoOpDpEvent"], dp_accounting.NoOpDpEvent()
    assert (nothing.renyi(event, 2.0), nothing.zcdp(event), nothing.pure(event), nothing.mu(event)) == (
        0,
    ) * 4
    assert nothing.widened(event, 5) is event


def test_the_outcomes_of_randomised_response_are_a_distribution():
    rule, event = SIMPLE["RandomizedResponseDpEvent"], dp_accounting.RandomizedResponseDpEvent(0.4, 5)
    chances, losses = zip(*rule.outcomes(event), strict=True)
    assert sum(chances) == pytest.approx(1)
    for order in (2.0, 5.0):
        moment = sum(p * math.exp((order - 1) * loss) for p, loss in zip(chances, losses, strict=True))
        assert rule.renyi(event, order) == pytest.approx(math.log(moment) / (order - 1))


def test_xi_does_not_survive_another_relation():
    with pytest.raises(InputError, match="xi > 0"):
        SIMPLE["ZCDpEvent"].widened(dp_accounting.ZCDpEvent(0.1, 0.2), 2)


def test_a_symmetric_profile_is_continued_below_zero():
    """δ(-ε) is what the definition gives for the exchanged pair: here, by numbers, of a Gaussian."""
    epsilons = np.array([0.0, 0.5, 1.5])
    deltas = np.array([curves.gaussian_delta(each, 0.8) for each in epsilons])
    sides = two_sided(epsilons, deltas)
    x = np.linspace(-12, 12, 200_001)
    p, q = np.exp(-(x**2) / 2), np.exp(-((x - 0.8) ** 2) / 2)
    for epsilon, delta in zip([-1.5, -0.5, 0.0, 0.5, 1.5], sides, strict=True):
        direct = np.maximum(p - math.exp(epsilon) * q, 0).sum() * (x[1] - x[0]) / math.sqrt(2 * math.pi)
        assert delta == pytest.approx(direct, rel=1e-4)
