"""Learners run where their owners are at hand; what cannot be paid to the end is refused first."""

import numpy as np
import pytest

from privada import AskOwner, CellStatistics, NearestCells, Owner, Schema, run
from privada.exceptions import BudgetError, InputError
from privada.parties.protocol import (
    Inquiry,
)
from privada.parties.running import check_ahead, quote_all
from privada.privacy import PureDP

AR = "add/remove"


def question(salt=""):
    cells = NearestCells(centers=np.array([[0.2], [0.8]]))
    return CellStatistics(tables=(cells,), guarantee=PureDP(epsilon=0.5, relation=AR), salt=salt)


@pytest.fixture
def houses():
    schema = Schema.of_numbers(bounds=(0, 1), width=1)
    budget = PureDP(epsilon=1, relation=AR)
    return {
        name: Owner(np.full((9, 1), 0.1), schema=schema, dataset=name, budget=budget)
        for name in ("north", "south")
    }


def test_one_ask_at_a_time_and_several_at_once(houses):
    def learner():
        first = yield AskOwner("north", question())
        both = yield [AskOwner("north", question("2")), AskOwner("south", question("2"))]
        return [first.receipt.dataset] + [release.receipt.dataset for release in both]

    assert run(learner(), houses) == ["north", "north", "south"]
    assert houses["south"].ledger.spent("south").epsilon == pytest.approx(0.5)


def test_a_learner_that_asks_nobody(houses):
    def learner():
        yield AskOwner("west", question())

    with pytest.raises(InputError, match="known owners: north, south"):
        run(learner(), houses)


def in_rounds(rounds):
    """Ask north so often, and say so beforehand."""

    def learner():
        found = []
        for number in range(rounds):
            found.append((yield AskOwner("north", question(str(number)))))  # noqa: PERF401
        return len(found)

    return Inquiry(tuple(AskOwner("north", question()) for _ in range(rounds)), learner)


def test_rounds_that_cannot_all_be_paid_are_refused_before_the_first(houses):
    with pytest.raises(BudgetError, match="all questions together would take 150 % of the budget of 'north'"):
        run(in_rounds(3), houses)
    assert houses["north"].ledger.spent("north") is None
    assert run(in_rounds(2), houses) == 2
    with pytest.raises(BudgetError, match="of which 0 % is left. Nothing was charged"):
        run(in_rounds(1), houses)


def test_a_witness_sees_every_release(houses):
    seen = []
    assert run(in_rounds(2), houses, witness=seen.append) == 2
    assert [release.question for release in seen] == [question("0").digest, question("1").digest]


def test_who_was_asked_before_for_a_part_of_it_goes_on(houses):
    """The first of three is paid for, which together cost more than was ever there."""
    asks = [AskOwner("north", question(str(number))) for number in range(3)]
    with pytest.raises(BudgetError, match="Nothing was charged"):
        check_ahead(asks, houses)
    houses["north"].answer(asks[0].question)
    check_ahead(asks, houses)


def test_only_owners_at_hand_are_looked_at():
    check_ahead([AskOwner("elsewhere", question())], {})


def test_what_asks_of_one_owner_take_together(houses):
    asks = [AskOwner("north", question(str(number))) for number in range(3)]
    assert quote_all(asks[:2], houses["north"]).share == pytest.approx(1.0)
    assert not quote_all(asks, houses["north"]).affordable
    assert quote_all([], houses["north"]).share == 0
    assert houses["north"].ledger.spent("north") is None
