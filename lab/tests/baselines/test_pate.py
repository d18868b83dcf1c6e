"""PATE: one row, one teacher, one vote a query; audits, accuracy, manners."""

import math

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from privada.audit import Sample, audit_question, neighbours, replay
from privada.exceptions import InputError, RehearsalWarning
from privada.parties.schema import Category, Schema
from privada.privacy import ZCDP, ApproxDP, PureDP, Relation
from privada.privacy.accounting import accountant
from privada_lab.baselines import PATE, TeacherVotes
from privada_lab.baselines.private.pate import _shards

SCHEMA = Schema.of_numbers(bounds=(-1, 1), width=2, size=12, label=Category(name="label", values=(0, 1, 2)))
QUERIES = np.array([[0.0, 0.0], [0.4, 0.4], [-0.4, 0.2]])
GUARANTEES = [
    PureDP(epsilon=2, relation="add/remove"),
    PureDP(epsilon=2, relation="replace-one"),
    ZCDP(rho=0.5, relation="add/remove"),
    ZCDP(rho=0.5, relation="replace-one"),
    ApproxDP(epsilon=2, delta=1e-3, relation="replace-one"),
]


def question(guarantee, n_teachers=3):
    return TeacherVotes(
        queries=QUERIES,
        n_classes=3,
        n_teachers=n_teachers,
        norm_bound=1.0,
        teacher=KNeighborsClassifier(1),
        guarantee=guarantee,
    )


def sample(seed=0):
    rng = np.random.default_rng(seed)
    return Sample.of(rng.uniform(-1, 1, size=(12, 2)), schema=SCHEMA, y=rng.integers(3, size=12))


def pairs(relation):
    """Replaced rows keep their shard; rows are added and removed at the end, where no other's draw shifts."""
    rng = np.random.default_rng(0)
    if relation is Relation.REPLACE_ONE:
        yield from (
            (pair.sample, pair.neighbour) for pair in neighbours(sample(), relation=relation, rng=rng)
        )
        return
    for seed in range(20):
        whole = sample(seed)
        yield whole, whole.without([11])
        yield whole.take(np.arange(1)), whole.take(np.arange(0))


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
def test_every_replay_passes_and_some_reach_the_bound(guarantee):
    """With nearest-neighbour teachers one row can turn a teacher's vote on every query."""
    asked = question(guarantee)
    results = [replay(asked, a.rows(), b.rows()) for a, b in pairs(guarantee.relation)]
    assert all(result.passed for result in results), [str(r) for r in results if not r.passed]
    assert max(result.share for result in results) == pytest.approx(1, abs=1e-6)


@pytest.mark.statistical
@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
def test_black_box_bounds_stay_within_the_claim(guarantee, rehearsal):
    """On the pair that reaches the bound, with shards drawn anew in every answer; false alarm 1e-2 each."""
    asked = question(guarantee, n_teachers=1)
    first, second = max(
        pairs(guarantee.relation), key=lambda pair: replay(asked, pair[0].rows(), pair[1].rows()).share
    )
    result = audit_question(asked, first.rows(), second.rows(), trials=2000, noise=rehearsal)
    assert result.passed, str(result)


def test_the_noise_is_for_all_queries_together():
    pure, zcdp = question(GUARANTEES[0]), question(GUARANTEES[2])
    assert pure.plan.draws["votes"].scale == pytest.approx(2 * 3 / 2)
    assert zcdp.plan.draws["votes"].scale == pytest.approx(math.sqrt(2 * 3), rel=1e-4)
    assert pure.price.epsilon == pytest.approx(2)
    assert accountant.zcdp(zcdp.price.event) == pytest.approx(0.5, rel=1e-6)


def test_shards_are_drawn_without_looking_at_rows_and_even(rehearsal):
    counts = np.bincount(_shards(100_000, 7, rehearsal), minlength=7)
    assert np.abs(counts - 100_000 / 7).max() < 5 * math.sqrt(100_000 / 7)


class Failing(KNeighborsClassifier):
    def fit(self, X, y):
        raise RuntimeError("7.31 is a row")


def test_a_failing_teacher_votes_like_an_empty_one():
    """Whether training fails must not be told: every teacher still casts one vote a query."""
    from dataclasses import replace as changed

    from privada.audit.transcript import coupled, witnessed

    asked = changed(question(GUARANTEES[0]), teacher=Failing())
    call = witnessed(asked, sample().rows(), coupled(0))[0][0]
    assert call.exact.sum(axis=1).tolist() == [3, 3, 3]


def data(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    return rng.normal(0, 0.2, size=(n, 2)) + np.where(y, 0.3, -0.3)[:, None], np.array(["no", "yes"])[y]


@pytest.mark.parametrize("budget", [{"epsilon": 3}, {"epsilon": 2, "delta": 1e-5}, {"rho": 0.3}], ids=str)
@pytest.mark.parametrize("relation", ["add/remove", "replace-one"])
def test_a_student_learns(budget, relation):
    X, y = data()
    Xt, yt = data(seed=1)
    model = PATE(
        40,
        classes=("no", "yes"),
        norm_bound=1.0,
        n_queries=20,
        relation=relation,
        size=2000,
        teacher=DecisionTreeClassifier(max_depth=2),
        insecure_seed=2,
        **budget,
    )
    with pytest.warns(RehearsalWarning):
        assert model.fit(X, y, Xt=Xt).score(Xt, yt) > 0.9
    assert model.queries_.shape == (20, 2)
    assert model.guarantee_.relation == Relation.parse(relation)
    assert model.predict_proba(Xt).sum(axis=1) == pytest.approx(1)


def test_one_class_of_answers_is_a_constant_student():
    X, y = data()
    only = X[y == "yes"]
    model = PATE(10, epsilon=50, classes=("no", "yes"), norm_bound=1.0, n_queries=4, insecure_seed=0)
    with pytest.warns(RehearsalWarning):
        model.fit(only, y[y == "yes"], Xt=only)
    assert set(model.predict(X)) == {"yes"}
    assert model.predict_proba(X)[:, 1] == pytest.approx(1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_teachers": 0}, "n_teachers"),
        ({"epsilon": None}, "exactly one of epsilon and rho"),
        ({"classes": None}, "Expected classes"),
        ({"norm_bound": None}, "Expected norm_bound"),
        ({"n_queries": 10_000}, "n_queries"),
        ({"teacher": "tree"}, "teacher"),
        ({"relation": "replace-one"}, "size"),
    ],
)
def test_bad_parameters_are_named(change, message):
    X, y = data(n=50)
    good = {"epsilon": 1, "classes": ("no", "yes"), "norm_bound": 1.0}
    with pytest.raises(InputError, match=message):
        PATE(**(good | change)).fit(X, y, Xt=X)


def test_public_points_are_needed():
    X, y = data(n=50)
    model = PATE(epsilon=1, classes=("no", "yes"), norm_bound=1.0)
    with pytest.raises(InputError, match="Expected Xt"):
        model.fit(X, y)
    with pytest.raises(InputError, match="2 columns"):
        model.fit(X, y, Xt=X[:, :1])
