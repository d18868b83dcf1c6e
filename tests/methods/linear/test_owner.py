"""The owner's side: exact sums at released points, each record by itself, none beyond its bound."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from privada.audit.transcript import coupled, record_draws
from privada.methods.linear.owner import (
    FEWEST,
    Singles,
    add_outer,
    add_pairs,
    add_pulls,
    add_softmax,
    add_weighted,
    logistic_pull,
    mapped,
    scored,
    squared_pull,
)
from privada.methods.linear.questions import losses
from privada.methods.reweighting.learner.public_models import fit_source
from privada.parties.answering import answer_rows

LOSSES = ("squared", "logistic", "softmax")


@pytest.mark.parametrize("threshold", [None, 1.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_sum_is_taken_at_the_point_that_was_released(loss, threshold, descent, private_rows):
    if loss == "squared" and threshold:
        pytest.skip("the bound clips residuals")
    offset = np.linspace(-0.2, 0.3, 3 if loss == "softmax" else 1)
    more = {"intercepts": offset, "unit": 0.5, "constant": 0.4, "transform": np.ones((3, 3)) - 2 * np.eye(3)}
    # a bound so large that no contribution is shortened
    question, rows = descent(loss, bound=100.0, threshold=threshold, **more), private_rows(loss)
    tape, payload = record_draws(question, rows, coupled(1))
    batch = next(iter(rows.batches()))
    Z = np.column_stack([np.full(len(batch.X), 0.4), batch.X]) @ question.transform
    y = batch.labels / 0.5 if loss == "squared" else batch.labels
    V, velocity = question.start()
    most = 100.0 if loss == "squared" else threshold or 1e9
    for drawn in tape:
        exact = drawn.call.mechanism.grid.values(drawn.call.exact)
        expected = Z.T @ losses.pull(loss, offset + Z @ V, y, most)
        np.testing.assert_allclose(exact, expected, atol=1e-3)
        V, velocity = question.go_on(V, velocity, payload[drawn.call.name])
    assert [drawn.call.name for drawn in tape] == list(question.names())


@pytest.mark.parametrize("loss", LOSSES)
def test_a_contribution_is_shortened_and_never_the_score(loss, descent, private_rows):
    """Far beyond the bound, one record's sum has the bound's length, short of what the grid truncates."""
    rows = private_rows(loss, order=[7])
    exact = []
    answer_rows(
        descent(loss, bound=0.01, steps=1),
        rows,
        noise=coupled(1),
        witness=lambda _, mechanism, value: exact.append(mechanism.grid.values(value)),
    )
    assert 0.0099 < np.linalg.norm(exact[0]) <= 0.01


@pytest.mark.parametrize("link", ["probability", "log-odds"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_public_models_make_the_offset(n_classes, link, descent, private_rows):
    rng, loss = np.random.default_rng(0), "logistic" if n_classes == 2 else "softmax"
    X = rng.uniform(-1, 1, size=(200, 2))
    codes = np.digitize(X[:, 0], [0.0, 0.5][: n_classes - 1])
    models = fit_source(X, codes, n_classes=n_classes, limits=None, base="linear").features
    models, outputs = replace(models, link=link), 1 if n_classes == 2 else n_classes
    offset = {"models": models, "model_weights": 0.7 * np.eye(outputs), "intercepts": np.full(outputs, 0.1)}
    rows = private_rows(loss)
    batch = next(iter(rows.batches()))
    predictions = models.predict(batch.X)
    if link == "log-odds":
        p = replace(models, link="probability").predict(batch.X)
        odds = np.log(np.maximum(p, 0.01)) - (np.log(np.maximum(1 - p, 0.01)) if outputs == 1 else 0)
        np.testing.assert_allclose(predictions, odds)
    tape, _ = record_draws(descent(loss, bound=100.0, **offset), rows, coupled(1))
    exact = tape[0].call.mechanism.grid.values(tape[0].call.exact)
    pulls = losses.pull(loss, 0.7 * predictions + 0.1, batch.labels, 1e9)
    np.testing.assert_allclose(exact, batch.X.T @ pulls, atol=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_order_of_rows_changes_no_bit(loss, descent, private_rows):
    order = np.random.default_rng(3).permutation(60)
    first, second = (
        answer_rows(descent(loss), rows, noise=coupled(1))
        for rows in (private_rows(loss), private_rows(loss, order=order))
    )
    assert all(first[name].tobytes() == second[name].tobytes() for name in first)


def test_with_hardly_any_noise_the_descent_comes_near_the_model(descent, private_rows):
    question = descent(steps=60, step_size=0.5, momentum=0.5)
    payload = answer_rows(question, private_rows(), noise=coupled(1))
    V, velocity = question.start()
    for name in question.names():
        V, velocity = question.go_on(V, velocity, payload[name])
    np.testing.assert_allclose(V[:, 0], [0.5, -0.3], atol=0.05)


@pytest.mark.parametrize("loss", ["squared", "logistic", "softmax"])
@pytest.mark.parametrize("size", [0.0, 1.0, 1e8, 1e160, 1e300, 1e307, np.inf, np.nan])
def test_no_contribution_is_longer_than_its_bound_whatever_the_point(loss, size):
    """Also where scores overflow: one record's sum, in grid steps, never passes the bound."""
    rng = np.random.default_rng(0)
    outputs, per_step = 3 if loss == "softmax" else 1, 2.0**20
    bound = 0.7 * losses.largest_pull(loss, 0.5)
    for _ in range(200):
        Z = rng.normal(size=(1, 4)) * 10.0 ** rng.integers(-3, 4)
        V = size * rng.normal(size=(4, outputs))
        base, y = rng.normal(size=(1, outputs)), np.array([float(rng.integers(0, max(outputs, 2)))])
        sums = np.zeros((4, outputs), dtype=np.int64)
        with np.errstate(over="ignore", invalid="ignore"):
            _add(loss, sums, Z, base, y, V, bound, per_step)
        assert np.linalg.norm(sums / per_step) <= bound


def _add(loss, sums, Z, base, y, V, bound, per_step):
    """As an owner adds a batch."""
    if loss == "softmax":
        add_softmax(sums, Z, base, y, V, 0.5, bound, per_step)
    else:
        rows = Singles.of(Z, bound=bound, per_step=per_step)
        v = V[:, 0].astype(np.float32)
        add_pulls(sums[:, 0], rows, base[:, 0], y, v, loss=loss, threshold=0.5)


def records(n=50, k=4, outputs=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, k)), rng.normal(size=(n, outputs)), rng.integers(0, outputs, n).astype(float)


def test_rows_are_mapped_clipped_and_one_that_overflows_is_nothing():
    X, _, _ = records()
    transform, shift = np.random.default_rng(1).normal(size=(4, 2)), np.array([0.5, -0.5])
    free = mapped(X, transform, shift, np.inf)
    np.testing.assert_allclose(free, X @ transform + shift, rtol=1e-12)
    clipped = mapped(X, transform, shift, 0.3)
    assert (np.linalg.norm(clipped, axis=1) <= 0.3).all()
    short = np.linalg.norm(free, axis=1) < 0.29
    assert np.array_equal(clipped[short], free[short])
    assert not mapped(np.full((1, 4), 1e308), transform * 1e3, shift, 1.0).any()


def test_scores_are_those_of_the_formula_each_by_itself():
    X, weights, _ = records(k=5)
    weights = weights[:5]
    found = scored(X, weights, np.arange(3.0))
    np.testing.assert_allclose(found, X @ weights + np.arange(3), rtol=1e-11, atol=1e-12)
    assert scored(X[7:8], weights, np.arange(3.0)).tobytes() == found[7:8].tobytes()


@pytest.mark.parametrize("score", [-800.0, -2.0, 0.0, 0.3, 40.0, 800.0])
@pytest.mark.parametrize("y", [0.0, 1.0])
def test_pulls_are_those_of_the_losses(score, y):
    scores, labels = np.array([[score]]), np.array([y])
    found = logistic_pull(score, y, 0.5)
    assert found == pytest.approx(losses.pull("logistic", scores, labels, 0.5)[0, 0], abs=1e-12)
    assert abs(found) <= losses.largest_pull("logistic", 0.5)
    assert squared_pull(score, y, 0.5) == score - y


def test_softmax_sums_are_those_of_the_formula():
    Z, base, y = records()
    V, per_step = np.random.default_rng(2).normal(size=(4, 3)), 2.0**25
    sums = np.zeros((4, 3), dtype=np.int64)
    add_softmax(sums, Z, base, y, V, 0.5, 1e9, per_step)
    pulls = losses.pull("softmax", base + Z @ V, y, 0.5)
    np.testing.assert_allclose(sums / per_step, Z.T @ pulls, atol=1e-5)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_adds_nothing(wrong):
    Z, push, _ = records(n=1)
    sums = np.zeros((4, 3), dtype=np.int64)
    for factor, pushed in ((np.array([wrong]), push), (np.array([1.0]), np.full((1, 3), wrong))):
        add_outer(sums, Z, pushed, factor, 1.0, 2.0**20)
    add_outer(sums, Z, push, np.array([1.5]), 1.0, 2.0**20)  # nor does a factor beyond 1
    add_weighted(sums[:, 0], Z, np.array([wrong]), 2.0**20)
    assert not sums.any()


def test_outer_products_are_shortened_to_the_bound_and_weighted_sums_truncated():
    Z, push, _ = records(n=1)
    sums = np.zeros((4, 3), dtype=np.int64)
    add_outer(sums, Z, push, np.array([0.5]), 0.2, 2.0**20)
    assert 0.0999 < np.linalg.norm(sums / 2.0**20) <= 0.1
    total = np.zeros(2, dtype=np.int64)
    add_weighted(total, np.array([[1.0, -1.0]]), np.array([0.9]), 1.0)
    assert total.tolist() == [0, 0]


def test_moments_of_pairs_are_those_of_the_formula():
    Z, _, e = records()
    pairs = np.column_stack([Z, e])
    sums = np.zeros((len(pairs.T), len(pairs.T)), dtype=np.int64)
    add_pairs(sums, Z, e, 2.0**40)
    np.testing.assert_allclose(sums / 2.0**40, np.triu(pairs.T @ pairs), atol=len(Z) * 2.0**-40)


PER_STEP = 2.0**19
ONE_OUTPUT = ("squared", "logistic")


def rows(n, k, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, k))
    Z /= np.maximum(1.0, np.linalg.norm(Z, axis=1, keepdims=True))
    return Z, 0.1 * rng.normal(size=n), rng.integers(0, 2, n).astype(float), rng.normal(size=k)


def summed(loss, Z, base, y, v, threshold=0.5, bound=0.5, per_step=PER_STEP):
    sums = np.zeros(Z.shape[1], dtype=np.int64)
    singles = Singles.of(Z, bound=bound, per_step=per_step)
    with np.errstate(over="ignore"):
        add_pulls(sums, singles, base, y, v.astype(np.float32), loss=loss, threshold=threshold)
    return sums


def pulls(loss, Z, base, y, v, bound=0.5):
    scores = base + Z @ v.astype(np.float32).astype(float)
    raw = (scores - y) if loss == "squared" else losses.pull(loss, scores[:, None], y, 0.5)[:, 0]
    return np.clip(raw, -bound / np.linalg.norm(Z, axis=1), bound / np.linalg.norm(Z, axis=1))


@pytest.mark.parametrize("loss", ONE_OUTPUT)
@pytest.mark.parametrize(("n", "k"), [(1, 1), (7, 5), (40, 33), (2 * FEWEST + 1, 133)])
def test_sums_are_those_of_the_formula_in_double_precision(loss, n, k):
    Z, base, y, v = rows(n, k)
    exact = (Z * pulls(loss, Z, base, y, v)[:, None]).sum(axis=0) * PER_STEP
    assert np.abs(summed(loss, Z, base, y, v) - exact).max() <= 2.5 * n


@pytest.mark.parametrize("loss", ONE_OUTPUT)
def test_a_record_contributes_the_same_at_every_place_and_in_every_batch(loss):
    Z, base, y, v = rows(2 * FEWEST + 3, 133)
    whole = summed(loss, Z, base, y, v)
    order = np.random.default_rng(1).permutation(len(Z))
    assert (summed(loss, Z[order], base[order], y[order], v) == whole).all()
    cuts = [0, 1, 2, 17, 900, 3000, len(Z)]
    parts = [slice(*span) for span in pairwise(cuts)]
    assert (sum(summed(loss, Z[at], base[at], y[at], v) for at in parts) == whole).all()


@pytest.mark.parametrize("loss", ONE_OUTPUT)
@pytest.mark.parametrize("bound", [1e-3, 0.5, 7.0])
@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1.0, 1e9, 1e17, 1e200])
def test_no_record_contributes_more_than_the_bound(loss, bound, scale):
    for seed in range(40):
        Z, base, y, v = rows(1, 1 + seed % 40, seed)
        Z *= scale / np.linalg.norm(Z)
        found = summed(loss, Z, base, y, 1e4 * v, threshold=7.0, bound=bound)
        assert np.linalg.norm(found.astype(float)) <= bound * PER_STEP


def test_a_long_row_adds_as_much_as_the_bound_lets_it_and_a_boundless_one_nothing():
    one = np.ones(1)
    assert summed("squared", np.array([[1e9]]), one, 0 * one, 0 * one)[0] == pytest.approx(2.0**18, rel=1e-5)
    assert summed("squared", np.array([[1e19]]), one, 0 * one, 0 * one)[0] == 0


@pytest.mark.parametrize("v", [np.inf, np.nan, 1e300, 3e38])
def test_scores_that_overflow_add_nothing_beyond_the_bound(v):
    Z, base, y, _ = rows(50, 4)
    assert np.abs(summed("squared", Z, base, y, np.full(4, v))).max() <= 50 * 0.5 * PER_STEP


def test_sums_beyond_32_bits_are_carried():
    n = 5000
    found = summed("squared", np.ones((n, 1)), np.zeros(n), np.full(n, -9.0), np.zeros(1), 1.0, 1.0, 2.0**29)
    assert found[0] == n * int(np.float32(1 - 2.0**-20) * 2.0**29)


def test_no_rows_add_nothing():
    assert not summed("squared", np.zeros((0, 3)), np.zeros(0), np.zeros(0), np.ones(3)).any()
