import pytest

from privada.datasets.source_target import synthetic
from privada.experiments.clustering import Costs, measure


def test_shares_are_of_the_gap():
    costs = Costs()
    for k, ignoring, ours, seeing in ((5, 10.0, 7.0, 6.0), (10, 4.0, 3.0, 2.0)):
        for method, cost in (("ClusterT", ignoring), ("pure", ours), ("STC", seeing)):
            costs.add(method, k, cost)
    assert costs.shares("pure").tolist() == [75.0, 50.0]
    assert costs.gap_closed("pure") == pytest.approx(100 * 4 / 6)
    assert costs.gap_closed("STC") == 100


def test_one_small_run_has_every_method_and_ours_between_the_ends():
    costs = Costs()
    measure(costs, synthetic(2, seed=1, source_size=1500, target_size=200), ks=(9,), seed=0)
    assert set(costs.found) == {"ClusterT", "STC", "pure", "zcdp", "printed pure", "printed zcdp"}
    assert costs.shares("STC")[0] == 100
    assert costs.shares("pure")[0] > 50
