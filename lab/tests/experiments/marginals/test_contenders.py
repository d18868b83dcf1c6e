"""Contenders on one small set: the same network for everybody, trained for the same number of steps."""

import numpy as np
import pytest

from privada_lab.experiments.marginals import contenders, sets


@pytest.fixture
def data(small):
    return sets.GENERATED[2].load(3)


@pytest.mark.parametrize("rows", [50, 200, 1000, 100_000])
def test_a_network_takes_about_as_many_steps_whatever_its_rows(rows):
    model = contenders.network((32, 32), rows, seed=0)
    steps = model.max_iter * max(1, rows / contenders.BATCH)
    assert steps >= 0.5 * contenders.STEPS[2] * min(1, rows / contenders.BATCH)
    assert model.max_iter >= 1
    assert model.batch_size <= rows
    assert model.n_iter_no_change == model.max_iter


def test_the_headline_has_every_row_in_percent(data):
    found = contenders.headline(data, sets.GENERATED[2], 0)
    trivial = {name for name in found if name.startswith(contenders.TRIVIAL)}
    assert {name.removeprefix(contenders.TRIVIAL) for name in trivial} == {
        "noisy majority",
        "noisy counts",
        "objective perturbation",
        "DP logistic, δ = 1e-05",
    }
    assert set(found) - trivial == {
        "any",
        "any at 0.25",
        "marginal",
        "printed",
        "target-trained",
        "majority",
    }
    assert all(0 <= value <= 100 for value in found.values())
    assert found["majority"] >= 40


def test_single_features_are_measured_where_they_have_a_goal(data):
    assert "marginal" not in contenders.headline(data, sets.GENERATED[0], 0)


def test_accuracy_is_the_share_of_right_test_labels(data):
    class Fit:
        def codes(self, X):
            return np.where(np.arange(len(X)) % 2 == 0, data.y_test, 1 - data.y_test)

    assert contenders.accuracy(Fit(), data) == pytest.approx(0.5, abs=0.01)


def test_ours_pays_for_what_it_says(data):
    fitted = contenders.learner(data, sets.GENERATED[2], 0, epsilon=0.25)
    spent = [release.guarantee.epsilon for release in fitted.fit_.releases]
    assert sum(spent) <= 0.25 * (1 + 1e-9)
