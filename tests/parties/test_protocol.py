import numpy as np
import pytest

from privada import Ask, CellStatistics, Nearest, Owner, Schema, run
from privada.exceptions import InputError, TamperError
from privada.parties.protocol import drive, only_releases
from privada.privacy import Pure

AR = "add/remove"


def question(salt=""):
    cells = Nearest(centers=np.array([[0.2], [0.8]]))
    return CellStatistics(tables=(cells,), guarantee=Pure(epsilon=0.5, relation=AR), salt=salt)


@pytest.fixture
def houses():
    schema = Schema.of_numbers(bounds=(0, 1), width=1)
    budget = Pure(epsilon=1, relation=AR)
    return {
        name: Owner(np.full((9, 1), 0.1), schema=schema, dataset=name, budget=budget)
        for name in ("north", "south")
    }


def test_one_ask_at_a_time_and_several_at_once(houses):
    def learner():
        first = yield Ask("north", question())
        both = yield [Ask("north", question("2")), Ask("south", question("2"))]
        return [first.receipt.dataset] + [release.receipt.dataset for release in both]

    assert run(learner(), houses) == ["north", "north", "south"]
    assert houses["south"].ledger.spent("south").epsilon == pytest.approx(0.5)


def test_a_learner_that_asks_nobody(houses):
    def learner():
        yield Ask("west", question())

    with pytest.raises(InputError, match="known owners: north, south"):
        run(learner(), houses)


def test_anything_but_the_answer_to_the_question_is_refused(houses):
    def learner():
        return (yield Ask("north", question()))

    with pytest.raises(InputError, match="accepts Releases only"):
        drive(learner(), lambda ask: {"counts": [1, 2]})
    other = houses["north"].answer(question("other"))
    with pytest.raises(TamperError, match="answers another question"):
        drive(learner(), lambda ask: other)


def test_learner_side_functions_reject_everything_else(houses):
    only_releases(houses["north"].answer(question()))
    for wrong in (houses["north"], np.zeros(3), None):
        with pytest.raises(InputError, match="accepts Releases only"):
            only_releases(wrong)
