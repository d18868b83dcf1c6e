"""The experiment of the core: the specification's numbers."""

import pytest

from privada_lab.experiments import experiment
from privada_lab.experiments.core import max_norm_epsilon
from privada_lab.experiments.registry import untracked


def test_core_reproduces_the_specification():
    *found, picture = experiment("core").run(runs=1, data=None, track=untracked)
    figures = {each.figure: each for each in found}
    ours, printed = picture.series[:2]
    assert ours.mean == pytest.approx(printed.mean, abs=5e-5)
    assert figures["sigma_table_worst_relative_error"].met
    assert figures["sigma_vs_dp_accounting_worst_relative_error"].value < 1e-5
    assert figures["zcdp_rho_eps1_delta1e-5"].value == pytest.approx(0.03056, abs=5e-6)
    assert max_norm_epsilon() == pytest.approx(49.75)
