"""What travels to a worker: names of installed functions, plain arguments, and questions as files."""

import pickle
from functools import partial

import numpy as np
import pytest

from privada.exceptions import AnswerError, WireError
from privada.methods.cells import Bins, CellStatistics
from privada.methods.cells.owner import tabulate
from privada.parties.compute.batch import Batch
from privada.parties.compute.tasks import QuestionFile, Task
from privada.privacy import PureDP

QUESTION = CellStatistics(
    tables=(Bins(feature=0, edges=np.array([0.0])),),
    guarantee=PureDP(epsilon=1.0, relation="add/remove"),
)
BATCH = Batch(np.array([[-1.0], [2.0], [3.0]]), None)


def scale(factor, name, steps, array):
    return factor * array if name else steps


def test_a_task_is_the_function_that_it_was_made_of():
    task = pickle.loads(pickle.dumps(Task.of(partial(tabulate, QUESTION))))
    expected = tabulate(QUESTION, BATCH)
    for function in (task.function(), task.without_question().function(task.question)):
        found = function(BATCH)
        assert found.keys() == expected.keys()
        assert all(np.array_equal(found[name], value) for name, value in expected.items())


def test_a_question_travels_as_its_file_and_is_checked_on_arrival():
    task = Task.of(partial(tabulate, QUESTION))
    assert task.question == QUESTION.to_bytes()
    assert task.arguments[0].blob == task.question
    assert task.without_question().arguments[0].blob == b""
    with pytest.raises(WireError):
        task.without_question().function(task.question[:-1])


def test_plain_arguments_travel_as_they_are():
    task = Task.of(partial(scale, 2.0, "twice", 3))
    assert task.question == b""
    assert task.function()(np.arange(3)).tolist() == [0, 2, 4]
    assert not any(isinstance(each, QuestionFile) for each in task.arguments)


@pytest.mark.parametrize(
    "made",
    [
        lambda batch: batch,
        partial(lambda a, b: a, 1),
        partial(scale, factor=2.0),
        partial(scale, {"a": 1}),
        partial(scale, scale),
        Batch.where,
        BATCH.where,
        3,
    ],
)
def test_what_has_no_name_or_is_not_plain_stays_here(made):
    with pytest.raises(AnswerError):
        Task.of(made)
