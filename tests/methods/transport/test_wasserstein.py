"""The private distance: its plan is the one that the noisy rows have, batch by batch."""

import numpy as np
import pytest

from privada.methods.transport import private_wasserstein

RNG = np.random.default_rng(3)
NEAR, FAR = RNG.normal(0, 0.1, (60, 2)), RNG.normal(0.5, 0.1, (80, 2))


def test_the_plan_couples_released_rows_with_target_points():
    found = private_wasserstein(
        NEAR, FAR, bounds=(-1, 1), norm_bound=1, n_components=2, epsilon=20, delta=1e-4
    )
    (plan,), (met,) = found.plans, found.met
    assert plan.shape == (60, 80)
    assert np.array_equal(met, np.arange(80))
    assert np.allclose(plan.sum(axis=1), 1 / 60)
    assert np.allclose(plan.sum(axis=0), 1 / 80)


def test_every_batch_has_a_plan_and_the_points_that_it_met():
    found = private_wasserstein(
        NEAR,
        FAR,
        bounds=(-1, 1),
        norm_bound=1,
        n_components=2,
        epsilon=4,
        delta=1e-3,
        batch_size=20,
        batches=2,
    )
    assert [plan.shape for plan in found.plans] == [(20, 20)] * 2
    assert all(len(set(met.tolist())) == 20 and met.max() < 80 for met in found.met)
    assert [float(plan.sum()) for plan in found.plans] == pytest.approx([1, 1])
