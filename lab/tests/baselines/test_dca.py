"""The discrepancy by DCA: a lower bound of the supremum, attained where it is easy."""

import numpy as np
import pytest

from privada_lab.baselines.dca import dca_discrepancy


def moments(seed, d=3):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(40, d + 1)) * rng.uniform(0.3, 2, size=d + 1)
    return rows.T @ rows / len(rows)


def gap(A, B, w):
    joint = np.append(-w, 1.0)
    return abs(joint @ (A - B) @ joint)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_attained_in_the_ball_and_better_than_chance(seed):
    A, B = moments(seed), moments(seed + 100)
    found = dca_discrepancy(A, B, 1.0)
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(500, 3))
    points /= np.maximum(1.0, np.linalg.norm(points, axis=1))[:, None]
    tried = max(gap(A, B, w) for w in points)
    assert found >= 0.5 * tried
    largest = np.abs(np.linalg.eigvalsh(A - B)).max() * 2  # |(-w, 1)|² <= 2
    assert found <= largest


def test_equal_samples_differ_by_nothing_and_the_order_does_not_matter():
    A, B = moments(1), moments(2)
    assert dca_discrepancy(A, A, 1.0) == pytest.approx(0, abs=1e-9)
    assert dca_discrepancy(A, B, 1.0) == pytest.approx(dca_discrepancy(B, A, 1.0), rel=1e-6)


def test_a_larger_ball_holds_no_smaller_discrepancy():
    A, B = np.diag([4.0, 1.0, 0.5]), np.diag([1.0, 2.0, 0.2])
    found = [dca_discrepancy(A, B, radius) for radius in (0.5, 1.0, 2.0)]
    assert found == sorted(found)
    assert found[1] == pytest.approx(3.3, rel=1e-3)


def test_dca_finds_a_local_maximum_never_more_than_the_supremum():
    from privada.methods.reweighting.questions.supremum import moments, of_moments

    rng = np.random.default_rng(1)
    for _ in range(5):
        A, B = (moments(rng.normal(size=(30, 4)), rng.normal(size=30)) for _ in range(2))
        exact = of_moments(A - B, 1.0).value
        assert 0.5 * exact <= dca_discrepancy(A, B, 1.0) <= exact * (1 + 1e-9)
