"""The ladder: every step in its place, nothing spent without being foreseen."""

from dataclasses import replace

import numpy as np
import pytest

from privada.methods.reweighting.learner.ladder import plan
from privada.parties import Number, Owner, Schema
from privada.parties.running import run
from privada.privacy import ApproxDP

pytestmark = pytest.mark.filterwarnings("ignore::privada.exceptions.PrivadaWarning")
RNG = np.random.default_rng(0)
X, T = RNG.normal(size=(400, 5)), RNG.normal(size=(3000, 5))
SCHEMA = Schema.of_numbers(
    bounds=(-6.0, 6.0), width=5, size=len(T), label=Number(name="label", low=-20.0, high=20.0)
)


def budget(epsilon):
    return ApproxDP(epsilon=epsilon, delta=1e-5, relation="replace-one")


def ladder(epsilon=1.0, size=3000, **more):
    y = X @ np.ones(5) + 0.3 * RNG.normal(size=len(X))
    return plan(X, y, size=size, guarantee=budget(epsilon), label_bounds=(-20.0, 20.0), **more)


def adapted(made, y):
    owner = Owner(
        T, y=y, schema=SCHEMA, dataset="t", budget=made.guarantee, accounting="gaussian", insecure_seed=0
    )
    return run(made.inquiry("t"), {"t": owner})


def test_a_correction_follows_only_where_rows_are_enough():
    assert [ask.question.kind for ask in ladder().inquiry("t").asks] == [
        "reweighting.mixture",
        "reweighting.linear",
    ]
    few = ladder(epsilon=0.2, size=50)
    (ask,) = few.inquiry("t").asks
    assert ask.question.guarantee == few.guarantee


@pytest.mark.parametrize("base", ["auto", "linear"])
def test_a_shift_is_learnt_and_a_target_like_the_source_is_left_alone(base):
    y = T @ np.ones(5)
    made = ladder(base=base)
    start = made.start()
    before = made.features.extend(T) @ start.weights + start.intercepts
    for shift in (0.0, 0.8):
        error = np.mean((adapted(made, y + shift).scores(T)[:, 0] - y - shift) ** 2)
        assert error < 1.2 * np.mean((before[:, 0] - y) ** 2) + 0.02


def test_a_turned_target_is_learnt():
    y = T @ [2.0, 0.0, 1.0, 1.0, 1.0]
    model = adapted(ladder(epsilon=4.0, base="linear"), y)
    weights, level = model.linear_form()
    assert weights[:, 0] == pytest.approx([2.0, 0.0, 1.0, 1.0, 1.0], abs=0.4)
    assert level[0] == pytest.approx(0.0, abs=0.1)
    assert T @ weights + level == pytest.approx(model.scores(T))


def test_a_salt_asks_anew():
    one, other = ladder(salt="a"), ladder(salt="b")
    assert replace(one.mixture(), salt="") == replace(one.mixture(), salt="")
    assert one.mixture() != other.mixture()
