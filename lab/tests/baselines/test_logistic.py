"""Logistic regression by noisy gradients: replays of its proof, audits, accuracy, manners."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from privada.audit import Sample, audit_question, neighbours, replay
from privada.exceptions import InputError, RehearsalWarning, SchemaError
from privada.parties.answering import answer_rows
from privada.parties.rows import Rows
from privada.parties.schema import Category, Schema
from privada.privacy import ZCDP, ApproxDP, Relation
from privada.privacy.accounting import accountant
from privada_lab.baselines import DPLogisticRegression, NoisyGradients
from privada_lab.baselines.private import logistic
from privada_lab.baselines.private._kernels import add_softmax_gradients

SCHEMA = Schema.of_numbers(
    bounds=(-1, 1), width=3, size=20, label=Category(name="label", values=("a", "b", "c"))
)
RELATIONS = [Relation.ADD_REMOVE, Relation.REPLACE_ONE]


def question(relation, **more):
    guarantee = more.pop("guarantee", ZCDP(rho=0.5, relation=relation))
    size = more.pop("size", 20)
    settings = {"n_classes": 3, "width": 3, "norm_bound": 0.7, "n_steps": 6} | more
    return NoisyGradients(guarantee=guarantee, size=size, **settings)


def sample(seed=0):
    rng = np.random.default_rng(seed)
    y = np.array(["a", "b", "c"], dtype=object)[rng.integers(3, size=20)]
    return Sample.of(rng.uniform(-1, 1, size=(20, 3)), schema=SCHEMA, y=y)


def replays(asked):
    rng = np.random.default_rng(0)
    for pair in neighbours(sample(), relation=asked.guarantee.relation, rng=rng):
        rows, neighbour = pair.sample.rows(), pair.neighbour.rows()
        yield replay(asked, rows, neighbour, pair=pair.name), rows, neighbour


@pytest.mark.parametrize(
    ("relation", "size"),
    [(Relation.ADD_REMOVE, 20), (Relation.ADD_REMOVE, None), (Relation.REPLACE_ONE, 20)],
    ids=str,
)
def test_every_replay_passes(relation, size):
    """With a declared size, and with one that is counted (which replaced rows make public)."""
    asked = question(relation, size=size)
    results = [result for result, _, _ in replays(asked)]
    assert all(result.passed for result in results), [str(r) for r in results if not r.passed]
    assert max(result.share for result in results) > 0.2


def test_add_remove_noise_is_caught_on_replaced_rows():
    asked = question(Relation.ADD_REMOVE)
    pairs = neighbours(sample(), relation=Relation.REPLACE_ONE, rng=np.random.default_rng(0))
    shares = [
        check.share
        for pair in pairs
        for check in replay(asked, pair.sample.rows(), pair.neighbour.rows()).draws
    ]
    assert max(shares) > 1


@pytest.mark.statistical
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_black_box_bounds_stay_within_the_claim(relation, rehearsal):
    """On the pair that comes nearest to the proof's bound; false alarm 1e-2 each."""
    asked = question(relation, n_steps=2, guarantee=ApproxDP(epsilon=2, delta=1e-3, relation=relation))
    _, rows, neighbour = max(replays(asked), key=lambda found: found[0].share)
    result = audit_question(asked, rows, neighbour, trials=1500, noise=rehearsal)
    assert result.passed, str(result)


def test_no_row_moves_the_sum_by_more_than_the_bound_whatever_the_weights():
    """Brute force over weights and rows: within the bound, and near it where a sure classifier errs."""
    rng = np.random.default_rng(1)
    worst = 0.0
    for _ in range(3000):
        x = rng.normal(size=(1, 2))
        x = np.column_stack([x / np.linalg.norm(x), [logistic.INTERCEPT]])
        sums = np.zeros((3, 3), dtype=np.int64)
        weights = rng.normal(size=(3, 3)) * 10.0 ** rng.uniform(-1, 8)
        add_softmax_gradients(sums, x, rng.integers(3, size=1), weights, 2.0**20)
        worst = max(worst, np.linalg.norm(sums * 2.0**-20))
    assert worst <= logistic.NORM
    assert worst > 0.999 * logistic.NORM


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize("n_steps", [1, 7, 100])
def test_steps_compose_to_the_guarantee_exactly(relation, n_steps):
    guarantee = ApproxDP(epsilon=1, delta=1e-5, relation=relation)
    asked = question(relation, guarantee=guarantee, n_steps=n_steps)
    assert accountant.satisfies(asked.price.event, guarantee)
    assert accountant.epsilon(asked.price.event, 1e-5) > 0.999
    slack = math.sqrt(12) * asked.plan.draws["gradient 0"].grid.step if relation is RELATIONS[1] else 0
    times = 2 if relation is RELATIONS[1] else 1
    assert asked.plan.draws["gradient 0"].sensitivity == pytest.approx(times * logistic.NORM + slack)


def data(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = rng.normal(0, 0.2, size=(n, 4))
    X[:, :3] += 0.6 * np.eye(3)[y]
    return X, np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_it_comes_near_to_the_non_private_one(relation):
    X, y = data()
    Xt, yt = data(seed=1)
    model = DPLogisticRegression(2, 1e-5, ("a", "b", "c"), 1.0, relation=relation, size=3000, insecure_seed=1)
    with pytest.warns(RehearsalWarning):
        private = model.fit(X, y).score(Xt, yt)
    assert private > LogisticRegression().fit(X, y).score(Xt, yt) - 0.02
    assert model.predict_proba(Xt).sum(axis=1) == pytest.approx(1)
    assert model.guarantee_ == ApproxDP(epsilon=2, delta=1e-5, relation=relation)
    assert "rehearsal: not private" in model.release_.stamps


def test_without_noise_to_speak_of_it_is_the_minimiser(rehearsal):
    """At a huge budget, with regularisation, gradient descent ends at scikit-learn's optimum."""
    X, y = data(n=500)
    X = X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    asked = NoisyGradients(
        n_classes=3,
        width=4,
        norm_bound=1.0,
        n_steps=3000,
        regularisation=0.05,
        size=500,
        guarantee=ZCDP(rho=1e10, relation="add/remove"),
    )
    schema = Schema.of_numbers(bounds=(-1, 1), width=4, label=SCHEMA.label)
    found = answer_rows(asked, Rows(X, y=y, schema=schema), noise=rehearsal)["weights"]
    rows = np.column_stack([X, np.full(len(X), logistic.INTERCEPT)])
    exact = LogisticRegression(C=1 / (0.05 * len(X)), fit_intercept=False, tol=1e-8).fit(rows, y)
    assert found == pytest.approx(exact.coef_, abs=5e-3)


def test_a_rehearsal_repeats_and_the_bounds_are_public():
    X, y = data(n=200)
    model = DPLogisticRegression(1, 1e-3, ("a", "b", "c"), 1.0, n_steps=5, insecure_seed=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RehearsalWarning)
        first = model.fit(X, y).coef_
        assert np.array_equal(clone(model).fit(X, y).coef_, first)
        far = X.copy()
        far[0] *= 1e300
        assert np.isfinite(clone(model).fit(far, y).coef_).all()
        assert np.isfinite(clone(model).fit(X[:0], y[:0]).coef_).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": -1}, "epsilon > 0"),
        ({"delta": None}, "not for ε = 1"),
        ({"classes": None}, "Expected classes"),
        ({"norm_bound": None}, "Expected norm_bound"),
        ({"norm_bound": 0}, "norm_bound > 0"),
        ({"n_steps": 0}, "n_steps"),
        ({"regularisation": -1}, "regularisation"),
        ({"relation": "replace-one"}, "size"),
        ({"relation": "replace-one", "size": 7}, "size"),
    ],
)
def test_bad_parameters_are_named(change, message):
    X, y = data(n=50)
    good = {"epsilon": 1, "delta": 1e-5, "classes": ("a", "b", "c"), "norm_bound": 1.0}
    with pytest.raises(InputError, match=message):
        DPLogisticRegression(**(good | change)).fit(X, y)


def test_bad_rows_are_refused_without_being_shown():
    X, y = data(n=50)
    model = DPLogisticRegression(1, 1e-5, ("a", "b"), 1.0)
    with pytest.raises(SchemaError, match="outside|not among"):
        model.fit(X, y)
    X[3, 1] = np.nan
    with pytest.raises(SchemaError, match="missing value"):
        replace_classes(model).fit(X, y)
    with pytest.raises(InputError, match="matrix"):
        model.fit(X[:, 0], y)


def replace_classes(model):
    return clone(model).set_params(classes=("a", "b", "c"))


def test_a_person_counts_for_all_rows_of_theirs():
    from privada.privacy import Unit

    row = question(Relation.ADD_REMOVE)
    person = replace(row, guarantee=replace(row.guarantee, unit=Unit(name="person", max_rows=3)))
    draws = [asked.plan.draws["gradient 0"] for asked in (row, person)]
    assert draws[1].sensitivity == pytest.approx(3 * draws[0].sensitivity)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("norm_bound", [5e-324, 1e-308, 1e308])
def test_a_norm_bound_at_the_ends_of_floats_moves_no_gradient_past_its_price(relation, norm_bound):
    """Rows over a tiny bound overflow, some of them: they were NaN, of which an integer is -2^63."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, size=(20, 3)), rng.choice(["a", "b", "c"], size=20)
    X[0], X[1] = [1.0, 0.0, -1.0], 0.0
    wide = Schema.of_numbers(bounds=(-1e10, 1e10), width=3, size=20, label=SCHEMA.label)
    X[0] *= 1e10
    other = X[1:] if relation is Relation.ADD_REMOVE else np.vstack([[[0.0, 1e-5, 0.0]], X[1:]])
    pair = [Rows(part, y=y[-len(part) :], schema=wide) for part in (X, other)]
    found = replay(question(relation, norm_bound=norm_bound), *pair)
    assert found.passed, found
