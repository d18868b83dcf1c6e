import numpy as np
import pytest

from privada.lab.datasets.source_target import Pair, synthetic
from privada.lab.experiments.clustering import Costs, measure
from privada.lab.experiments.clustering.contenders import BUDGETS, ablations, baselines, printed
from privada.lab.experiments.clustering.costs import shares_table
from privada.lab.experiments.clustering.labelled import _accuracy, _private_weights, _ways
from privada.lab.experiments.clustering.pictured import picture


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


def test_tables_and_curves_show_every_private_method(costs):
    (row,) = shares_table([("a set", costs)], title="t").rows
    assert row == ("a set", "pure", "66.7", "0.0", "50.0", "2.00")
    curves = costs.curves("t", "pure")
    assert [line.name for line in curves.series] == ["ClusterT", "ours, pure", "STC"]
    assert curves.series[1].mean == [7.0, 3.0]


def test_one_small_run_has_every_method_and_ours_between_the_ends():
    costs, pair = Costs(), synthetic(2, seed=1, source_size=1500, target_size=200)
    light = {name: source for name, source in baselines().items() if name != "DP-GAN"}
    measure(costs, pair, ks=(9,), seed=0, beside=printed() | light | ablations(), coresets=True)
    assert costs.shares("STC")[0] == 100
    assert costs.shares("pure")[0] > 50
    for name in (
        "printed NNA pure",
        "printed NAS t=75 zcdp",
        "TreeKmeans coreset pure",
        "printed NAS no coreset pure",
    ):
        assert np.isfinite(costs.mean(name)).all()
    assert set(costs.seconds) >= {"pure", "zcdp", "printed NNA pure", "PrivateKmeans zcdp"}


def test_the_picture_has_the_source_the_target_and_what_was_chosen():
    shown = picture(synthetic(3, seed=1, source_size=500, target_size=80), BUDGETS["pure"])
    assert [len(layer.points) for layer in shown.layers[-2:]] == [8, 8]
    assert len(shown.table().rows) > 580


def test_chosen_labels_improve_the_private_model():
    """Two classes that lie elsewhere in the target: a few labels there are worth a lot."""
    from privada.lab.datasets.source_target import LabelledPair

    rng = np.random.default_rng(0)
    y, yt = rng.integers(2, size=600), rng.integers(2, size=200)
    X = rng.normal(0, 0.05, size=(600, 2)) + 0.2 * np.column_stack([2 * y - 1, 0 * y])
    Xt = rng.normal(0, 0.05, size=(200, 2)) + 0.2 * np.column_stack([0 * yt, 2 * yt - 1])
    pair = LabelledPair(Pair("p", X, Xt), X, y, Xt, yt, (0, 1))
    start = _private_weights(pair)
    before = np.mean(start.predict(Xt) == yt)
    for name, choose in _ways(0).items():
        assert _accuracy(pair, choose(pair, 10), start) > before + 0.2, name
