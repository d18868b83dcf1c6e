"""How much of a noisy correction is believed."""

import numpy as np
import pytest

from privada.methods.reweighting.learner.evidence import Block, approach, estimate, symmetric

SIZES = (0.01, 0.1, 0.5, 2.0)


def released(w, n, noise, rng, k):
    X = rng.normal(size=(n, k))
    A = X.T @ X + np.diag(noise * rng.normal(size=k))
    b = X.T @ (X @ w + rng.normal(size=n)) + noise * rng.normal(size=k)
    return A, b[:, None]


def test_a_clear_correction_is_taken_and_noise_is_not():
    rng = np.random.default_rng(0)
    k, w = 6, np.r_[1.0, -1.0, np.zeros(4)]
    A, b = released(w, 4000, 5.0, rng, k)
    found = estimate(A, b, [Block(k, SIZES)], residual=1.0, noise_moments=5.0, noise_products=5.0)
    assert found[:, 0] == pytest.approx(w, abs=0.1)
    A, b = released(0 * w, 200, 2000.0, rng, k)
    found = estimate(A, b, [Block(k, SIZES)], residual=1.0, noise_moments=2000.0, noise_products=2000.0)
    assert np.abs(found).max() < 0.5


@pytest.mark.statistical
def test_an_estimate_is_hardly_ever_worse_than_nothing():
    """Mean squared error over 200 draws at every size of noise; with this seed it cannot fail by chance."""
    rng = np.random.default_rng(1)
    for size in (0.0, 0.1, 0.5):
        for noise in (1.0, 30.0, 300.0, 3000.0):
            lost = []
            for _ in range(50):
                w = size * rng.normal(size=5)
                A, b = released(w, 300, noise, rng, 5)
                found = estimate(
                    A, b, [Block(5, SIZES)], residual=1.0, noise_moments=noise, noise_products=noise
                )
                lost.append(((found[:, 0] - w) ** 2).sum() - (w**2).sum())
            assert np.mean(lost) < 0.1


def test_a_matrix_that_is_noise_alone_becomes_the_public_one():
    rng = np.random.default_rng(2)
    k, public = 8, 100 * np.eye(8)
    noise = rng.normal(size=(k, k)) / 2
    near, kept = approach(public + noise + noise.T, public, 1.0)
    assert kept < 0.6
    assert approach(3 * public, public, 1.0)[1] > 0.99
    assert near == pytest.approx(near.T)


def test_entries_make_the_matrix():
    A = np.arange(9.0).reshape(3, 3)
    A = A + A.T
    entries = np.where(np.eye(3) > 0, A, np.sqrt(2) * A)[np.triu_indices(3)]
    assert symmetric(entries, 3) == pytest.approx(A)
