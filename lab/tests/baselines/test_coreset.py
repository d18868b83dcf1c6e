"""Coresets of a public target: they cover, they are small, and they are the same every time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privada.exceptions import InputError
from privada_lab.baselines.coreset import Coreset


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.floats(0, 1.5))
def test_every_point_is_within_the_radius_of_a_chosen_one(seed, d, radius):
    rng = np.random.default_rng(seed)
    points = np.round(rng.normal(size=(120, d)), 1)  # with duplicates
    found = Coreset.of(points, radius=radius)
    chosen = points[found.indices]
    distances = np.linalg.norm(points - chosen[found.labels], axis=1)
    assert distances.max() <= radius * (1 + 1e-12)
    assert np.allclose(distances, np.linalg.norm(points[:, None] - chosen[None], axis=2).min(axis=1))
    assert found.weights.sum() == 120
    assert found.weights.min() >= 1
    assert np.array_equal(found.indices, np.unique(found.indices))
    again = Coreset.of(points, radius=radius)
    assert np.array_equal(again.indices, found.indices)


def test_a_radius_of_zero_keeps_one_of_each():
    points = np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0], [0.0, 0.0], [5.0, 5.0]])
    found = Coreset.of(points, radius=0)
    assert found.indices.tolist() == [0, 1, 4]
    assert found.weights.tolist() == [2, 2, 1]


def test_one_point_is_enough_for_a_large_radius():
    points = np.random.default_rng(0).uniform(size=(500, 2))
    assert len(Coreset.of(points, radius=2.0)) == 1


def test_it_is_small():
    """A line of unit steps: each chosen point covers itself and one on either side, so a third is needed."""
    found = Coreset.of(np.arange(300.0)[:, None], radius=1.0)
    assert len(found) == 100
    points = np.random.default_rng(0).normal((0.95, 0.95), 0.4, size=(1000, 2)) / 6  # Synthetic 1
    assert len(Coreset.of(points, radius=0.05)) < 40
    assert len(Coreset.of(points, radius=0.02)) < len(Coreset.of(points, radius=0.01)) < 400


@pytest.mark.parametrize(("target", "radius"), [([], 1), ([[np.nan]], 1), ([[0.0]], -1), ([[0.0]], np.inf)])
def test_bad_targets_are_refused_by_name(target, radius):
    with pytest.raises(InputError, match="target|radius"):
        Coreset.of(target, radius=radius)
