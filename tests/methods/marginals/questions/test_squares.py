"""Squared errors of a regressor are asked of owners whose label is a number."""

import numpy as np
import pytest

from privada import Bins, Category, Number, PureDP, Schema
from privada.exceptions import InputError
from privada.methods.marginals import SquaredErrors, linear

QUESTION = SquaredErrors(
    tables=(Bins(feature=0, edges=np.array([0.5])),),
    hypothesis=linear([[2.0]], [0.0]),
    largest=1.0,
    guarantee=PureDP(epsilon=1.0, relation="add/remove"),
)


def test_a_number_is_accepted():
    QUESTION.fits(Schema.of_numbers(bounds=(0, 1), width=1, label=Number(name="y", low=0, high=2)))


@pytest.mark.parametrize("label", [None, Category(name="y", values=(0, 1))])
def test_any_other_label_is_refused_before_the_charge(label):
    """Categories have had bounds since they can be ordered; they are no numbers for that."""
    with pytest.raises(InputError, match="a numeric label"):
        QUESTION.fits(Schema.of_numbers(bounds=(0, 1), width=1, label=label))
