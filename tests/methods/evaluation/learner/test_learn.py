"""One question, one release, one evaluation."""

import pytest

from privada import PureDP
from privada.exceptions import InputError
from privada.methods.evaluation.example import ask
from privada.methods.evaluation.learner.learn import learn, read_release

PURE = PureDP(epsilon=1.0, relation="add/remove")


def test_one_question_is_asked():
    learner = learn("clinic", ask(PURE)).start()
    asked = next(learner)
    assert (asked.owner, asked.question) == ("clinic", ask(PURE))
    with pytest.raises(InputError, match="accepts Releases only"):
        learner.send(3)


def test_other_questions_are_refused():
    with pytest.raises(InputError, match="a question of evaluation"):
        read_release("counts", None)
