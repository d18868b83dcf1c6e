import numpy as np
import pytest

from privada import AskOwner, CellStatistics, NearestCells, Owner, Schema, run
from privada.exceptions import InputError, TamperError
from privada.parties.protocol import (
    Inquiry,
    as_round,
    drive,
    drive_rounds,
    one_round,
    only_releases,
)
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


def test_anything_but_the_answer_to_the_question_is_refused(houses):
    def learner():
        return (yield AskOwner("north", question()))

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


def in_rounds(rounds):
    """Ask north so often, and say so beforehand."""

    def learner():
        found = []
        for number in range(rounds):
            found.append((yield AskOwner("north", question(str(number)))))  # noqa: PERF401
        return len(found)

    return Inquiry(tuple(AskOwner("north", question(str(number))) for number in range(rounds)), learner)


def test_of_one_round_that_round_is_all_that_is_asked():
    @one_round
    def learner(salt):
        return (yield [AskOwner("north", question(salt)), AskOwner("south", question(salt))])

    inquiry = learner("x")
    assert [ask.owner for ask in inquiry.asks] == ["north", "south"]
    assert inquiry.asks == inquiry.first_round
    assert len(in_rounds(3).asks) == 3
    assert [ask.question for ask in in_rounds(3).first_round] == [question("0")]


def test_an_inquiry_can_be_started_again_and_asks_the_same(houses):
    inquiry = in_rounds(2)
    answers = [run(inquiry, houses) for _ in range(2)]
    assert answers == [2, 2]
    assert houses["north"].ledger.spent("north").epsilon == pytest.approx(1), "kept answers are free"


def test_what_is_asked_again_is_another_question_in_every_round():
    asked = []
    inquiry = in_rounds(2)
    again = inquiry.again("again 1")
    drive_rounds(again, lambda asks: asked.extend(asks) or ["release"] * len(asks))
    assert [ask.question for ask in asked] == [question("0 again 1"), question("1 again 1")]
    assert list(again.asks) == asked
    assert inquiry.again("") is inquiry


def test_all_of_an_inquiry_survives_what_is_made_of_it():
    """Forecast and optional parties were lost by wrappers once."""

    def learner():
        first = yield [AskOwner("north", question()), AskOwner("south", question())]
        return first

    inquiry = Inquiry(as_round([AskOwner("north", question())]), learner, frozenset({"south"}), "a forecast")
    final = inquiry.again("again 2").then(len).again("again 3")
    assert (final.optional_parties, final.forecast) == (frozenset({"south"}), "a forecast")
    assert final.first_round[1].question == question("again 2 again 3")
    assert drive_rounds(final, lambda asks: ["release"] * len(asks)) == 2


def test_rounds_are_driven_by_one_loop():
    def learner():
        one = yield AskOwner("north", question())
        several = yield [AskOwner("north", question("2")), AskOwner("south", question("2"))]
        none = yield []
        return one, several, none

    asked = []
    found = drive_rounds(learner(), lambda asks: asked.append(len(asks)) or [ask.owner for ask in asks])
    assert found == ("north", ["north", "south"], [])
    assert asked == [1, 2, 0]


def test_the_protocol_knows_no_owner_and_old_names_are_found():
    import subprocess
    import sys

    code = (
        "import sys, privada.parties.protocol as p\n"
        "wall = ('owner', 'owner_file', 'rows', 'private', 'answering', 'running')\n"
        "assert not {f'privada.parties.{name}' for name in wall} & set(sys.modules)\n"
        "assert not [name for name in sys.modules if name.startswith('privada.privacy.ledger')]\n"
        "import warnings; warnings.simplefilter('ignore')\n"
        "assert p.Foreseen is p.PlannedLearner\n"
        "assert p.run.__module__ == 'privada.parties.running'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(ImportError):
        from privada.parties.protocol import nothing  # noqa: F401
