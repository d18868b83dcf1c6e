"""The questions of an evaluation: sensitivities, prices and what is refused."""

import math

import numpy as np
import pytest

from privada import Category, Number, PureDP, Schema
from privada.exceptions import InputError
from privada.methods.evaluation import ErrorMoments, OutcomeCounts, even_edges
from privada.methods.hypotheses import Constant, Onnx, linear
from privada.privacy import ZCDP, Question, Unit
from privada.privacy.accounting import accountant

PURE = PureDP(epsilon=1.0, relation="add/remove")
TWO = linear([[1.0], [1.0]], [-1.0])
THREE = linear(np.eye(3)[:2], np.zeros(3))


def ask(**change):
    settings = {"hypothesis": TWO, "n_classes": 2, "edges": even_edges(4), "guarantee": PURE}
    return OutcomeCounts(**settings | change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hypothesis": "model"}, "Expected hypothesis"),
        ({"n_classes": 1}, "n_classes"),
        ({"edges": [0.5, 0.2]}, "increasing"),
        ({"edges": [0.5, math.nan]}, "finite"),
        ({"edges": [[0.5]]}, "edges"),
        ({"edges": np.arange(20_000.0)}, "at most 10000"),
        ({"edges": [0.2, 0.7]}, "threshold to be one of the edges"),
        ({"threshold": math.inf}, "threshold"),
        ({"link": "probit"}, "link"),
        ({"positive": 2}, "positive below 2"),
        ({"positive": 0}, "positive to be 1"),
        ({"hypothesis": Constant(code=0)}, "with scores for edges"),
        ({"hypothesis": Onnx(model=np.ones(3, dtype=np.uint8))}, "with scores for edges"),
        ({"n_classes": 5000, "hypothesis": Constant(code=0), "edges": []}, "at most 10000000 entries"),
    ],
)
def test_wrong_parameters_are_named(change, message):
    with pytest.raises(InputError, match=message):
        ask(**change)


def test_what_does_not_fit_a_schema_is_refused():
    schema = Schema.of_numbers(bounds=(0, 1), width=2, label=Category(name="y", values=("a", "b")))
    ask().fits(schema)
    with pytest.raises(InputError, match="n_classes to be 2"):
        ask(hypothesis=THREE, n_classes=3).fits(schema)
    with pytest.raises(InputError, match="of 2 scores, got one of 3"):
        ask(hypothesis=THREE).fits(schema)
    with pytest.raises(InputError, match="from 2 features"):
        ask(hypothesis=linear([[1.0]], [0.0])).fits(schema)
    with pytest.raises(InputError, match="code below 2"):
        ask(hypothesis=Constant(code=2), edges=[]).fits(schema)


@pytest.mark.parametrize(
    ("change", "shape"),
    [
        ({}, (2, 1, 4)),
        ({"edges": []}, (2, 2, 1)),
        ({"hypothesis": THREE, "n_classes": 3}, (3, 3, 4)),
        ({"hypothesis": Constant(code=0), "edges": []}, (2, 2, 1)),
    ],
)
def test_the_bin_says_what_is_predicted_of_two_classes(change, shape):
    assert ask(**change).shape == shape


def test_sensitivities_are_those_of_one_entry():
    person = Unit(name="person", max_rows=3)
    assert ask().plan.draws["table"].sensitivity == 1
    assert ask(guarantee=PureDP(epsilon=1, relation="replace-one")).plan.draws["table"].sensitivity == 2
    assert (
        ask(guarantee=PureDP(epsilon=1, relation="add/remove", unit=person)).plan.draws["table"].sensitivity
        == 3
    )
    replaced = ask(guarantee=ZCDP(rho=0.1, relation="replace-one")).plan.draws["table"]
    assert replaced.sensitivity == pytest.approx(math.sqrt(2))


def test_every_field_travels():
    question = ask(hypothesis=THREE, n_classes=3, link="softmax", threshold=0.3, positive=2, salt="again")
    again = Question.from_bytes(question.to_bytes())
    assert again == question
    assert (again.positive, again.threshold, again.link) == (2, 0.3, "softmax")
    assert np.array_equal(again.edges, question.edges)


def test_even_edges_hold_the_threshold():
    assert even_edges(3).tolist() == pytest.approx([1 / 3, 0.5, 2 / 3])
    assert even_edges(1).tolist() == [0.5]
    with pytest.raises(InputError, match="bins"):
        even_edges(0)
    with pytest.raises(InputError, match="Expected bins to be at most 10000, got 1000000000"):
        even_edges(1_000_000_000)  # eight gigabytes, if it were made first


SLOPE = linear([[2.0], [0.0]], [0.0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"largest": 0.0}, "largest"),
        ({"largest": math.inf}, "largest"),
        ({"hypothesis": Constant(code=0)}, "one score"),
        ({"hypothesis": linear([[1.0, 1.0]], [0.0, 0.0])}, "one score"),
        ({"hypothesis": None}, "one score"),
    ],
)
def test_wrong_parameters_are_named_errors(change, message):
    with pytest.raises(InputError, match=message):
        ErrorMoments(**{"hypothesis": SLOPE, "largest": 4.0, "guarantee": PURE} | change)


def test_the_label_must_be_a_number():
    question = ErrorMoments(hypothesis=SLOPE, largest=4.0, guarantee=PURE)
    question.fits(Schema.of_numbers(bounds=(0, 1), width=2, label=Number(name="y", low=0, high=2)))
    ordered = Category(name="y", values=(0, 1), ordered=True)
    for label in (None, Category(name="y", values=(0, 1)), ordered):
        with pytest.raises(InputError, match="a numeric label without missing values"):
            question.fits(Schema.of_numbers(bounds=(0, 1), width=2, label=label))
    with pytest.raises(InputError, match="from 3 features"):
        question.fits(Schema.of_numbers(bounds=(0, 1), width=3, label=Number(name="y", low=0, high=2)))


@pytest.mark.parametrize("relation", ["add/remove", "replace-one", "attribute"])
def test_parts_of_the_budget_are_all_of_it(relation):
    person = Unit(name="person", max_rows=2)
    pure = ErrorMoments(
        hypothesis=SLOPE, largest=4.0, guarantee=PureDP(epsilon=1.0, relation=relation, unit=person)
    )
    assert pure.price.epsilon == pytest.approx(1.0)
    assert set(pure.answer_shapes()) == {"errors", "squares"} | (
        {"rows"} if relation == "add/remove" else set()
    )
    gaussian = ErrorMoments(hypothesis=SLOPE, largest=4.0, guarantee=ZCDP(rho=0.1, relation=relation))
    assert accountant.zcdp(gaussian.price.event) == pytest.approx(0.1, rel=1e-3)
    assert Question.from_bytes(gaussian.to_bytes()) == gaussian
