"""What a random sample costs: little if it stays secret, under replace-one; nearly all if it shows."""

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    RandomizedResponseDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)
from scipy.stats import binom

from privada.exceptions import InputError, RelationError
from privada.privacy import ZCDP, ApproxDP, Price
from privada.privacy.accounting import accountant, curves
from privada.privacy.accounting.events import VisiblySampledDpEvent
from privada.privacy.accounting.filters import open_filter


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
    found = accountant.delta(visible, epsilon, step=1e-3)
    assert found >= true
    exact = by_counting(epsilon, mu=mu, size=size, drawn=drawn, batches=batches)
    assert exact <= found * (1 + 1e-9)
    assert found == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize("relation", ["attribute", "add/remove"])
def test_a_secret_sample_amplifies_under_replace_one_only(relation):
    secret = SelfComposedDpEvent(SampledWithoutReplacementDpEvent(100, 5, GaussianDpEvent(1.0)), 4)
    wanted = ApproxDP(epsilon=8, delta=1e-3, relation=relation)
    with pytest.raises(RelationError, match=f"replace-one only, not under {relation}"):
        accountant.satisfies(secret, wanted)
    price = Price(event=secret, guarantee=wanted)
    for accounting in ("renyi", "gaussian"):
        with pytest.raises(RelationError, match="VisiblySampledDpEvent"):
            open_filter(wanted, accounting=accounting).cost(price)
    hidden = VisiblySampledDpEvent(100, 50, ComposedDpEvent([secret, GaussianDpEvent(9.0)]))
    with pytest.raises(RelationError):
        accountant.check_relation(hidden, wanted.relation)


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
        found = accountant.delta(LABELLED, epsilon)
        assert found <= certified.get_delta_for_epsilon(epsilon) * (1 + 1e-9)
        assert found == pytest.approx(certified.get_delta_for_epsilon(epsilon), rel=1e-3)
    assert accountant.delta(LABELLED, accountant.epsilon(LABELLED, 1e-6)) == pytest.approx(1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 50.0])
@pytest.mark.parametrize("kind", [SampledWithoutReplacementDpEvent, VisiblySampledDpEvent])
@pytest.mark.parametrize("inner", [LABELLED, GaussianDpEvent(1.0), GaussianDpEvent(30.0)], ids=str)
def test_every_sampled_event_has_a_price(kind, inner, epsilon):
    """At high orders e^((α-1) ε) is beyond floats: this was an OverflowError, or no amplification."""
    event = kind(958, 128, inner)
    budget = ApproxDP(epsilon=epsilon, delta=1e-6, relation="replace-one")
    order = open_filter(budget).order
    found = accountant.renyi(event, order)
    assert 0 < found <= accountant.renyi(inner, order) * (1 + 1e-12)
    for level in (0.05, 0.5, 2.0):
        assert accountant.delta(event, level) <= curves.renyi_delta(level, order, found) * (1 + 1e-6)
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
    wanted = ZCDP(rho=0.5, relation="attribute")
    event = shown(GaussianDpEvent(2.0), size=40, drawn=4, batches=4)
    assert accountant.satisfies(event, wanted)
    assert not accountant.satisfies(event, ZCDP(rho=0.499, relation="attribute"))
