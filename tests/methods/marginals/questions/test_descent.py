"""A descent's question: refused by name, mapped row by row, and the same steps on both sides."""

from dataclasses import replace

import numpy as np
import pytest

from privada import Schema
from privada.exceptions import InputError
from privada.methods.marginals import LabelDescent, LabelHistogram
from privada.parties import Category, Number
from privada.privacy import ZCDP, PureDP

RHO = ZCDP(rho=0.5, relation="add/remove")
NUMBER = Number(name="y", low=0, high=9)
ASKED = LabelDescent(
    centre=np.zeros(2),
    spread=np.array([1.0, 1e6]),
    limit=3.0,
    radius=2.0,
    constant=0.3,
    n_classes=2,
    bound=0.7,
    size=100,
    steps=4,
    step_size=1.0,
    guarantee=RHO,
)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"guarantee": PureDP(epsilon=1, relation="add/remove")}, r"\(epsilon, delta\) or rho"),
        ({"spread": np.array([1.0, 0.0])}, "Expected spread to be positive"),
        ({"spread": np.ones(3)}, "Expected spread to be a vector of length 2"),
        ({"n_classes": 1}, "Expected n_classes of at least 2, or 0"),
        ({"bound": 0.0}, "Expected bound > 0"),
        ({"steps": 10**6}, "Expected steps of at most"),
        ({"size": 0}, "Expected size"),
        ({"middle": np.nan}, "Expected middle"),
    ],
    ids=str,
)
def test_wrong_parameters_are_refused_by_name(wrong, message):
    with pytest.raises(InputError, match=message):
        replace(ASKED, **wrong)


@pytest.mark.parametrize(
    ("question", "label", "width", "message"),
    [
        (ASKED, Category(name="y", values=(0, 1)), 3, "Expected centre of 3 features, got 2"),
        (ASKED, Category(name="y", values=(0, 1, 2)), 2, "Expected n_classes to be 3, got 2"),
        (replace(ASKED, n_classes=0), Category(name="y", values=(0, 1)), 2, "numeric label"),
        (LabelHistogram(low=0.0, high=9.0, bins=4, guarantee=RHO), None, 2, "numeric label"),
    ],
    ids=["width", "classes", "a number", "histogram"],
)
def test_another_schema_is_refused(question, label, width, message):
    with pytest.raises(InputError, match=message):
        question.fits(Schema.of_numbers(bounds=(0.0, 1.0), width=width, label=label))


def test_features_are_held_to_the_limit_and_overflow_to_a_number():
    found = ASKED.features(np.array([[1.0, 2e6], [-9.0, 1e308], [np.nan, -np.inf]]))
    assert found.tolist() == [[0.3, 0.5, 1.0], [0.3, -1.5, 1.5], [0.3, 0.0, -1.5]]


@pytest.mark.parametrize(("relation", "moved"), [("add/remove", 1.0), ("replace-one", 2.0)])
def test_the_noise_follows_the_relation(relation, moved):
    asked = replace(ASKED, guarantee=ZCDP(rho=0.5, relation=relation))  # μ = 1, so 1/2 for each of 4 steps
    assert asked.plan.draws["gradient_3"].scale == pytest.approx(2 * moved * 0.7, rel=1e-6)


def test_a_step_of_classes_has_no_part_that_all_share():
    after = ASKED.go_on(ASKED.start(), np.array([[3.0, 1.0]] * 3))
    assert after.tolist() == [[-0.01, 0.01]] * 3


@pytest.mark.parametrize("wrong", [{"low": 9.0}, {"bins": 1}, {"high": np.inf}], ids=str)
def test_a_histogram_needs_bins_between_bounds(wrong):
    with pytest.raises(InputError):
        LabelHistogram(**{"low": 0.0, "high": 9.0, "bins": 4, "guarantee": RHO} | wrong)
