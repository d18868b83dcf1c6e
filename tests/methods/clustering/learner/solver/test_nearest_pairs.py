"""Books of a swap search beside what counting anew gives."""

import numpy as np
import pytest

from privada.methods.clustering.learner.solver import nearest_pairs


@pytest.fixture
def books():
    rng = np.random.default_rng(0)
    table, caps, weights = rng.random((40, 4)), rng.random(40), rng.random(40)
    near, second, losses = np.empty(40), np.empty(40), np.empty(5)
    slot = np.empty(40, dtype=np.int64)
    nearest_pairs.rank_all(table, caps, weights, near, second, slot, losses)
    return table, caps, weights, near, second, slot, losses


def paid(table, caps, weights):
    return np.minimum(table.min(axis=1), caps) @ weights


def test_the_two_nearest_and_the_loss_of_each_centre(books):
    table, caps, weights, near, second, slot, losses = books
    both = np.sort(np.column_stack([table, caps]), axis=1)
    assert np.array_equal(near, both[:, 0])
    capped = slot == 4
    assert np.array_equal(second, np.where(capped, caps, both[:, 1])), "nobody is farther than its cap"
    assert np.array_equal(slot, np.column_stack([table, caps]).argmin(axis=1))
    for centre in range(4):
        without = paid(np.delete(table, centre, axis=1), caps, weights)
        assert losses[centre] == pytest.approx(without - paid(table, caps, weights))
    assert losses[4] == np.inf, "the cap is never removed"


def test_the_best_removal_and_the_books_after_it(books):
    table, caps, weights, near, second, slot, losses = books
    column = np.random.default_rng(1).random(40) * 0.5
    change, out = nearest_pairs.best_removal(column, weights, near, second, slot, losses)
    costs = []
    for centre in range(4):
        swapped = table.copy()
        swapped[:, centre] = column
        costs.append(paid(swapped, caps, weights))
    assert out == int(np.argmin(costs))
    assert change == pytest.approx(min(costs) - paid(table, caps, weights))
    nearest_pairs.replace(column, out, table, caps, weights, near, second, slot, losses)
    again = [np.empty(40), np.empty(40), np.empty(40, dtype=np.int64), np.empty(5)]
    nearest_pairs.rank_all(table, caps, weights, *again)
    for kept, fresh in zip((near, second, slot, losses), again, strict=True):
        assert np.allclose(kept, fresh)
