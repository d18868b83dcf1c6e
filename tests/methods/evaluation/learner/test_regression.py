"""What is computed from noisy sums of errors."""

import numpy as np
import pytest

from privada import Number, Owner, PureDP, Schema, run
from privada.exceptions import InputError
from privada.methods.evaluation import ErrorMoments, Regression, learn
from privada.methods.hypotheses import linear

MODEL = linear([[2.0]], [0.0])
SURE = PureDP(epsilon=500.0, relation="add/remove")


def world(rows, rng):
    X = rng.uniform(size=(rows, 1))
    return X, 2 * X[:, 0] + rng.normal(0, 0.3, size=rows)


def evaluated(X, y, *, guarantee=SURE, largest=1.0, insecure_seed=None):
    schema = Schema.of_numbers(bounds=(0, 1), width=1, size=len(X), label=Number(name="y", low=-2, high=4))
    question = ErrorMoments(hypothesis=MODEL, largest=largest, guarantee=guarantee)
    owner = Owner(X, y=y, schema=schema, dataset="rows", budget=guarantee, insecure_seed=insecure_seed)
    return run(learn("owner", question, size=len(X)), {"owner": owner})


def test_without_noise_it_is_the_mean_squared_error():
    X, y = world(2000, np.random.default_rng(0))
    found = evaluated(X, y)
    true = np.minimum((2 * X[:, 0] - y) ** 2, 1).mean()
    assert found.squared_error.value == pytest.approx(true, rel=0.02)
    assert found.root.value == pytest.approx(np.sqrt(true), rel=0.02)
    assert found.root.low < found.root.value < found.root.high
    assert set(found.to_dict()) == {"guarantee", "stamps", "squared_error", "root_squared_error", "rows"}


@pytest.mark.statistical
@pytest.mark.filterwarnings("ignore::privada.exceptions.RehearsalWarning")
@pytest.mark.parametrize("relation", ["add/remove", "replace-one"])
def test_the_interval_holds_the_populations_error(relation):
    """80 data sets of 500 rows at ε = 1, 95 % nominal: fewer than 68 has a probability below 1e-3."""
    true = 0.09  # the variance of the labels' noise; clipping at 1 cuts off 1e-4 of it
    held = 0
    for seed in range(80):
        found = evaluated(
            *world(500, np.random.default_rng(seed)),
            guarantee=PureDP(epsilon=1.0, relation=relation),
            insecure_seed=seed,
        ).squared_error
        held += found.low <= true <= found.high
    assert held >= 68


def test_under_replacement_the_size_is_needed_and_used():
    X, y = world(200, np.random.default_rng(1))
    found = evaluated(X, y, guarantee=PureDP(epsilon=500, relation="replace-one"))
    assert found.rows == 200
    with pytest.raises(InputError, match="Expected size"):
        Regression(question=found.question, release=found.release)


def test_much_noise_stays_within_the_bounds():
    X, y = world(20, np.random.default_rng(1))
    found = evaluated(X, y, guarantee=PureDP(epsilon=0.001, relation="add/remove"), largest=36.0)
    assert 0 <= found.squared_error.low <= found.squared_error.value <= found.squared_error.high <= 36
