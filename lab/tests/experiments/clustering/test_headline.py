"""One small run of everything."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.report.exhibit import Figure
from privada_lab.datasets.source_target import Pair, synthetic
from privada_lab.experiments.clustering import Costs, headline, measure
from privada_lab.experiments.clustering.contenders import TRIVIAL, ablations, baselines, printed, trivial


def test_one_small_run_has_every_method_and_ours_between_the_ends():
    costs, pair = Costs(), synthetic(2, seed=1, source_size=1500, target_size=200)
    light = {name: source for name, source in baselines().items() if name != "DP-GAN"}
    measure(costs, pair, ks=(9,), seed=0, beside=trivial() | printed() | light | ablations())
    assert costs.shares("STC")[0] == 100
    assert costs.shares("pure")[0] > 50
    for name in (
        "printed NNA pure",
        "printed NAS t=75 zcdp",
        "TreeKmeans coreset pure",
        "printed NAS no coreset pure",
        "printed NAS balanced zcdp",
        "printed NAS delta pure",
        "ClusterT coreset",
    ):
        assert np.isfinite(costs.mean(name)).all()
    assert "printed NAS delta zcdp" not in costs.found
    for name in (*(f"{name} zcdp" for name in TRIVIAL), "uniform"):
        assert costs.gap_closed(name) <= costs.gap_closed("zcdp")
    figure = headline._over_trivial({"synthetic 2": costs}, 1)
    assert figure.value >= 0
    assert figure.beside.count("synthetic 2") == 2
    assert headline._below_trivial(costs) == (figure.value > 0)  # a rival may find the same points
    assert set(costs.seconds) >= {"pure", "zcdp", "printed NNA pure", "PrivateKmeans zcdp"}


def test_all_target_points_are_used_where_asked(monkeypatch):
    pair = synthetic(2, seed=1, source_size=800, target_size=150)
    monkeypatch.setattr(headline, "MOST_TARGETS", 40)
    monkeypatch.setattr(headline, "real_pairs", lambda *_, **__: [Pair("grids", pair.source, pair.target)])
    with pytest.raises(InputError, match="--data"):
        list(headline.run_all_targets(runs=1))
    shown = [each for each in headline.run_all_targets(runs=1, data=".") if isinstance(each, Figure)]
    assert {each.figure for each in shown} >= {"real_pairs_all_targets"}
    assert "all target points" in shown[0].beside
    assert len(headline._subset(pair, 0, None).target) == 150
    assert len(headline._subset(pair, 0, 40).target) == 40
