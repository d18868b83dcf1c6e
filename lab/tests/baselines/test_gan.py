"""The generative baseline: its gradient, replays of its proof, what it learns. Needs the extra ``deep``."""

import math

import numpy as np
import pytest

from privada.audit import Sample, neighbours, replay
from privada.exceptions import InputError, RehearsalWarning
from privada.parties.rows import Rows
from privada.parties.schema import Schema
from privada.privacy import ZCDP, ApproxDP, PureDP, Relation
from privada.privacy.accounting import accountant
from privada_lab.baselines import DPGAN, GeneratedPoints
from privada_lab.baselines.clustering import BASELINES
from privada_lab.baselines.private import _kernels

RELATIONS = [Relation.ADD_REMOVE, Relation.REPLACE_ONE]
SCHEMA = Schema.of_numbers(bounds=(-1, 1), width=2, size=15)


def question(relation, **more):
    settings = {"n_points": 5, "width": 2, "norm_bound": 0.8, "n_steps": 3, "hidden": 6} | more
    return GeneratedPoints(**({"guarantee": ZCDP(rho=0.5, relation=relation)} | settings))


def weights(rng, hidden=6, scale=1.0):
    return tuple(scale * rng.normal(size=shape) for shape in ((hidden, 3), (hidden, hidden + 1), (hidden,)))


def gradient(x, parts, norm=math.inf):
    sums = np.zeros(sum(part.size for part in parts), dtype=np.int64)
    _kernels.add_critic_gradients(sums, np.atleast_2d(x), *parts, 0.2, norm, 2.0**30)
    return sums * 2.0**-30


def critic(x, parts):
    first, second, last = parts

    def leaky(values):
        return np.where(values > 0, values, 0.2 * values)

    return leaky(second @ np.append(leaky(first @ np.append(x, 1.0)), 1.0)) @ last


def test_the_gradient_is_that_of_finite_differences():
    rng = np.random.default_rng(0)
    parts, x = weights(rng), rng.normal(size=2)
    flat = np.concatenate([part.ravel() for part in parts])

    def at(values):
        cuts = np.split(values, np.cumsum([part.size for part in parts])[:-1])
        return critic(x, tuple(cut.reshape(part.shape) for cut, part in zip(cuts, parts, strict=True)))

    slopes = [(at(flat + 1e-6 * e) - at(flat - 1e-6 * e)) / 2e-6 for e in np.eye(len(flat))]
    assert gradient(x, parts) == pytest.approx(np.array(slopes), abs=1e-6)


def test_no_row_moves_the_sum_by_more_than_the_clip():
    rng = np.random.default_rng(1)
    norms = [
        np.linalg.norm(gradient(rng.normal(size=2), weights(rng, scale=10.0 ** rng.uniform(-2, 3)), norm=1.0))
        for _ in range(500)
    ]
    assert max(norms) <= 1
    assert max(norms) > 0.999


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_every_replay_passes(relation):
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    whole = Sample.of(rng.uniform(-1, 1, size=(15, 2)), schema=SCHEMA)
    asked = question(relation, clip=0.3)
    results = [
        replay(asked, pair.sample.rows(), pair.neighbour.rows(), pair=pair.name)
        for pair in neighbours(whole, relation=relation, rng=rng)
    ]
    assert all(result.passed for result in results), [str(r) for r in results if not r.passed]
    assert max(result.share for result in results) > 0.1


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.statistical
def test_black_box_bounds_stay_within_the_claim(relation, rehearsal):
    """One row more, or another one, in a set of three; false alarm 1e-2 each."""
    pytest.importorskip("torch")
    from privada.audit import audit_mechanism
    from privada.parties.answering import answer_rows

    rows = np.array([[0.7, 0.0], [0.7, 0.1], [-0.7, 0.3]])
    first = Sample.of(rows, schema=SCHEMA)
    second = first.without([2]) if relation is RELATIONS[0] else first.replaced(2, first.take([0]))
    asked = question(relation, n_steps=2, n_points=2)
    result = audit_mechanism(
        lambda side: answer_rows(asked, side, noise=rehearsal),
        first.rows(),
        second.rows(),
        claimed=asked.guarantee,
        trials=120,
    )
    assert result.passed, str(result)


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_steps_compose_to_the_guarantee_exactly(relation):
    guarantee = ApproxDP(epsilon=2, delta=1e-5, relation=relation)
    asked = question(relation, guarantee=guarantee, n_steps=50)
    assert accountant.satisfies(asked.price.event, guarantee)
    assert accountant.epsilon(asked.price.event, 1e-5) > 1.999
    assert asked.plan.draws["gradient 0"].sensitivity >= (2 if relation is RELATIONS[1] else 1)


def test_it_learns_where_the_rows_are():
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    rows = np.array([0.25, -0.1]) + rng.normal(0, 0.05, size=(2000, 2))
    model = DPGAN(200, norm_bound=0.5, rho=1.0, insecure_seed=0)
    with pytest.warns(RehearsalWarning):
        points = model.fit(rows).cluster_centers_
    assert np.linalg.norm(points.mean(axis=0) - [0.25, -0.1]) < 0.1
    assert (np.linalg.norm(points, axis=1) <= 0.5).all()
    with pytest.warns(RehearsalWarning):
        assert np.array_equal(model.fit(rows).cluster_centers_, points)


def test_it_is_one_line_beside_the_others():
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    rows, target = rng.normal(0, 0.1, size=(50, 2)), rng.normal(0, 0.1, size=(30, 2))
    found = BASELINES["DP-GAN"](rows, target, 4, PureDP(epsilon=3, relation="add/remove"), 0)
    assert len(set(found.tolist())) == 4


def test_a_pure_guarantee_is_refused_by_name():
    with pytest.raises(InputError, match="with delta, or for rho"):
        question(RELATIONS[0], guarantee=PureDP(epsilon=1, relation="add/remove"))


@pytest.mark.parametrize(
    "change", [{"n_steps": 0}, {"clip": -1.0}, {"rate": 0.0}, {"hidden": 0}, {"n_points": 0}]
)
def test_bad_parameters_are_named(change):
    with pytest.raises(InputError, match=next(iter(change))):
        question(RELATIONS[0], **change)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("rate", "weight_bound"), [(1e80, 1e100), (1e200, 1e308), (1e308, 1e308)])
def test_a_critic_beyond_floats_moves_no_gradient_past_its_price(relation, rate, weight_bound):
    """Its gradients were no numbers for some rows, of which an integer is -2^63."""
    pytest.importorskip("torch")
    X = np.random.default_rng(0).uniform(-1, 1, size=(15, 2))
    X[1] = 0.0
    other = X[1:] if relation is Relation.ADD_REMOVE else np.vstack([[[0.7, 0.0]], X[1:]])
    asked = question(relation, rate=rate, weight_bound=weight_bound, n_steps=4)
    found = replay(asked, *(Rows(part, schema=SCHEMA) for part in (X, other)))
    assert found.passed, found
