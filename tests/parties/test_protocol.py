import numpy as np
import pytest

from privada import AskOwner, CellStatistics, NearestCells, Owner, Schema, run
from privada.exceptions import InputError, TamperError
from privada.parties.protocol import (
    BegunLearner,
    PlannedLearner,
    drive,
    drive_rounds,
    list_asks,
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

    return PlannedLearner(learner(), [AskOwner("north", question()) for _ in range(rounds)])


def test_a_learner_without_a_plan_has_a_first_round():
    def learner():
        yield [AskOwner("north", question()), AskOwner("south", question())]

    assert [ask.owner for ask in list_asks(learner())] == ["north", "south"]
    assert len(list_asks(in_rounds(3))) == 3


def test_a_planned_learner_is_a_generator_like_any(houses):
    def around():
        return (yield from in_rounds(2))

    assert run(around(), houses) == 2
    with pytest.raises(KeyError, match="lost"):
        in_rounds(1).throw(KeyError("lost"))
    in_rounds(1).close()


def test_a_learner_that_was_looked_at_is_driven_from_its_beginning(houses):
    begun = BegunLearner(in_rounds(2))
    assert begun.first.question == question("0")
    assert run(begun, houses) == 2
    begun = BegunLearner(in_rounds(1))
    with pytest.raises(KeyError, match="lost"):
        begun.throw(KeyError("lost"))


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
        "assert p.Foreseen is p.PlannedLearner and p.foreseen is p.list_asks\n"
        "assert p.run.__module__ == 'privada.parties.running'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(ImportError):
        from privada.parties.protocol import nothing  # noqa: F401
