"""What each kind of event costs, against dp-accounting, direct sums and mixtures."""

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    RandomizedResponseDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    rdp,
)
from dp_accounting.dp_event import DiscreteLaplaceDpEvent
from scipy.stats import binom

from privada.exceptions import InputError, RelationError
from privada.privacy import ZCDP, ApproxDP, Price
from privada.privacy.accounting import accountant, curves
from privada.privacy.accounting.events import RULES, VisiblySampledDpEvent, two_sided
from privada.privacy.accounting.filters import open_filter
from privada.privacy.mechanism import pure_event


def test_a_sample_that_shows_loses_at_the_same_epsilon():
    """γ δ(ε), and below 0 what symmetry says; attained where the other rows are far apart."""
    event = VisiblySampledDpEvent(10, 3, GaussianDpEvent(0.8))
    for epsilon in (0.0, 0.5, 2.0, 6.0):
        delta = 0.3 * curves.gaussian_delta(epsilon, 1.25)
        assert accountant.delta(event, epsilon) == pytest.approx(delta, rel=1e-12)
        certified = accountant.privacy_loss_distribution(event, step=1e-3).get_delta_for_epsilon(epsilon)
        assert delta <= certified * (1 + 1e-9)
        assert certified == pytest.approx(delta, rel=1e-3)


@pytest.mark.parametrize("order", [1.2, 3.0, 17.8])
def test_its_divergence_is_that_of_a_mixture(order):
    rate, mu = 0.2, 1.1
    event = VisiblySampledDpEvent(5, 1, GaussianDpEvent(1 / mu))
    moment = 1 - rate + rate * math.exp((order - 1) * order * mu**2 / 2)
    assert accountant.renyi(event, order) == pytest.approx(math.log(moment) / (order - 1))
    assert accountant.zcdp(event) == pytest.approx(mu**2 / 2)
    assert accountant.gaussian_mu(event) == pytest.approx(mu)
    laplace = VisiblySampledDpEvent(5, 1, LaplaceDpEvent(2.0))
    assert accountant.pure_epsilon(laplace) == 0.5


def test_a_whole_sample_is_the_mechanism():
    sampled = VisiblySampledDpEvent(7, 7, GaussianDpEvent(2.0))
    assert accountant.delta(sampled, 1.0) == accountant.delta(sampled.event, 1.0)
    assert accountant.renyi(sampled, 5.0) == pytest.approx(accountant.renyi(sampled.event, 5.0))


def test_it_reads_back_from_its_plain_form_and_cannot_be_changed():
    event = VisiblySampledDpEvent(10, 3, GaussianDpEvent(0.8))
    assert accountant.from_dict(accountant.to_dict(event)) == event
    assert event != VisiblySampledDpEvent(10, 4, GaussianDpEvent(0.8))
    with pytest.raises(AttributeError):
        event.sample_size = 1


@pytest.mark.parametrize(("size", "drawn"), [(5, 6), (5, -1), (0, 0), (5, 2.5)])
def test_a_sample_that_is_no_part_of_its_rows_is_refused(size, drawn):
    with pytest.raises(InputError):
        accountant.renyi(VisiblySampledDpEvent(size, drawn, GaussianDpEvent(1.0)), 2.0)


# Rules of single events
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
        divergence = accountant.renyi(continuous, order)
        assert accountant.renyi(fine, order) == pytest.approx(divergence, rel=1e-4)
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
    distribution = accountant.privacy_loss_distribution(event, step=1e-3)
    masses = distribution._pmf_remove.to_dense_pmf()
    assert masses._probs.sum() + masses._infinity_mass == pytest.approx(1, abs=1e-9)
    assert (masses._probs >= -1e-15).all()
    for epsilon in (0.0, 0.1, 1.0, 4.0):
        assert (
            distribution.get_delta_for_epsilon(epsilon)
            <= curves.zcdp_delta(epsilon, rho) * (1 + 1e-3) + 1e-14
        )
        assert curves.gaussian_delta(epsilon, math.sqrt(2 * rho)) <= distribution.get_delta_for_epsilon(
            epsilon
        )


@pytest.mark.parametrize("xi", [0.3, 2.0])
def test_xi_of_a_zcdp_event_is_paid_for(xi):
    """A loss of exactly ξ has divergence ξ at every order; its distribution once left ξ out."""
    event, plain = dp_accounting.ZCDpEvent(0.1, xi), dp_accounting.ZCDpEvent(0.1)
    for epsilon in (0.0, 1.0, 3.0):
        delta = accountant.delta(event, epsilon + xi, step=1e-3)
        assert delta == pytest.approx(curves.zcdp_delta(epsilon + xi, 0.1, xi), rel=1e-2, abs=1e-9)
        assert accountant.delta(event, epsilon, step=1e-3) > accountant.delta(plain, epsilon, step=1e-3)
    assert curves.zcdp_delta(xi, 0.0, xi) == 0
    assert curves.zcdp_delta(xi - 1e-9, 0.0, xi) == 1


@pytest.mark.parametrize("event", LEAVES, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("order", [1.01, 3.0, 40.0])
def test_no_measure_contradicts_another(event, order):
    """A divergence is at most ε, at most ρ times its order, and rises with the order."""
    rule = RULES[type(event).__name__]
    divergence = rule.renyi(event, order)
    assert 0 <= divergence <= rule.pure(event) * (1 + 1e-12)
    assert divergence <= order * rule.zcdp(event) * (1 + 1e-9)
    assert divergence <= rule.renyi(event, 2 * order) * (1 + 1e-12)
    assert rule.renyi(rule.widened(event, 2), order) >= divergence


@pytest.mark.parametrize("event", LEAVES, ids=lambda e: type(e).__name__)
def test_mu_is_an_upper_bound_on_delta_where_there_is_one(event):
    rule = RULES[type(event).__name__]
    if math.isfinite(rule.mu(event)):
        spread = rule.pld(event, 1e-3)
        for epsilon in (0.0, 0.2, 1.0):
            bound = curves.gaussian_delta(epsilon, rule.mu(event))
            assert spread.get_delta_for_epsilon(epsilon) <= bound * (1 + 1e-3) + 1e-9
    else:
        assert isinstance(event, dp_accounting.ZCDpEvent)


def test_no_noise_loses_without_bound_and_nothing_loses_nothing():
    assert RULES["GaussianDpEvent"].mu(dp_accounting.GaussianDpEvent(0.0)) == math.inf
    assert RULES["LaplaceDpEvent"].pure(dp_accounting.LaplaceDpEvent(0.0)) == math.inf
    nothing, event = RULES["NoOpDpEvent"], dp_accounting.NoOpDpEvent()
    assert (nothing.renyi(event, 2.0), nothing.zcdp(event), nothing.pure(event), nothing.mu(event)) == (
        0,
    ) * 4
    assert nothing.widened(event, 5) is event


def test_the_outcomes_of_randomised_response_are_a_distribution():
    rule, event = RULES["RandomizedResponseDpEvent"], dp_accounting.RandomizedResponseDpEvent(0.4, 5)
    chances, losses = zip(*rule.outcomes(event), strict=True)
    assert sum(chances) == pytest.approx(1)
    for order in (2.0, 5.0):
        moment = sum(p * math.exp((order - 1) * loss) for p, loss in zip(chances, losses, strict=True))
        assert rule.renyi(event, order) == pytest.approx(math.log(moment) / (order - 1))


def test_xi_does_not_survive_another_relation():
    with pytest.raises(InputError, match="xi > 0"):
        RULES["ZCDpEvent"].widened(dp_accounting.ZCDpEvent(0.1, 0.2), 2)


def test_a_symmetric_profile_is_continued_below_zero():
    """δ(-ε) is what the definition gives for the exchanged pair: here, by numbers, of a Gaussian."""
    epsilons = np.array([0.0, 0.5, 1.5])
    deltas = np.array([curves.gaussian_delta(level, 0.8) for level in epsilons])
    sides = two_sided(epsilons, deltas)
    x = np.linspace(-12, 12, 200_001)
    p, q = np.exp(-(x**2) / 2), np.exp(-((x - 0.8) ** 2) / 2)
    for epsilon, delta in zip([-1.5, -0.5, 0.0, 0.5, 1.5], sides, strict=True):
        direct = np.maximum(p - math.exp(epsilon) * q, 0).sum() * (x[1] - x[0]) / math.sqrt(2 * math.pi)
        assert delta == pytest.approx(direct, rel=1e-4)


# Samples
def shown(event, *, size, drawn, batches=1):
    return SelfComposedDpEvent(VisiblySampledDpEvent(size, drawn, event), batches)


def by_counting(epsilon, *, mu, size, drawn, batches):
    """δ of Gaussian batches that show who is in them: a mixture over how often a row was drawn."""
    often = np.arange(1, batches + 1)
    chances = binom.pmf(often, batches, drawn / size)
    return sum(
        chance * curves.gaussian_delta(epsilon, mu * math.sqrt(k))
        for k, chance in zip(often, chances, strict=True)
        if chance > 1e-30
    )


@pytest.mark.parametrize(
    ("mu", "size", "drawn", "batches", "epsilon", "claimed", "true"),
    [
        (1.0, 2, 1, 1, 1.0, 0.0288, 0.0632),
        (1.2175, 958, 128, 8, 4.0, 1.04e-4, 0.0179),
        (1.102, 4365, 128, 200, 3.0, 1.9e-4, 0.417),
    ],
)
def test_what_was_claimed_at_attribute_level_was_far_too_little(
    mu, size, drawn, batches, epsilon, claimed, true
):
    secret = SelfComposedDpEvent(
        SampledWithoutReplacementDpEvent(size, drawn, GaussianDpEvent(1 / mu)), batches
    )
    visible = shown(GaussianDpEvent(1 / mu), size=size, drawn=drawn, batches=batches)
    assert accountant.delta(secret, epsilon, step=1e-3) == pytest.approx(claimed, rel=0.02)
    delta = accountant.delta(visible, epsilon, step=1e-3)
    assert delta >= true
    exact = by_counting(epsilon, mu=mu, size=size, drawn=drawn, batches=batches)
    assert exact <= delta * (1 + 1e-9)
    assert delta == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize("relation", ["attribute", "add/remove"])
def test_a_secret_sample_amplifies_under_replace_one_only(relation):
    secret = SelfComposedDpEvent(SampledWithoutReplacementDpEvent(100, 5, GaussianDpEvent(1.0)), 4)
    guarantee = ApproxDP(epsilon=8, delta=1e-3, relation=relation)
    with pytest.raises(RelationError, match=f"replace-one only, not under {relation}"):
        accountant.satisfies(secret, guarantee)
    price = Price(event=secret, guarantee=guarantee)
    for accounting in ("renyi", "gaussian"):
        with pytest.raises(RelationError, match="VisiblySampledDpEvent"):
            open_filter(guarantee, accounting=accounting).cost(price)
    hidden = VisiblySampledDpEvent(100, 50, ComposedDpEvent([secret, GaussianDpEvent(9.0)]))
    with pytest.raises(RelationError):
        accountant.check_relation(hidden, guarantee.relation)


def test_a_price_computed_under_replace_one_stays_sound_at_attribute_level():
    """Two rows that differ in one attribute are two rows: the amplified price of whole rows covers them."""
    one = ApproxDP(epsilon=8, delta=1e-3, relation="replace-one")
    price = Price(event=SampledWithoutReplacementDpEvent(100, 5, GaussianDpEvent(1.0)), guarantee=one)
    converted = price.under(open_filter(one).budget.relation.ATTRIBUTE)
    assert (converted.relation, converted.origin) == ("attribute", "replace-one")
    budget = ApproxDP(epsilon=8, delta=1e-3, relation="attribute")
    assert (
        open_filter(budget).cost(price) == open_filter(one).cost(price) == open_filter(budget).cost(converted)
    )
    assert Price.from_dict(converted.to_dict()) == converted
    assert "computed_under" not in price.to_dict()


LABELLED = ComposedDpEvent([GaussianDpEvent(2.0), RandomizedResponseDpEvent(0.6, 4)])


def test_a_gaussian_beside_one_response_has_a_closed_profile():
    certified = accountant.privacy_loss_distribution(LABELLED, step=1e-4)
    for epsilon in (0.0, 0.3, 1.0, 2.5, 4.0):
        delta = accountant.delta(LABELLED, epsilon)
        assert delta <= certified.get_delta_for_epsilon(epsilon) * (1 + 1e-9)
        assert delta == pytest.approx(certified.get_delta_for_epsilon(epsilon), rel=1e-3)
    assert accountant.delta(LABELLED, accountant.epsilon(LABELLED, 1e-6)) == pytest.approx(1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 50.0])
@pytest.mark.parametrize("kind", [SampledWithoutReplacementDpEvent, VisiblySampledDpEvent])
@pytest.mark.parametrize("inner", [LABELLED, GaussianDpEvent(1.0), GaussianDpEvent(30.0)], ids=str)
def test_every_sampled_event_has_a_price(kind, inner, epsilon):
    """At high orders e^((α-1) ε) is beyond floats: this was an OverflowError, or no amplification."""
    event = kind(958, 128, inner)
    budget = ApproxDP(epsilon=epsilon, delta=1e-6, relation="replace-one")
    order = open_filter(budget).order
    divergence = accountant.renyi(event, order)
    assert 0 < divergence <= accountant.renyi(inner, order) * (1 + 1e-12)
    for level in (0.05, 0.5, 2.0):
        assert accountant.delta(event, level) <= curves.renyi_delta(level, order, divergence) * (1 + 1e-6)
    assert open_filter(budget).cost(Price(event=event, guarantee=budget)) > 0


def test_the_divergence_of_a_secret_sample_is_the_integral():
    """Against the mixture's own density: N(0, 1) beside (1-γ) N(0, 1) + γ N(μ, 1) has no smaller one."""
    rate, mu, order = 0.1, 1.0, 4.0
    x = np.linspace(-12, 14, 1_000_001)
    q = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    p = (1 - rate) * q + rate * np.exp(-((x - mu) ** 2) / 2) / math.sqrt(2 * math.pi)
    attained = math.log(np.trapezoid(p**order * q ** (1 - order), x)) / (order - 1)
    event = SampledWithoutReplacementDpEvent(10, 1, GaussianDpEvent(1.0))
    assert attained <= accountant.renyi(event, order) <= accountant.renyi(event.event, order)


@pytest.mark.parametrize("kind", [SampledWithoutReplacementDpEvent, VisiblySampledDpEvent])
@pytest.mark.parametrize(("size", "drawn"), [(10, 0), (10, 11), (10, 2.5), (10.5, 2), (-3, 1)])
def test_strange_samples_are_refused(kind, size, drawn):
    for measure in (accountant.zcdp, accountant.gaussian_mu, lambda event: accountant.renyi(event, 2.0)):
        with pytest.raises(InputError):
            measure(kind(size, drawn, GaussianDpEvent(1.0)))


def test_plain_form_round_trip():
    event = ComposedDpEvent([shown(LABELLED, size=9, drawn=2, batches=3), GaussianDpEvent(1.0)])
    form = accountant.to_dict(event)
    assert form["events"][0]["event"]["type"] == "VisiblySampledDpEvent"
    assert accountant.from_dict(form) == event
    assert accountant.unsampled(event) == ComposedDpEvent(
        [SelfComposedDpEvent(LABELLED, 3), GaussianDpEvent(1.0)]
    )
    assert isinstance(event.events[0].event, dp_accounting.DpEvent)


def test_a_sample_is_not_carried_to_another_relation():
    for kind in (SampledWithoutReplacementDpEvent, VisiblySampledDpEvent):
        with pytest.raises(InputError, match="own relation"):
            accountant.widened(kind(10, 1, GaussianDpEvent(1.0)), 2)


def test_zcdp_of_a_sample_that_shows_is_kept_by_its_price():
    guarantee = ZCDP(rho=0.5, relation="attribute")
    event = shown(GaussianDpEvent(2.0), size=40, drawn=4, batches=4)
    assert accountant.satisfies(event, guarantee)
    assert not accountant.satisfies(event, ZCDP(rho=0.499, relation="attribute"))
