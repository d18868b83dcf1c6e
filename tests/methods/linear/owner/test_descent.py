"""A noisy descent is answered step by step: exact sums at the point that the released ones lead to."""

from dataclasses import replace

import numpy as np
import pytest

from privada.audit.transcript import coupled, record_draws
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
