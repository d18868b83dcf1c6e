"""Private linear baselines: they learn, keep their guarantee, and are audited like methods."""

import numpy as np
import pytest

from privada.audit import Sample, neighbours, replay
from privada.audit.transcript import coupled
from privada.exceptions import InputError
from privada.parties import Number, Rows, Schema
from privada.privacy import ApproxDP, PureDP, Unit
from privada.privacy.accounting import accountant, curves
from privada_lab.baselines import DM, KMM, DPLinearRegression, NoisySGDRegressor, PrivateDM
from privada_lab.baselines.adaptation import weights_for_moments
from privada_lab.baselines.private.linear import MinibatchDescent, SecondMoments

BUDGET = {"epsilon": 4.0, "delta": 1e-6}
CLAIM = ApproxDP(**BUDGET, relation="replace-one")


def rows(n=4000, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, size=(n, d))
    return X, X @ np.linspace(1, -1, d) + 0.05 * rng.normal(size=n)


@pytest.mark.parametrize("kind", [DPLinearRegression, NoisySGDRegressor])
def test_they_learn(kind):
    X, y = rows()
    model = kind(**BUDGET, norm_bound=1.0).fit(X, y)
    assert model.score(X, y) > 0.5
    assert model.guarantee_ == CLAIM


def test_the_packing_is_an_isometry_and_unpacks():
    X, y = rows(n=50)
    question = SecondMoments(width=3, size=50, norm_bound=1.0, guarantee=CLAIM)
    a, b = np.triu_indices(3)
    packed = X[:, a] * X[:, b] * np.where(a == b, 1.0, np.sqrt(2))
    assert np.linalg.norm(packed, axis=1) == pytest.approx((X**2).sum(axis=1))
    M, c = question.unpacked(np.r_[packed.sum(axis=0), X.T @ y])
    assert pytest.approx(X.T @ X / 50) == M
    assert pytest.approx(X.T @ y / 50) == c


QUESTIONS = [
    SecondMoments(width=2, size=30, norm_bound=1.0, guarantee=CLAIM),
    SecondMoments(width=2, size=30, norm_bound=1.0, labelled=False, guarantee=CLAIM),
    MinibatchDescent(width=2, size=30, norm_bound=1.0, epochs=3, batches=2, guarantee=CLAIM),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.kind)
def test_every_replay_passes_and_nothing_is_wasted(question):
    X, y = rows(n=30, d=2)
    schema = Schema.of_numbers(bounds=(-1, 1), width=2, size=30, label=Number(name="y", low=-1, high=1))
    sample = Sample.of(X, y=y, schema=schema)
    for pair in neighbours(sample, relation="replace-one", rng=np.random.default_rng(0)):
        result = replay(
            question, pair.sample.rows(coupled(0)), pair.neighbour.rows(coupled(0)), pair=pair.name
        )
        assert result.passed, str(result)
    mu = accountant.gaussian_mu(question.price.event)
    assert 0.99 * CLAIM.delta <= curves.gaussian_delta(CLAIM.epsilon, mu) <= CLAIM.delta


def test_bad_questions_are_named():
    for wrong, word in (
        ({"guarantee": PureDP(epsilon=1, relation="replace-one")}, "delta"),
        ({"guarantee": ApproxDP(**BUDGET, relation="add/remove")}, "replace-one"),
        ({"size": 0}, "size"),
        ({"norm_bound": -1}, "norm_bound"),
    ):
        with pytest.raises(InputError, match=word):
            SecondMoments(**({"width": 2, "size": 3, "norm_bound": 1.0, "guarantee": CLAIM} | wrong))
    with pytest.raises(InputError, match="norm_bound"):
        DPLinearRegression(**BUDGET).fit(*rows(n=20))


def test_weights_bring_the_source_to_the_target():
    """A quadratic fitted by a line: weights move the line to where the target is."""
    rng = np.random.default_rng(0)
    S, T = rng.uniform(-1, 1, size=(400, 2)), rng.uniform(0.3, 1, size=(200, 2)) * [1, 0.1]
    before = np.abs(np.linalg.eigvalsh(S.T @ S / 400 - T.T @ T / 200)).max()
    q = weights_for_moments(S, T.T @ T / 200)
    after = np.abs(np.linalg.eigvalsh((S * q[:, None]).T @ S - T.T @ T / 200)).max()
    assert after < 0.3 * before
    assert q.sum() == pytest.approx(1)
    assert np.all(q >= 0)
    y, truth = S[:, 0] ** 2, T[:, 0] ** 2
    plain = np.mean((T @ np.linalg.lstsq(S, y, rcond=None)[0] - truth) ** 2)
    for model in (KMM(penalty=1e-4), DM(penalty=1e-4)):
        assert np.mean((model.fit(S, y, T).predict(T) - truth) ** 2) < plain
    private = PrivateDM(**BUDGET, norm_bound=1.5, penalty=1e-4).fit(S, y, T)
    assert np.isfinite(private.predict(T)).all()
    with pytest.raises(InputError, match="one width"):
        KMM().fit(S, y, T[:, :1])


def hostile_pair(bound=1e10):
    """Neighbours in a row that is far out, where bounds of a question may be tiny."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, size=(12, 3)), rng.uniform(-1, 1, size=12)
    X[0], X[1] = [bound, 0.0, -bound], 0.0
    schema = Schema.of_numbers(
        bounds=(-bound, bound), width=3, size=12, label=Number(name="y", low=-bound, high=bound)
    )
    return [Rows(part, y=y, schema=schema) for part in (X, np.vstack([[[0.0, 1e-5, 0.0]], X[1:]]))]


@pytest.mark.parametrize("bound", [5e-324, 1e-308, 1.0, 1e308])
def test_bounds_at_the_ends_of_floats_move_no_sum_past_its_price(bound):
    """Rows over a tiny bound overflow, some of them: the answer failed on those rows only."""
    for more in ({"norm_bound": bound}, {"norm_bound": 1.0, "label_bound": bound}):
        for kind in (SecondMoments, MinibatchDescent):
            found = replay(kind(width=3, size=12, guarantee=CLAIM, **more), *hostile_pair())
            assert found.passed, found


@pytest.mark.parametrize("step_size", [1e200, 1e308])
def test_weights_beyond_floats_fail_on_no_row(step_size):
    """0 times infinity is no number: a row with a 0 could not be put on the grid, others could."""
    question = MinibatchDescent(width=3, size=12, norm_bound=1.0, step_size=step_size, guarantee=CLAIM)
    found = replay(question, *hostile_pair())
    assert found.passed, found


def test_a_person_of_fewer_rows_moves_no_other_row_to_another_batch():
    """Equal batches took rows of others to fill up: they moved further than a person was priced for."""
    rng = np.random.default_rng(0)
    person = Unit(name="person", max_rows=3)
    schema = Schema.of_numbers(
        bounds=(-1, 1), width=3, size=40, label=Number(name="y", low=-1, high=1), person_id="who", max_rows=3
    )
    X, y, who = rng.uniform(-1, 1, size=(40, 3)), rng.uniform(-1, 1, size=40), np.arange(40)
    who[-3:] = 99
    pair = [
        Rows(X[:n], y=y[:n], person=who[:n], schema=schema, noise=coupled(0)) for n in (40, 38)
    ]  # the last person has three rows, or one
    question = MinibatchDescent(
        width=3,
        size=40,
        norm_bound=1.0,
        epochs=1,  # the words of a second one would not be the same rows'
        batches=4,
        guarantee=ApproxDP(**BUDGET, relation="replace-one", unit=person),
    )
    for seed in range(20):
        found = replay(question, *pair, seed=seed)
        assert found.passed, found
