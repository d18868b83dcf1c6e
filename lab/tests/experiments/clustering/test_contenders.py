"""Contenders: the paper's settings, the same budgets for everybody, and points that the solver can use."""

from importlib.util import find_spec

import numpy as np
import pytest

from privada_lab.datasets.source_target import RADIUS, synthetic
from privada_lab.experiments.clustering import contenders

PAIR = synthetic(2, seed=1, source_size=400, target_size=60)


def test_everybody_gets_the_same_budget_under_the_papers_relation():
    assert set(contenders.BUDGETS) == {"pure", "zcdp"}
    assert {str(budget.relation) for budget in contenders.BUDGETS.values()} == {"add/remove"}
    assert contenders._numbers(contenders.BUDGETS["pure"]) == {"epsilon": 3.0}
    assert contenders._numbers(contenders.BUDGETS["zcdp"]) == {"rho": 3.0}


def test_the_generator_stands_beside_where_torch_is():
    assert ("DP-GAN" in contenders.baselines()) == (find_spec("torch") is not None)
    assert {"PrivateKmeans", "TreeKmeans"} <= set(contenders.baselines())


def test_ablations_change_one_thing_each():
    assert set(contenders.ablations()) == {
        "printed NAS t=75",
        "printed NAS t=300",
        "printed NAS balanced",
        "printed NAS delta",
        "printed NNA no coreset",
        "printed NAS no coreset",
    }


@pytest.mark.parametrize("budget", contenders.BUDGETS)
@pytest.mark.parametrize("name", ["printed NNA", "printed NAS"])
def test_printed_points_repeat_with_their_seed(name, budget):
    source, budget = contenders.printed()[name], contenders.BUDGETS[budget]
    points, again, other = (source(PAIR, budget, seed) for seed in (0, 0, 1))
    assert np.array_equal(points, again)
    assert not np.array_equal(points, other)
    assert points.shape[1] == PAIR.target.shape[1]


def test_ours_are_places_of_the_target():
    chosen = contenders.ours(PAIR, 5, contenders.BUDGETS["zcdp"])
    assert len(set(chosen.tolist())) == 5
    assert 0 <= min(chosen) <= max(chosen) < len(PAIR.target)
    assert np.linalg.norm(PAIR.target, axis=1).max() <= RADIUS * (1 + 1e-9)
