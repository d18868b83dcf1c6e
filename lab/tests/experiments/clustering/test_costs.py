"""Costs between ignoring the source and seeing it."""

import pytest

from privada_lab.experiments.clustering import Costs
from privada_lab.experiments.clustering.costs import shares_table


@pytest.fixture
def costs():
    found = Costs()
    for k, ignoring, ours, seeing in ((5, 10.0, 7.0, 6.0), (10, 4.0, 3.0, 2.0)):
        for method, cost in (("ClusterT", ignoring), ("pure", ours), ("STC", seeing)):
            found.add(method, k, cost)
            found.add(method, k, cost)
    found.took("pure", 2.0)
    return found


def test_shares_are_of_the_gap(costs):
    assert costs.shares("pure").tolist() == [75.0, 50.0]
    assert costs.gap_closed("pure") == pytest.approx(100 * 4 / 6)
    assert costs.gap_closed("STC") == 100
    assert costs.interval("pure") == pytest.approx((400 / 6, 400 / 6)), "two equal runs"


def test_ablations_are_not_drawn(costs):
    for name in ("printed NAS t=75 pure", "printed NAS balanced pure", "printed NAS delta pure"):
        for k in (5, 10):
            costs.add(name, k, 8.0)
    assert [line.name for line in costs.curves("t", "pure").series] == ["ClusterT", "ours, pure", "STC"]


def test_tables_and_curves_show_every_private_method(costs):
    (row,) = shares_table([("a set", costs)], title="t").rows
    assert row == ("a set", "pure", "66.7", "0.0", "50.0", "2.00")
    curves = costs.curves("t", "pure")
    assert [line.name for line in curves.series] == ["ClusterT", "ours, pure", "STC"]
    assert curves.series[1].mean == [7.0, 3.0]
