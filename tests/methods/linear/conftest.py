import numpy as np
import pytest

from privada.methods.linear.questions.descent import LinearDescent
from privada.parties import Category, Number, Rows, Schema
from privada.privacy import ApproxDP

SIZE = 60


class ToyDescent(LinearDescent):
    kind = "toy.linear"


@pytest.fixture
def descent():
    """Make a small descent of a loss in the columns themselves."""

    def make(loss="squared", **more):
        return ToyDescent(
            **{
                "size": SIZE,
                "loss": loss,
                "outputs": 3 if loss == "softmax" else 1,
                "centre": np.zeros(2),
                "spread": np.ones(2),
                "limit": 9.0,
                "constant": 0.0,
                "transform": np.eye(3)[:, 1:],
                "bound": 1.0,
                "steps": 6,
                "step_size": 0.1,
                "guarantee": ApproxDP(epsilon=1e3, delta=1e-3, relation="replace-one"),
            }
            | more
        )

    return make


@pytest.fixture
def private_rows():
    """Make rows with a label for a loss."""

    def make(loss="squared", order=None):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, size=(SIZE, 2))
        y = np.clip(X @ [0.5, -0.3], -1, 1)
        label = Number(name="y", low=-1, high=1)
        if loss != "squared":
            y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5 if loss == "softmax" else 0)
            label = Category(name="y", values=tuple(range(3 if loss == "softmax" else 2)))
        schema = Schema.of_numbers(bounds=(-1, 1), width=2, size=SIZE, label=label)
        at = slice(None) if order is None else order
        return Rows(X[at], schema=schema, y=y[at])

    return make
