"""Removing from a noisy mean what the rows cannot express."""

from functools import partial

import numpy as np
import pytest

from privada.methods.summarization import FourierEmbedding, denoise

RNG = np.random.default_rng(3)


E = FourierEmbedding.of(width=3, n_features=30, gamma=0.4, random_state=2)


X = RNG.normal(size=(120, 3))


H = E.transform(X)


def test_denoising_brings_a_noisy_mean_nearer_to_the_truth():
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(side, 0.4, size=(400, 3)) for side in (-1.5, 0.0, 1.5)])
    features, truth = E.transform(rows), E.mean(rng.normal(1.5, 0.4, size=(150, 3)))
    before, after = [], []
    for seed in range(8):
        noisy = truth + 0.08 * rng.normal(size=len(truth))
        found, weights = denoise(features, noisy, 0.08**2, random_state=seed)
        before.append(np.sum((noisy - truth) ** 2))
        after.append(np.sum((found - truth) ** 2))
        assert weights.sum() == pytest.approx(1)
        assert weights.min() >= 0
        assert weights[800:].sum() > 0.8
    assert np.mean(after) < 0.2 * np.mean(before)


def test_a_mixture_that_is_not_found_fails_no_answer(monkeypatch):
    """Whether a search ends in time depends on rows; if the answer failed, others would be asked for more."""
    import scipy.optimize

    hasty = partial(scipy.optimize.nnls, maxiter=1)
    with pytest.raises(RuntimeError):
        hasty(H[:20].T, H[:20].mean(axis=0))
    monkeypatch.setattr(scipy.optimize, "nnls", hasty)
    found, weights = denoise(H, E.mean(X[:30]), 0.01)
    assert np.isfinite(found).all()
    assert weights.sum() == pytest.approx(1)


def test_without_noise_or_rows_nothing_is_changed():
    target = E.mean(X)
    assert np.array_equal(denoise(H, target, 0.0)[0], target)
    assert np.array_equal(denoise(H[:2], target, 1.0)[0], target)
    same = np.repeat(H[:1], 50, axis=0)
    assert np.allclose(denoise(same, target, 0.1)[0], H[0])
