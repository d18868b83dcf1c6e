"""Accelerated k-medoids: near the best choice, and never better than the solver by more than luck."""

import numpy as np
import pytest

from privada.methods.clustering.learner.medoids import cost, medoids, source_distances
from privada_lab.baselines import accelerated_medoids as module
from privada_lab.baselines.accelerated_medoids import accelerated_medoids


def test_costs_are_near_those_of_the_solver():
    rng = np.random.default_rng(0)
    T, S = rng.normal(size=(1500, 3)), rng.normal(1.0, 1.0, size=(50, 3))
    caps = source_distances(T, S)
    chosen = accelerated_medoids(T, 12, caps=caps, random_state=1)
    assert len(set(chosen.tolist())) == 12
    best = medoids(T, 12, caps=caps, random_state=0).cost
    assert best * 0.999 <= cost(T, S, T[chosen]) <= best * 1.05


def test_a_race_finds_a_member_near_the_middle(monkeypatch):
    monkeypatch.setattr(module, "BATCH", 50)
    rng = np.random.default_rng(0)
    members = rng.normal(size=(1200, 2))
    distances = np.linalg.norm(members[:, None] - members[None], axis=2).mean(axis=1)
    assert distances[module._race(members, rng)] <= distances.min() * 1.02


def test_all_points_can_be_chosen():
    assert sorted(accelerated_medoids([[0.0], [1.0], [5.0]], 3, random_state=0).tolist()) == [0, 1, 2]


@pytest.mark.parametrize("seed", [0, 1])
def test_the_same_seed_chooses_the_same(seed):
    T = np.random.default_rng(5).normal(size=(200, 2))
    first, again = (accelerated_medoids(T, 5, random_state=seed) for _ in range(2))
    assert np.array_equal(first, again)
