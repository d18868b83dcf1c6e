from fractions import Fraction

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from privada.exceptions import InputError
from privada.privacy import ZCDP, ApproxDP, Gaussian, PureDP
from privada.privacy.accounting import curves
from privada.privacy.accounting.budget import split_alike, split_budget, split_number, zcdp_within
from privada.privacy.accounting.filters import open_filter
from privada.privacy.accounting.price import Price
from privada.privacy.mechanism import gaussian_event

AR = "add/remove"
shares = st.lists(st.floats(1e-3, 0.3), min_size=1, max_size=3)
epsilons, deltas = st.floats(1e-6, 50.0), st.floats(1e-12, 1e-3)


def approximate(epsilon, delta):
    return ApproxDP(epsilon=epsilon, delta=delta, relation=AR)


@settings(max_examples=30)
@given(st.floats(1e-12, 1e6), shares)
@example(1.0, [0.1, 0.2, 0.3])
@example(0.3, [0.1] * 3)
def test_parts_add_up_to_no_more_than_the_whole_exactly(whole, given_shares):
    parts = split_number(whole, *given_shares)
    assert len(parts) == len(given_shares) + 1
    total = sum(map(Fraction, parts))
    assert total <= Fraction(whole)
    assert total >= Fraction(whole) * (1 - Fraction(1, 10**15)), "and nothing is thrown away"
    assert all(part == share * whole for part, share in zip(parts, given_shares, strict=False))


@settings(max_examples=30)
@given(epsilons, deltas, shares)
@example(1e-6, 1e-12, [0.05])
@example(50.0, 1e-9, [0.05])
def test_zcdp_parts_of_an_approximate_guarantee_imply_it(epsilon, delta, given_shares):
    whole = approximate(epsilon, delta)
    total = sum(Fraction(part.rho) for part in split_budget(whole, *given_shares))
    assert curves.zcdp_delta(epsilon, float(total)) <= delta


@settings(max_examples=30)
@given(epsilons, deltas, shares)
@example(1e-6, 1e-12, [0.05])
@example(50.0, 1e-9, [0.05])
def test_gaussian_parts_of_an_approximate_guarantee_imply_it(epsilon, delta, given_shares):
    whole = approximate(epsilon, delta)
    parts = split_budget(whole, *given_shares, gaussian=True)
    total = sum(Fraction(part.rho) for part in parts)
    assert total <= Fraction(whole.gaussian_mu() ** 2 / 2)
    drawn = [Gaussian.calibrated(sensitivity=1.0, mu=part.gaussian_mu()).mu for part in parts]
    joint = float(sum(Fraction(mu) ** 2 for mu in drawn)) ** 0.5
    assert joint <= whole.gaussian_mu()
    assert curves.gaussian_delta(epsilon, joint) <= delta


@settings(max_examples=30)
@given(st.floats(0.2, 50.0), st.floats(1e-9, 1e-6), shares)
@example(50.0, 1e-9, [0.05])
def test_a_ledger_pays_for_all_parts(epsilon, delta, given_shares):
    whole = approximate(epsilon, delta)
    keeps = open_filter(whole, accounting="gaussian")
    for parts in (split_budget(whole, *given_shares, gaussian=True), split_alike(whole, *given_shares)):
        cost = 0
        for part in parts:
            drawn = Gaussian.calibrated(sensitivity=1.0, mu=part.gaussian_mu())
            cost += keeps.cost(Price(event=gaussian_event(drawn.mu), guarantee=part))
        assert cost <= keeps.capacity


@settings(max_examples=30)
@given(epsilons, deltas, shares)
@example(50.0, 1e-9, [0.05])
def test_parts_of_the_same_kind_compose_to_no_more(epsilon, delta, given_shares):
    whole = approximate(epsilon, delta)
    least = curves.gaussian_epsilon(delta, whole.gaussian_mu() * min(*given_shares, 0.05) ** 0.5)
    assume(least > 0)  # else it is refused, see below
    parts = split_alike(whole, *given_shares)
    assert {part.delta for part in parts} == {delta}
    squares = [Fraction(part.gaussian_mu()) ** 2 for part in parts]
    assert float(sum(squares)) <= whole.gaussian_mu() ** 2 * (1 + 1e-15)


def test_parts_keep_kind_relation_and_unit():
    pure, zcdp = PureDP(epsilon=1, relation=AR), ZCDP(rho=1, relation="replace-one")
    assert split_budget(pure, 0.25) == (pure.part(0.25), pure.part(0.75)) == split_alike(pure, 0.25)
    assert split_budget(zcdp, 0.25) == (zcdp.part(0.25), zcdp.part(0.75)) == split_alike(zcdp, 0.25)
    assert split_budget(zcdp) == (zcdp,)
    whole = approximate(1, 1e-6)
    assert {(type(part), part.relation) for part in split_budget(whole, 0.5)} == {(ZCDP, whole.relation)}


def test_gaussian_noise_alone_is_given_more():
    whole = approximate(1, 1e-6)
    assert zcdp_within(whole, gaussian=True).rho > 1.1 * zcdp_within(whole).rho
    with pytest.raises(InputError, match="it is pure"):
        zcdp_within(PureDP(epsilon=1, relation=AR))


@pytest.mark.parametrize("wrong", [(0.5, 0.5), (0.9, 0.2), (0.0,), (1.0,), (-0.1,), (float("nan"),)])
def test_shares_must_leave_something(wrong):
    with pytest.raises(InputError):
        split_budget(PureDP(epsilon=1, relation=AR), *wrong)


def test_a_part_that_no_epsilon_states_is_refused():
    with pytest.raises(InputError, match="too small to be stated"):
        split_alike(approximate(1e-3, 1e-3), 0.01)
    assert split_budget(approximate(1e-3, 1e-3), 0.01, gaussian=True)[0].rho > 0
