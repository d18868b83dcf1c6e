import warnings

import numpy as np
import pytest

from privada import Owner, Policy, Schema
from privada.exceptions import RehearsalWarning
from privada.methods.summarization import Consumer, FourierEmbedding, Matching, OwnerNode
from privada.parties.schema import Category
from privada.privacy import ApproxDP

RO = "replace-one"


def _made_owner(X, y=None, *, name, seed=None, budget=None, curators=("curator",), bounds=(-4, 4)):
    label = None if y is None else Category(name="label", values=(0, 1))
    schema = Schema.of_numbers(bounds=bounds, width=X.shape[1], size=len(X), label=label)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RehearsalWarning)
        return Owner(
            X,
            y=y,
            schema=schema,
            dataset=name,
            budget=budget or ApproxDP(epsilon=4, delta=1e-5, relation=RO),
            policy=Policy(curators=curators),
            accounting="gaussian" if budget is None else None,
            insecure_seed=seed,
        )


@pytest.fixture
def made_owner():
    """Make an owner of rows, and of labels 0 and 1."""
    return _made_owner


@pytest.fixture
def town():
    """A consumer around (1, 1) and three owners: one of such rows, one of others, one of both."""

    def make(kind=OwnerNode, seed=1):
        rng = np.random.default_rng(seed)
        near, far = (rng.normal(side, 0.4, size=(300, 2)) for side in (1.0, -1.0))
        consumer = Consumer("consumer", _made_owner(rng.normal(1, 0.4, (200, 2)), name="dv", seed=9))
        held = {"near": near[:150], "far": far[:150], "both": np.vstack([near[150:], far[150:]])}
        owners = [
            kind(name, _made_owner(X, (X[:, 0] > X[:, 1]).astype(int), name=name, seed=i))
            for i, (name, X) in enumerate(held.items())
        ]
        return consumer, owners

    return make


@pytest.fixture
def matching():
    guarantee = ApproxDP(epsilon=4, delta=1e-5, relation=RO)
    embedding = FourierEmbedding.of(width=2, n_features=40, gamma=0.5, random_state=0)
    return Matching(embedding=embedding, size=40, validation=guarantee, owners=guarantee)
