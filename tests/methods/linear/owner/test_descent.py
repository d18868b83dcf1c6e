"""A noisy descent is answered step by step: exact sums at the point that the released ones lead to."""

import numpy as np
import pytest

from privada.audit.transcript import coupled, record_draws
from privada.methods.linear.questions import losses
from privada.parties.answering import answer_rows

LOSSES = ("squared", "logistic", "softmax")


@pytest.mark.parametrize("loss", LOSSES)
def test_every_sum_is_taken_at_the_point_that_was_released(loss, descent, private_rows):
    question, rows = descent(loss, radius=100.0), private_rows(loss)
    tape, payload = record_draws(question, rows, coupled(1))
    batch = next(iter(rows.batches()))
    X, y = batch.X, batch.labels
    V, velocity = question.start()
    threshold = 100.0 if loss == "squared" else 1.0  # a radius so large that no residual is clipped
    for drawn in tape:
        exact = drawn.call.mechanism.grid.values(drawn.call.exact)
        wanted = X.T @ losses.pull(loss, X @ V, y, threshold)
        np.testing.assert_allclose(exact, wanted, atol=1e-3)
        V, velocity = question.go_on(V, velocity, payload[drawn.call.name])
    assert [drawn.call.name for drawn in tape] == list(question.names())


@pytest.mark.parametrize("loss", LOSSES)
def test_the_order_of_rows_changes_no_bit(loss, descent, private_rows):
    order = np.random.default_rng(3).permutation(60)
    first, second = (
        answer_rows(descent(loss), rows, noise=coupled(1))
        for rows in (private_rows(loss), private_rows(loss, order=order))
    )
    assert all(first[name].tobytes() == second[name].tobytes() for name in first)


def test_with_hardly_any_noise_the_descent_comes_near_the_model(descent, private_rows):
    question = descent(alpha=0.0, steps=60, step_size=0.5, momentum=0.5)
    payload = answer_rows(question, private_rows(), noise=coupled(1))
    V, velocity = question.start()
    for name in question.names():
        V, velocity = question.go_on(V, velocity, payload[name])
    np.testing.assert_allclose(V[:, 0], [0.5, -0.3], atol=0.05)
