"""The one path from exact values to a payload: every planned draw once, plain values of stated shapes."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest

from privada import CellStatistics, NearestCells, Owner, Schema
from privada.exceptions import AnswerError, RehearsalWarning
from privada.parties.answering import answer_rows
from privada.parties.rows import Rows
from privada.privacy import Laplace, PureDP, Question, Rehearsal
from privada.privacy.mechanism import Plan

AR = "add/remove"

CENTERS = np.array([[0.2], [0.8]])


def test_an_answerer_that_leaves_a_draw_out_is_refused(monkeypatch):
    schema, guarantee = Schema.of_numbers(bounds=(0, 1), width=1), PureDP(epsilon=1, relation=AR)
    house = Owner(np.linspace(0, 1, 10)[:, None], schema=schema, dataset="rows", budget=guarantee)
    monkeypatch.setattr("privada.methods.cells.owner.answer", lambda *_: {})
    with pytest.raises(AnswerError):
        house.answer(CellStatistics(tables=(NearestCells(centers=CENTERS),), guarantee=guarantee))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Toy(Question):
    kind = "toy.toy"
    answered_by = f"{__name__}:answer"
    shape = (1,)

    def planned(self):
        return Plan(draws={"x": Laplace(sensitivity=1, scale=1.0)})

    def answer_shapes(self):
        return {"x": self.shape}


def answer(question, rows, draw):
    return {"x": draw("x", np.array([3]))}


def twice(question, rows, draw):
    return {"x": draw("x", np.array([3])), "y": draw("x", np.array([3]))}


def undeclared(question, rows, draw):
    return {"x": draw("z", np.array([3]))}


def as_list(question, rows, draw):
    return {"x": draw("x", np.array([3])).tolist()}


def overflowing(question, rows, draw):
    np.array([1e308]) * 10
    np.log(np.array([0.0]))
    return answer(question, rows, draw)


GUARANTEE = PureDP(epsilon=1.0, relation=AR)
ROWS = Rows(np.zeros((2, 1)), schema=Schema.of_numbers(bounds=(0, 1), width=1))


def asked(how):
    return type("Asked", (Toy,), {"answered_by": f"{__name__}:{how.__name__}"})(guarantee=GUARANTEE)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (twice, "no .further. draw named 'x'"),
        (undeclared, "no .further. draw named 'z'"),
        (as_list, "'x' is not an array or a plain value"),
    ],
)
def test_only_what_was_planned_is_drawn_and_only_plain_values_leave(how, message, rehearsal):
    with pytest.raises(AnswerError, match=message):
        answer_rows(asked(how), ROWS, noise=rehearsal)


def test_a_payload_of_another_shape_than_was_said_is_refused(rehearsal):
    class Wider(Toy):
        shape = (2,)

    with pytest.raises(AnswerError, match="other shapes"):
        answer_rows(Wider(guarantee=GUARANTEE), ROWS, noise=rehearsal)


def test_what_leaves_cannot_be_written_to(rehearsal):
    payload = answer_rows(asked(answer), ROWS, noise=rehearsal)
    with pytest.raises(ValueError, match="read-only"):
        payload["x"][0] = 0


def test_a_number_that_overflows_warns_nobody(rehearsal):
    """Warnings are errors in this suite: an overflow would fail on some rows only."""
    assert set(answer_rows(asked(overflowing), ROWS, noise=rehearsal)) == {"x"}


def test_a_witness_cannot_change_what_is_drawn():
    def meddle(name, mechanism, exact):
        exact += 1000

    def noise():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RehearsalWarning)
            return Rehearsal(5)

    plain = answer_rows(asked(answer), ROWS, noise=noise())
    watched = answer_rows(asked(answer), ROWS, noise=noise(), witness=meddle)
    assert plain["x"].tolist() == watched["x"].tolist()
