"""What can be asked of a regressor's errors."""

import math

import pytest

from privada import Category, Number, PureDP, Schema
from privada.exceptions import InputError
from privada.methods.evaluation import ErrorMoments
from privada.methods.hypotheses import Constant, linear
from privada.privacy import ZCDP, Question, Unit
from privada.privacy.accounting import accountant

PURE = PureDP(epsilon=1.0, relation="add/remove")
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
def test_wrong_parameters_are_named(change, message):
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
