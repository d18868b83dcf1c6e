"""Weights of public rows: KMM and DM come nearer to the target than even weights, within their bounds."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada_lab.baselines.adaptation import DM, KMM, _capped_simplex, ridge, weights_for_moments

RNG = np.random.default_rng(0)
SOURCE = RNG.uniform(-1, 1, size=(300, 2))
TARGET = RNG.uniform(0.2, 1, size=(150, 2))


def test_a_ridge_is_that_of_the_normal_equations_and_ignores_rows_of_no_weight():
    y = SOURCE @ [1.0, -2.0]
    np.testing.assert_allclose(ridge(SOURCE, y, 0.0), [1.0, -2.0], atol=1e-9)
    wrong = np.r_[y[:200], y[200:] + 9]
    weights = np.r_[np.ones(200), np.zeros(100)]
    np.testing.assert_allclose(ridge(SOURCE, wrong, 0.0, weights), [1.0, -2.0], atol=1e-9)
    assert np.linalg.norm(ridge(SOURCE, y, 10.0)) < 1


@pytest.mark.parametrize("model", [KMM(), DM()], ids=["KMM", "DM"])
def test_weights_are_a_distribution_that_prefers_rows_like_the_target(model):
    weights = model.fit(SOURCE, SOURCE[:, 0] ** 2, TARGET).sample_weight_
    assert weights.sum() == pytest.approx(1, abs=1e-6)
    assert (weights >= 0).all()
    like = (SOURCE > 0.2).all(axis=1)
    assert weights[like].sum() > 2 * like.mean()


def test_no_weight_of_kmm_is_above_its_bound():
    weights = KMM(bound=2.0).fit(SOURCE, SOURCE[:, 0], TARGET).sample_weight_
    assert weights.max() <= 2.0 / len(SOURCE) * (1 + 1e-9)


def test_weights_for_moments_come_nearer_than_even_ones():
    moments = TARGET.T @ TARGET / len(TARGET)

    def gap(weights):
        found = (SOURCE * weights[:, None]).T @ SOURCE
        return np.abs(np.linalg.eigvalsh(found - moments)).max()

    even = np.full(len(SOURCE), 1 / len(SOURCE))
    assert gap(weights_for_moments(SOURCE, moments)) < 0.1 * gap(even)
    assert np.array_equal(weights_for_moments(SOURCE, SOURCE.T @ SOURCE / len(SOURCE), rounds=5), even)


def test_labels_do_not_decide_weights():
    first, second = (DM().fit(SOURCE, y, TARGET) for y in (SOURCE[:, 0], RNG.normal(size=300)))
    assert np.array_equal(first.sample_weight_, second.sample_weight_)


def test_other_widths_are_refused():
    with pytest.raises(InputError, match="one width, got 2 and 3"):
        KMM().fit(SOURCE, SOURCE[:, 0], np.zeros((5, 3)))


@pytest.mark.parametrize("cap", [0.3, 0.5, 2.0])
def test_projections_to_the_capped_simplex_are_nearest(cap):
    v = np.array([0.9, 0.4, -0.2, 0.1])
    found = _capped_simplex(v, cap)
    assert found.sum() == pytest.approx(1)
    assert found.min() >= 0
    assert found.max() <= cap
    others = RNG.dirichlet(np.ones(4), size=500)
    others = others[others.max(axis=1) <= cap]
    assert (np.linalg.norm(others - v, axis=1) >= np.linalg.norm(found - v) - 1e-9).all()
