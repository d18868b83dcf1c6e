import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.summarization import FourierEmbedding, herd, marginal_gains

RNG = np.random.default_rng(3)
E = FourierEmbedding.of(width=3, n_features=30, gamma=0.4, random_state=2)
X = RNG.normal(size=(120, 3))
H = E.transform(X)


def slow(H, target, size):
    """Try every row in every step."""
    chosen, total = [], np.zeros(H.shape[1])
    for step in range(size):
        count = step + 1
        gaps = [
            np.inf if i in chosen else np.sum((target - (total + h) / count) ** 2) for i, h in enumerate(H)
        ]
        chosen.append(int(np.argmin(gaps)))
        total = total + H[chosen[-1]]
    return chosen


def test_it_is_the_greedy_choice():
    target = E.mean(X[:30])
    assert herd(H, target, 25).tolist() == slow(H, target, 25)


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
