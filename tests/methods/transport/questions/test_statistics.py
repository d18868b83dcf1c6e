"""The price of class statistics: sensitivities by search, splits, refusals."""

import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from privada.audit.transcript import witnessed
from privada.exceptions import InputError
from privada.methods.transport import ClassStatistics, FeatureMap
from privada.methods.transport.owner import packed
from privada.methods.transport.questions.statistics import joint, same_class
from privada.parties import Rows, Schema
from privada.parties.compute import batch as batch_module
from privada.parties.schema import Category
from privada.privacy import ZCDP, ApproxDP, PureDP, Unit
from privada.privacy.accounting import accountant

ONE = ApproxDP(epsilon=2.0, delta=1e-5, relation="replace-one")
MAP = FeatureMap.random(4, 3, seed=0, radius=1.3)
SCHEMA = Schema.of_numbers(bounds=(-1, 1), width=4, size=50, label=Category(name="y", values=("a", "b")))


def asked(guarantee=ONE, **more):
    return ClassStatistics(features=MAP, n_classes=2, guarantee=guarantee, **more)


@pytest.mark.parametrize(("b", "c"), [(1.0, 0.0), (1.0, 0.5), (1.0, 1.0), (0.3, 2.0)])
def test_the_same_class_formula_is_the_supremum(b, c):
    """privacy.md, section 6.4, by search over pairs of vectors in the ball; nearly reached, never passed."""
    worst = 0.0
    for angle in np.linspace(0, math.pi, 721):
        for one in (1.0, 0.7, 0.0):
            z = np.array([[1.0, 0.0], [one * math.cos(angle), one * math.sin(angle)]])
            p = packed(z)
            worst = max(worst, b * np.sum((z[0] - z[1]) ** 2) + c * np.sum((p[0] - p[1]) ** 2))
    assert worst <= same_class(b, c) * (1 + 1e-12)
    assert worst >= same_class(b, c) * 0.999


def test_packing_keeps_the_frobenius_norm():
    z = np.random.default_rng(0).normal(size=(5, 4))
    assert np.allclose(np.sum(packed(z) ** 2, axis=1), np.sum(z**2, axis=1) ** 2)


def test_counts_and_moments_are_free_beside_sums():
    assert joint(1, 1, 0, replaces=True) == joint(0, 1, 0, replaces=True) == 4
    assert joint(0.5, 1, 0.5, replaces=True) == 4


@pytest.mark.parametrize("moments", [False, True])
@pytest.mark.parametrize("relation", ["add/remove", "replace-one", "attribute"])
def test_the_joint_event_is_the_budget(moments, relation):
    guarantee = replace(ONE, relation=relation)
    event = asked(guarantee, moments=moments).price.event
    assert accountant.satisfies(event, guarantee)
    assert accountant.epsilon(event, guarantee.delta) > 0.999 * guarantee.epsilon


def test_sums_have_the_noise_of_their_diameter():
    question = asked()
    assert question.plan.draws["sums"].scale == pytest.approx(2 * MAP.radius / ONE.gaussian_mu(), rel=1e-5)


def test_a_person_moves_as_many_rows():
    one = asked(ZCDP(rho=0.1, relation="replace-one"))
    three = asked(ZCDP(rho=0.1, relation="replace-one", unit=Unit(name="person", max_rows=3)))
    assert three.plan.draws["sums"].scale == pytest.approx(3 * one.plan.draws["sums"].scale)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_classes": 1}, "n_classes"),
        ({"features": "map"}, "FeatureMap"),
        ({"moments": 2}, "moments"),
        ({"guarantee": PureDP(epsilon=1, relation="replace-one")}, "delta"),
    ],
)
def test_bad_parameters_have_names(change, message):
    settings = {"features": MAP, "n_classes": 2, "guarantee": ONE} | change
    with pytest.raises(InputError, match=message):
        ClassStatistics(**settings)


def test_a_question_of_another_width_or_other_classes_does_not_fit():
    asked().fits(SCHEMA)
    with pytest.raises(InputError, match="map of 4"):
        ClassStatistics(features=FeatureMap.random(5, 2, seed=0), n_classes=2, guarantee=ONE).fits(SCHEMA)
    with pytest.raises(InputError, match="n_classes"):
        ClassStatistics(features=MAP, n_classes=3, guarantee=ONE).fits(SCHEMA)
    huge = replace(MAP, projection=MAP.projection * 1e160)
    with pytest.raises(InputError, match="overflow"):
        ClassStatistics(features=huge, n_classes=2, guarantee=ONE).fits(SCHEMA)


def test_the_memory_of_moments_does_not_follow_the_number_of_rows(monkeypatch, rehearsal):
    """A thousand components made an answer fail at owners of many rows only: how many, the failure told."""
    claim = ZCDP(rho=0.5, relation="add/remove")
    question = ClassStatistics(
        features=FeatureMap.random(2, 30, seed=0), n_classes=2, moments=True, guarantee=claim
    )
    schema = Schema.of_numbers(bounds=(-1, 1), width=2, label=Category(name="y", values=(0, 1)))
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, size=(3000, 2)), rng.integers(2, size=3000)
    calls = witnessed(question, Rows(X, y=y, schema=schema), rehearsal)[0]
    monkeypatch.setattr(batch_module, "AT_ONCE", 5000)
    tracemalloc.start()
    again = witnessed(question, Rows(X, y=y, schema=schema), rehearsal)[0]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert all(np.array_equal(a.exact, b.exact) for a, b in zip(calls, again, strict=True))
    assert most < 1_500_000  # all moments are 11 MB, three times over


def test_a_budget_that_needs_more_steps_than_integers_have_is_refused_before_it_is_charged():
    claim = ZCDP(rho=1e23, relation="replace-one")
    wide = FeatureMap.random(4, 3, seed=0, radius=1e6)
    with pytest.raises(InputError, match="grid steps"):
        ClassStatistics(features=wide, n_classes=2, guarantee=claim).plan
