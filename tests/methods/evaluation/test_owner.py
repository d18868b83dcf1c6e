"""Exact tables and sums, before noise: what each record adds, and that it adds it alone."""

import numpy as np
import pytest

from privada import Category, Number, PureDP, Schema
from privada.methods.evaluation import ErrorMoments, OutcomeCounts, even_edges
from privada.methods.evaluation.questions import GRID
from privada.methods.hypotheses import Constant, linear
from privada.methods.hypotheses.forms import Hypothesis
from privada.parties.answering import answerer
from privada.parties.rows import Rows

PURE = PureDP(epsilon=1.0, relation="add/remove")
RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, size=(300, 2))


def exact(question, X, y, label):
    """What the answerer hands to its draws."""
    seen = {}
    rows = Rows(X, y=y, schema=Schema.of_numbers(bounds=(-1, 1), width=2, label=label))
    answerer(question)(question, rows, lambda name, value: seen.setdefault(name, np.array(value)))
    return seen


def table(y, classes, **settings):
    question = OutcomeCounts(n_classes=classes, guarantee=PURE, **settings)
    return exact(question, X, y, Category(name="y", values=tuple(range(classes))))["table"]


def test_two_classes_are_counted_by_label_and_bin_of_the_score():
    y = RNG.integers(2, size=300)
    edges = even_edges(4)
    found = table(y, 2, hypothesis=linear([[3.0], [1.0]], [0.2]), edges=edges, link="softmax")
    score = 1 / (1 + np.exp(-(X @ [3.0, 1.0] + 0.2)))
    for label in (0, 1):
        wanted, _ = np.histogram(score[y == label], bins=[-np.inf, *edges, np.inf])
        assert np.array_equal(found[label, 0], wanted)


@pytest.mark.parametrize("positive", [None, 2])
def test_three_classes_are_counted_by_label_prediction_and_score(positive):
    weights, bias = RNG.normal(size=(2, 3)), RNG.normal(size=3)
    y = RNG.integers(3, size=300)
    edges = np.array([0.2, 0.4, 0.6])
    found = table(y, 3, hypothesis=linear(weights, bias), edges=edges, link="softmax", positive=positive)
    odds = np.exp(X @ weights + bias)
    share = odds / odds.sum(axis=1, keepdims=True)
    said = share.argmax(axis=1)
    score = share.max(axis=1) if positive is None else share[:, positive]
    wanted = np.zeros((3, 3, 4), dtype=int)
    np.add.at(wanted, (y, said, np.searchsorted(edges, score, side="right")), 1)
    assert np.array_equal(found, wanted)


def test_without_edges_predictions_alone_are_counted():
    y = RNG.integers(2, size=300)
    said = (X @ [3.0, 1.0] > 0).astype(int)
    for hypothesis, wanted in ((linear([[3.0], [1.0]], [0.0]), said), (Constant(code=1), np.ones(300, int))):
        found = table(y, 2, hypothesis=hypothesis, link="softmax" if hypothesis.outputs else "none")
        counts = np.zeros((2, 2, 1), dtype=int)
        np.add.at(counts, (y, wanted, 0), 1)
        assert np.array_equal(found, counts)


class Broken(Hypothesis):
    """Has no outcome for some records."""

    form = "broken in a test"

    def __init__(self, outputs):
        object.__setattr__(self, "_outputs", outputs)

    @property
    def outputs(self):
        return self._outputs

    def codes(self, X):
        return np.where(X[:, 0] > 0, -1, 7)

    def scores(self, X):
        return np.where(X[:, :1] > 0, np.nan, np.inf) * np.ones((1, self._outputs))

    def fits(self, width, n_classes):
        """Anything."""

    def parts(self):
        return {}, {}


@pytest.mark.parametrize(
    ("classes", "outputs", "edges"),
    [(2, 0, []), (2, 1, []), (2, 2, even_edges(4)), (3, 3, [0.5]), (3, 0, [])],
)
def test_a_record_without_an_outcome_is_an_error_and_counted_once(classes, outputs, edges):
    y = RNG.integers(classes, size=300)
    found = table(y, classes, hypothesis=Broken(outputs), edges=edges)
    assert found.sum() == 300
    assert np.array_equal(found.sum(axis=(1, 2)), np.bincount(y, minlength=classes))
    if found.shape[1] > 1:
        assert np.trace(found.sum(axis=2)) == 0
    else:
        assert found[0, 0, :2].sum() == found[1, 0, 2:].sum() == 0  # the wrong side of the threshold


def test_errors_are_clipped_and_summed_in_whole_steps():
    y = RNG.uniform(-2, 2, size=300)
    question = ErrorMoments(hypothesis=linear([[5.0], [0.0]], [0.0]), largest=4.0, guarantee=PURE)
    found = exact(question, X, y, Number(name="y", low=-2, high=2))
    share = np.minimum((np.clip(5 * X[:, 0], -2, 2) - y) ** 2 / 4, 1)
    assert GRID.values(found["rows"]) == 300
    assert GRID.values(found["errors"]) == pytest.approx(share.sum(), abs=300 * GRID.step)
    assert GRID.values(found["squares"]) == pytest.approx((share**2).sum(), abs=600 * GRID.step)


def test_a_prediction_that_is_no_number_has_the_largest_error():
    y = np.zeros(300)
    question = ErrorMoments(hypothesis=Broken(1), largest=4.0, guarantee=PURE)
    found = exact(question, X, y, Number(name="y", low=-2, high=2))
    assert found["errors"] == found["squares"] == found["rows"]
