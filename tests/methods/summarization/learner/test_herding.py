from functools import partial

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.summarization import FourierEmbedding, denoise, herd, marginal_gains

RNG = np.random.default_rng(3)
E = FourierEmbedding.of(width=3, n_features=30, gamma=0.4, random_state=2)
X = RNG.normal(size=(120, 3))
H = E.transform(X)


def slow(H, target, size, start=0.0, start_size=0):
    """Try every row in every step."""
    chosen, total = [], np.zeros(H.shape[1]) + start
    for step in range(size):
        count = start_size + step + 1
        gaps = [
            np.inf if i in chosen else np.sum((target - (total + h) / count) ** 2) for i, h in enumerate(H)
        ]
        chosen.append(int(np.argmin(gaps)))
        total = total + H[chosen[-1]]
    return chosen


@pytest.mark.parametrize("seeded", [False, True])
def test_it_is_the_greedy_choice(seeded):
    target = E.mean(X[:30])
    more = {"start": H[:10].sum(axis=0), "start_size": 10} if seeded else {}
    assert herd(H, target, 25, **more).tolist() == slow(H, target, 25, **more)


def test_single_precision_matches_as_well():
    target = E.mean(X[:30])
    exact, quick = (herd(part, target, 40) for part in (H, H.astype(np.float32)))
    gaps = [np.sum((target - H[chosen].mean(axis=0)) ** 2) for chosen in (exact, quick)]
    assert gaps[1] == pytest.approx(gaps[0], rel=0.2)
    assert len(set(quick.tolist())) == 40


def test_all_rows_none_and_too_many():
    assert sorted(herd(H, H[0], len(H)).tolist()) == list(range(len(H)))
    assert herd(H, H[0], 0).size == 0
    with pytest.raises(InputError, match="at most the 120 rows"):
        herd(H, H[0], 121)


def test_gains_sum_to_the_objective():
    target = E.mean(X[:30])
    order, gains = marginal_gains(H[:40], target)
    mean = H[:40].mean(axis=0)
    assert sorted(order.tolist()) == list(range(40))
    assert gains.sum() == pytest.approx(2 * target @ mean - mean @ mean)


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


def test_one_row_can_change_several_choices():
    """So a model that is private for one point of a summary is not, at that price, private for one row."""
    target = E.mean(X[:30] + 0.3)
    most = 0
    for index in range(40):
        other = X.copy()
        other[index] = X[index] + 1.0
        changed = set(herd(E.transform(other), target, 20).tolist()) - set(herd(H, target, 20).tolist())
        most = max(most, len(changed))
    assert most > 2
