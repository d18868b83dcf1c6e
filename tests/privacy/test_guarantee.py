import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privada.exceptions import InputError, RelationError
from privada.privacy import ZCDP, ApproxDP, Guarantee, PureDP, Relation, Unit, make_guarantee

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
