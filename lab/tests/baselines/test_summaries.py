import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.summarization import mmd2
from privada_lab.baselines.summaries import fourier_threshold, kernel_greedy, uniform_sample

RNG = np.random.default_rng(0)
X = np.vstack([RNG.normal(1, 0.5, (80, 2)), RNG.normal(-1, 0.5, (80, 2))])
V = RNG.normal(1, 0.5, (60, 2))


def test_greedy_is_the_best_step_under_the_exact_kernel():
    chosen = kernel_greedy(X, V, 6, gamma=0.5)
    for step in range(6):
        before = chosen[:step].tolist()
        gaps = [np.inf if i in before else mmd2(X[[*before, i]], V, gamma=0.5) for i in range(len(X))]
        assert gaps[chosen[step]] == pytest.approx(min(gaps))
    assert np.all(kernel_greedy(X, V, 40, gamma=0.5)[:20] < 80)


def test_uniform_takes_alike_from_all():
    parts = uniform_sample([50, 50, 50, 3], 41, random_state=1)
    assert sum(len(part) for part in parts) == 41
    assert len(parts[3]) == 3
    assert max(len(part) for part in parts[:3]) - min(len(part) for part in parts[:3]) <= 1
    assert all(len(set(part.tolist())) == len(part) for part in parts)
    assert [len(part) for part in uniform_sample([1] * 9, 4, random_state=0)].count(1) == 4


def test_thresholding_takes_the_nearest_and_not_a_match():
    H = RNG.normal(size=(30, 4))
    target = np.array([1.0, 0, 0, 0])
    assert set(fourier_threshold(H, target, 5)) == set(np.argsort(-H[:, 0])[:5])


def test_more_than_all_is_refused():
    for make in (
        lambda: kernel_greedy(X, V, 161, gamma=1.0),
        lambda: uniform_sample([3, 4], 8),
        lambda: fourier_threshold(X, V[0], 161),
    ):
        with pytest.raises(InputError, match="at most"):
            make()
