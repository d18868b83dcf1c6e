"""Guarantees are ordered and converted, and their parts cost no more than the whole."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from privada.exceptions import InputError, RelationError
from privada.privacy import ZCDP, ApproxDP, Gaussian, Guarantee, PureDP, Relation, Unit, make_guarantee
from privada.privacy.accounting import curves
from privada.privacy.accounting.accountant import Price
from privada.privacy.accounting.filters import open_filter
from privada.privacy.guarantee import split_alike, split_budget, split_number, zcdp_within
from privada.privacy.mechanism import gaussian_event

AR, RO = Relation.ADD_REMOVE, Relation.REPLACE_ONE
epsilons = st.floats(0.01, 8)
deltas = st.floats(1e-12, 0.4)
guarantees = st.one_of(
    st.builds(PureDP, epsilon=epsilons, relation=st.sampled_from(list(Relation))),
    st.builds(ApproxDP, epsilon=epsilons, delta=deltas, relation=st.sampled_from(list(Relation))),
    st.builds(ZCDP, rho=st.floats(0.001, 5), relation=st.sampled_from(list(Relation))),
)


@given(guarantees)
def test_reflexive_and_survives_its_plain_form(one):
    assert one <= one
    assert not one < one
    assert Guarantee.from_dict(one.to_dict()) == one


@given(guarantees, guarantees, guarantees)
def test_transitive(a, b, c):
    # zCDP to (ε, δ) is a bound, not exact; where all three steps are exact the order must be transitive.
    if any(isinstance(g, ZCDP) for g in (a, b, c)):
        return
    if a <= b and b <= c:
        assert a.under(c.relation).delta_at(getattr(c, "epsilon", 0)) <= c.delta_at(c.epsilon) + 1e-12


def test_kinds_compare_where_something_follows():
    assert PureDP(epsilon=1, relation=AR) <= ZCDP(rho=math.tanh(0.5), relation=AR)
    assert not PureDP(epsilon=1, relation=AR) <= ZCDP(rho=0.46, relation=AR)
    assert ZCDP(rho=0.0305, relation=AR) <= ApproxDP(epsilon=1, delta=1e-5, relation=AR)
    assert not ZCDP(rho=0.0306, relation=AR) <= ApproxDP(epsilon=1, delta=1e-5, relation=AR)
    assert not ApproxDP(epsilon=1, delta=1e-9, relation=AR) <= PureDP(epsilon=9, relation=AR)
    assert not ApproxDP(epsilon=1, delta=1e-9, relation=AR) <= ZCDP(rho=9, relation=AR)


def test_the_loss_of_add_remove_to_replace_one():
    assert PureDP(epsilon=1, relation=AR).under(RO).epsilon == 2
    converted = ApproxDP(epsilon=1, delta=1e-6, relation=AR).under(RO)
    assert converted.epsilon == 2
    assert converted.delta == pytest.approx((1 + math.e) * 1e-6)
    assert ZCDP(rho=0.1, relation=AR).under(RO).rho == pytest.approx(0.4)
    with pytest.raises(RelationError):
        PureDP(epsilon=1, relation=RO).under(AR)


def test_relations_and_units_do_not_mix():
    assert not PureDP(epsilon=1, relation=RO) <= PureDP(epsilon=9, relation=AR)
    person = Unit(name="person", max_rows=3)
    assert not PureDP(epsilon=1, relation=AR) <= PureDP(epsilon=1, relation=AR, unit=person)
    more = PureDP(epsilon=1, relation=AR, unit=Unit(name="person", max_rows=5))
    assert more <= PureDP(epsilon=1, relation=AR, unit=person)


def test_the_relation_is_always_printed():
    for one in (
        PureDP(epsilon=1, relation=AR),
        ApproxDP(epsilon=1, delta=1e-5, relation=RO),
        ZCDP(rho=1, relation="attribute", unit=Unit(name="person", max_rows=2)),
    ):
        assert str(one.relation) in str(one)
        assert one.unit.name in str(one)


@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, "1", None, True])
def test_numbers_are_refused_by_name(bad):
    with pytest.raises(InputError, match="epsilon"):
        PureDP(epsilon=bad, relation=AR)


def test_there_is_no_default_epsilon():
    with pytest.raises(InputError, match="exactly one of epsilon and rho"):
        make_guarantee(relation=AR)
    with pytest.raises(InputError, match="exactly one of epsilon and rho"):
        make_guarantee(epsilon=1, rho=1, relation=AR)
    with pytest.raises(InputError, match="delta"):
        make_guarantee(rho=1, delta=1e-5, relation=AR)
    with pytest.raises(InputError, match="delta"):
        make_guarantee(epsilon=1, delta=1.0, relation=AR)


def test_frozen_and_keyword_only():
    with pytest.raises(TypeError):
        PureDP(1, AR)
    with pytest.raises(AttributeError):
        PureDP(epsilon=1, relation=AR).epsilon = 2


@pytest.mark.parametrize(
    "plain", [{}, {"kind": "pure"}, {"kind": "magic", "epsilon": 1}, {"kind": "pure", "x": 1}]
)
def test_bad_plain_forms(plain):
    with pytest.raises(InputError):
        Guarantee.from_dict(plain)


def test_group_privacy_of_delta_is_the_exact_series():
    for epsilon, delta in itertools.product((0.1, 1.0), (1e-6, 1e-3)):
        one = ApproxDP(epsilon=epsilon, delta=delta, relation=AR)
        assert one.under(RO).delta == pytest.approx(delta * (1 + math.exp(epsilon)))
    with pytest.raises(RelationError, match="no guarantee"):
        ApproxDP(epsilon=5, delta=0.3, relation=AR).under(RO)


def test_a_group_of_an_epsilon_beyond_floats_has_no_guarantee():
    with pytest.raises(RelationError, match="gives no guarantee over 2 steps"):
        ApproxDP(epsilon=1e6, delta=1e-6, relation=AR).under(RO)


# Parts of a guarantee
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
    guarantee = approximate(epsilon, delta)
    total = sum(Fraction(part.rho) for part in split_budget(guarantee, *given_shares))
    assert curves.zcdp_delta(epsilon, float(total)) <= delta


@settings(max_examples=30)
@given(epsilons, deltas, shares)
@example(1e-6, 1e-12, [0.05])
@example(50.0, 1e-9, [0.05])
def test_gaussian_parts_of_an_approximate_guarantee_imply_it(epsilon, delta, given_shares):
    guarantee = approximate(epsilon, delta)
    parts = split_budget(guarantee, *given_shares, gaussian=True)
    total = sum(Fraction(part.rho) for part in parts)
    assert total <= Fraction(guarantee.gaussian_mu() ** 2 / 2)
    drawn = [Gaussian.calibrated(sensitivity=1.0, mu=part.gaussian_mu()).mu for part in parts]
    joint = float(sum(Fraction(mu) ** 2 for mu in drawn)) ** 0.5
    assert joint <= guarantee.gaussian_mu()
    assert curves.gaussian_delta(epsilon, joint) <= delta


@settings(max_examples=30)
@given(st.floats(0.2, 50.0), st.floats(1e-9, 1e-6), shares)
@example(50.0, 1e-9, [0.05])
def test_a_ledger_pays_for_all_parts(epsilon, delta, given_shares):
    guarantee = approximate(epsilon, delta)
    keeps = open_filter(guarantee, accounting="gaussian")
    for parts in (
        split_budget(guarantee, *given_shares, gaussian=True),
        split_alike(guarantee, *given_shares),
    ):
        cost = 0
        for part in parts:
            drawn = Gaussian.calibrated(sensitivity=1.0, mu=part.gaussian_mu())
            cost += keeps.cost(Price(event=gaussian_event(drawn.mu), guarantee=part))
        assert cost <= keeps.capacity


@settings(max_examples=30)
@given(epsilons, deltas, shares)
@example(50.0, 1e-9, [0.05])
def test_parts_of_the_same_kind_compose_to_no_more(epsilon, delta, given_shares):
    guarantee = approximate(epsilon, delta)
    least = curves.gaussian_epsilon(delta, guarantee.gaussian_mu() * min(*given_shares, 0.05) ** 0.5)
    assume(least > 0)  # else it is refused, see below
    parts = split_alike(guarantee, *given_shares)
    assert {part.delta for part in parts} == {delta}
    squares = [Fraction(part.gaussian_mu()) ** 2 for part in parts]
    assert float(sum(squares)) <= guarantee.gaussian_mu() ** 2 * (1 + 1e-15)


def test_parts_keep_kind_relation_and_unit():
    pure, zcdp = PureDP(epsilon=1, relation=AR), ZCDP(rho=1, relation="replace-one")
    assert split_budget(pure, 0.25) == (pure.part(0.25), pure.part(0.75)) == split_alike(pure, 0.25)
    assert split_budget(zcdp, 0.25) == (zcdp.part(0.25), zcdp.part(0.75)) == split_alike(zcdp, 0.25)
    assert split_budget(zcdp) == (zcdp,)
    guarantee = approximate(1, 1e-6)
    assert {(type(part), part.relation) for part in split_budget(guarantee, 0.5)} == {
        (ZCDP, guarantee.relation)
    }


def test_gaussian_noise_alone_is_given_more():
    guarantee = approximate(1, 1e-6)
    assert zcdp_within(guarantee, gaussian=True).rho > 1.1 * zcdp_within(guarantee).rho
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
