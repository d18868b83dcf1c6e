"""One small run of everything."""

import numpy as np

from privada.lab.datasets.source_target import synthetic
from privada.lab.experiments.clustering import Costs, headline, measure
from privada.lab.experiments.clustering.contenders import TRIVIAL, ablations, baselines, printed, trivial


def test_one_small_run_has_every_method_and_ours_between_the_ends():
    costs, pair = Costs(), synthetic(2, seed=1, source_size=1500, target_size=200)
    light = {name: source for name, source in baselines().items() if name != "DP-GAN"}
    measure(costs, pair, ks=(9,), seed=0, beside=trivial() | printed() | light | ablations(), coresets=True)
    assert costs.shares("STC")[0] == 100
    assert costs.shares("pure")[0] > 50
    for name in (
        "printed NNA pure",
        "printed NAS t=75 zcdp",
        "TreeKmeans coreset pure",
        "printed NAS no coreset pure",
    ):
        assert np.isfinite(costs.mean(name)).all()
    for name in (*(f"{name} zcdp" for name in TRIVIAL), "uniform"):
        assert costs.gap_closed(name) <= costs.gap_closed("zcdp")
    figure = headline._over_trivial({"synthetic 2": costs}, 1)
    assert figure.value >= 0
    assert figure.beside.count("synthetic 2") == 2
    assert headline._below_trivial(costs) == (figure.value > 0)  # a rival may find the same points
    assert set(costs.seconds) >= {"pure", "zcdp", "printed NNA pure", "PrivateKmeans zcdp"}
