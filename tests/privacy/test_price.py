"""A price: repeated whole times, converted or refused, read back from its plain form."""

import dp_accounting
import pytest

from privada.exceptions import InputError, RelationError
from privada.privacy import ZCDP, Price, PureDP, Relation
from privada.privacy.accounting import accountant

AR = "add/remove"


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
