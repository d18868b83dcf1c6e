"""Lower bounds, solvers and a network."""

import numpy as np
import pytest

from privada_lab.datasets.source_target import synthetic
from privada_lab.experiments.clustering import Costs
from privada_lab.experiments.clustering.contenders import BUDGETS
from privada_lab.experiments.clustering.theory import bounds_table, network_table, small_world, solvers_table

PAIR = synthetic(3, seed=1, source_size=600, target_size=200)


def test_bounds_stand_beside_what_is_paid_and_fall_with_k():
    costs = Costs()
    for k in (5, 20):
        costs.add("pure", k, 0.5)
        costs.add("STC", k, 0.25)
    table = bounds_table(PAIR, costs, BUDGETS["pure"])
    assert [row[0] for row in table.rows] == ["5", "20"]
    few, many = (np.array(row[1:4], dtype=float) for row in table.rows)
    assert (few > many).all()
    assert (many > 0).all()
    assert [row[4] for row in table.rows] == ["0.25", "0.25"]
    assert "probability 0.047" in table.note
    assert "add/remove" in table.note


def test_ours_costs_no_more_than_accelerated_medoids():
    (row,) = solvers_table([PAIR]).rows
    assert float(row[1]) <= float(row[2]) * 1.01


def test_a_network_without_rewired_ties_is_a_ring_of_two_steps():
    steps = small_world(40, seed=0)
    assert steps.max() <= 10
    assert steps[0, 1] == 1
    assert np.array_equal(steps, steps.T)


def test_ours_lies_between_ignoring_and_seeing_the_members():
    rows = network_table(BUDGETS.values()).rows
    ignored, *ours, seen = (float(row[2]) for row in rows)
    assert seen <= min(ours)
    assert max(ours) < ignored
    assert rows[1][1] == str(BUDGETS["pure"])
    assert "add/remove" in rows[1][1]
    assert ignored == pytest.approx(1.5, abs=0.2)
