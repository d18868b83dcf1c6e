"""The descent that transport asks for: its map, its price and what one row can do."""

import math

import numpy as np
import pytest

from privada.exceptions import InputError, RelationError
from privada.methods.transport import Descent, FeatureMap
from privada.methods.transport.questions.descent import CONSTANT, STEPS, step_size
from privada.privacy import ApproxDP, Unit

ONE = ApproxDP(epsilon=1.0, delta=1e-4, relation="replace-one")
MAP = FeatureMap(projection=np.array([[2.0, 0.0], [0.0, 0.5], [1.0, 1.0]]), centre=np.ones(3), radius=1.5)


def asked(**changed):
    return Descent.through(MAP, **{"size": 200, "n_classes": 2, "guarantee": ONE} | changed)


def test_its_affine_map_is_the_feature_map_and_a_constant():
    question, rows = asked(), np.random.default_rng(0).normal(size=(5, 3))
    made = rows @ question.transform + question.shift
    assert np.allclose(made[:, :2], MAP.spread(rows))
    assert np.allclose(made[:, 2], CONSTANT * MAP.radius)


def test_all_steps_together_keep_the_guarantee():
    question = asked()
    spent = math.sqrt(sum(draw.mu**2 for draw in question.plan.draws.values()))
    assert len(question.plan.draws) == STEPS
    assert spent <= ONE.gaussian_mu() * (1 + 1e-9)
    sensitivity = next(iter(question.plan.draws.values())).sensitivity
    assert sensitivity >= 2 * question.bound
    person = asked(
        guarantee=ApproxDP(
            epsilon=1, delta=1e-4, relation="replace-one", unit=Unit(name="person", max_rows=3)
        )
    )
    assert next(iter(person.plan.draws.values())).sensitivity >= 6 * question.bound


def test_more_rows_or_budget_allow_longer_steps_up_to_what_is_stable():
    steps = [step_size("logistic", 2.0, size=size, mu=0.5) for size in (10, 100, 10**6, 10**9)]
    assert steps[0] < steps[1] < steps[2]
    assert steps[2] == steps[3]
    assert step_size("softmax", 2.0, size=100, mu=1.0) > step_size("softmax", 2.0, size=100, mu=0.5)


def test_two_classes_have_one_output_and_more_have_as_many():
    assert asked().loss == "logistic"
    assert asked(n_classes=4).outputs == 4


def test_what_cannot_be_asked_is_named():
    with pytest.raises(InputError, match="rescale"):
        Descent.through(FeatureMap.random(3, 2, seed=0, rescale="root"), size=200, n_classes=2, guarantee=ONE)
    with pytest.raises(RelationError, match="replace-one"):
        asked(guarantee=ApproxDP(epsilon=1, delta=1e-4, relation="add/remove"))
