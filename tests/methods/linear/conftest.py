from dataclasses import dataclass

import numpy as np
import pytest

from privada.methods.linear.questions.descent import LinearDescent
from privada.parties import Category, Number, Rows, Schema
from privada.privacy import ApproxDP

SIZE = 60


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ToyDescent(LinearDescent):
    kind = "toy.descent"


@pytest.fixture
def descent():
    """Make a small descent of a loss."""

    def make(loss="squared", **more):
        outputs = 3 if loss == "softmax" else 1
        return ToyDescent(
            **{
                "size": SIZE,
                "weights": np.zeros((2, outputs)),
                "intercepts": np.zeros(outputs),
                "transform": np.eye(2),
                "shift": np.zeros(2),
                "curvature": np.eye(2),
                "radius": 1.0,
                "threshold": 1.0,
                "alpha": 0.1,
                "loss": loss,
                "steps": 6,
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
