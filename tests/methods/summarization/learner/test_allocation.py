import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privada.exceptions import InputError
from privada.methods.summarization import Reference, allocate, estimate_shares

SIZES = st.lists(st.integers(1, 300), min_size=1, max_size=12)


@given(SIZES, st.integers(0, 2**31), st.floats(0, 1))
def test_it_sums_up_and_nobody_gives_more_than_it_has(sizes, seed, part):
    rng = np.random.default_rng(seed)
    total = max(1, int(part * sum(sizes)))
    given_ = allocate(sizes, rng.uniform(0, 1, len(sizes)) * rng.integers(0, 2), total=total)
    assert given_.sum() == total
    assert np.all((given_ >= 0) & (given_ <= sizes))


def test_obvious_answers():
    assert allocate([7], [0.2], total=7).tolist() == [7]
    assert allocate([50, 50, 50], [0.4, 0.4, 0.4], total=30).tolist() == [10, 10, 10]
    assert allocate([100, 100], [0.0, 0.0], total=20).tolist() == [10, 10]
    assert allocate([100, 100], [0.9, 0.0], total=50).tolist() == [50, 0]
    few = allocate([100, 100], [0.1, 0.01], total=60)
    assert few[0] >= few[1]
    with pytest.raises(InputError, match="at most 9 rows"):
        allocate([4, 5], [1, 1], total=10)


def test_shares_are_drawn_together_as_noise_demands():
    rng = np.random.default_rng(0)
    n = np.array([1400, *[7] * 255])
    true = np.array([0.8, *[0.3] * 255])
    noisy = n * true + 13 * rng.normal(size=256)
    found = estimate_shares(n, noisy, variance=13.0**2)
    assert found[0] == pytest.approx(0.8, abs=0.05)
    assert np.std(found[1:]) < 0.1
    clear = estimate_shares([100, 100, 100], [10, 50, 90], variance=1.0)
    assert clear == pytest.approx([0.1, 0.5, 0.9], abs=0.02)
    assert np.ptp(estimate_shares([100, 100], [50, 50], variance=100.0)) == 0


def test_the_hyperplane_is_half_way_and_freed_of_noise():
    a, b = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
    plane = Reference.between(a, b, noise=(0.0, 0.0))
    assert plane.threshold == 0
    assert plane.direction @ b < plane.threshold < plane.direction @ a
    rng = np.random.default_rng(1)
    noisy = [
        Reference.between(a + 0.3 * rng.normal(size=3), b, noise=(0.09, 0.0)).threshold for _ in range(4000)
    ]
    assert np.mean(noisy) == pytest.approx(0, abs=0.04)
