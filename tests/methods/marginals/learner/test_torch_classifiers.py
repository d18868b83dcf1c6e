"""Torch classifiers as hypotheses: exported, checked against the list, run at the owner's under limits."""

import numpy as np
import pytest

from privada import Owner, Schema
from privada.exceptions import InputError
from privada.methods.marginals import Onnx, OutcomeTables, of_classifier
from privada.methods.marginals.example import TABLES
from privada.parties import Category
from privada.privacy import PureDP, Question

torch = pytest.importorskip("torch")

PURE = PureDP(epsilon=1, relation="add/remove")
SCHEMA = Schema.of_numbers(bounds=(0.0, 1.0), width=2, label=Category(name="label", values=(0, 1)))
X = np.random.default_rng(2).uniform(size=(200, 2))
Y = (X[:, 0] > 0.5).astype(int)
AS_IS = {"mean": np.zeros(2), "scale": np.ones(2)}


def perceptron(outputs=2):
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(2, 8),
        torch.nn.GELU(),
        torch.nn.Dropout(0.5),
        torch.nn.LayerNorm(8),
        torch.nn.Linear(8, outputs),
    )


class Given(torch.nn.Module):
    """A module from a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def said(module, rows):
    with torch.no_grad():
        return module.eval()(torch.from_numpy(rows).float()).argmax(1).numpy()


def test_a_perceptron_goes_to_the_owner_and_back():
    module, mean, scale = perceptron(), np.array([0.4, 0.6]), np.array([0.3, 2.0])
    hypothesis = of_classifier(module, mean=mean, scale=scale)
    assert isinstance(hypothesis, Onnx)
    question = Question.from_bytes(
        OutcomeTables(tables=TABLES, hypothesis=hypothesis, guarantee=PURE).to_bytes()
    )
    assert (question.hypothesis.codes(X) == said(module, (X - mean) / scale)).mean() > 0.99
    owner = Owner(X, y=Y, schema=SCHEMA, dataset="rows", budget=PURE)
    release = owner.answer(question)
    assert release["table.0"].shape == (3, 2)
    assert len(list(owner.ledger.lines("rows"))) == 2


def test_the_module_itself_is_left_as_it_was():
    module = perceptron().double().train()
    of_classifier(module, **AS_IS)
    assert module.training
    assert all(part.dtype == torch.float64 for part in module.parameters())


def test_a_module_that_gives_class_codes_is_taken_as_it_is():
    module = Given(lambda x: (x[:, 0] > 0.5).to(torch.int64))
    hypothesis = of_classifier(module, **AS_IS)
    assert np.array_equal(hypothesis.codes(X[:20]), Y[:20])


@pytest.mark.parametrize(
    ("function", "operator"),
    [
        (lambda x: torch.cumsum(x, dim=1), "CumSum"),
        (lambda x: x + torch.rand_like(x), "RandomUniformLike"),
        (torch.sin, "Sin"),
    ],
    ids=["cumulative sum", "random", "sine"],
)
def test_an_operator_beyond_the_list_is_refused_by_name(function, operator):
    with pytest.raises(InputError, match=f"{operator} is not allowed"):
        of_classifier(Given(function), **AS_IS)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x[:, :1], "scores of two or more classes"),
        (lambda x: x[:, 0], "scores of two or more classes"),
        (lambda x: (x, x), "scores or class codes, got tuple"),
        (lambda x: x > 0, "torch.bool"),
        (lambda x: x @ torch.ones(3, 2), "rows of 2 numbers"),
    ],
    ids=["one score", "a number", "a tuple", "truth values", "another width"],
)
def test_a_module_that_gives_other_than_labels_is_refused(function, message):
    with pytest.raises(InputError, match=message):
        of_classifier(Given(function), **AS_IS)


def test_a_module_whose_branches_depend_on_values_is_refused():
    module = Given(lambda x: x if float(x.sum()) > 1 else -x)
    with pytest.raises(InputError, match="depends on the values"):
        of_classifier(module, **AS_IS)


def test_more_classes_than_the_owner_knows_are_refused_before_any_charge():
    """Codes of a third class, on rows that the owner tries it on."""
    module = Given(lambda x: torch.cat([x, 9 + 0 * x[:, :1]], dim=1))
    owner = Owner(X, y=Y, schema=SCHEMA, dataset="rows", budget=PURE)
    with pytest.raises(InputError, match="other than class codes.*nothing was charged"):
        owner.answer(OutcomeTables(tables=TABLES, hypothesis=of_classifier(module, **AS_IS), guarantee=PURE))
    assert len(list(owner.ledger.lines("rows"))) == 1
