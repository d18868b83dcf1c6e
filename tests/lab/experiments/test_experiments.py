import os

import joblib
import numpy as np
import pytest

from privada.exceptions import InputError
from privada.lab.experiments import experiment, experiments
from privada.lab.experiments.cells import make_task
from privada.lab.experiments.core import max_norm_epsilon
from privada.lab.experiments.intervals import mean_interval
from privada.lab.experiments.registry import untracked
from privada.lab.experiments.sharing import shared


def test_cells_comes_between_guessing_and_exact_counts():
    tracked = []

    def track(items, what):
        tracked.append(what)
        return items

    figures = {each.figure: each for each in experiment("cells").run(runs=3, data=None, track=track)}
    value = {name.removeprefix("cells_digits_accuracy_"): each.value for name, each in figures.items()}
    assert set(value) == {"eps0.25", "eps1", "eps4", "majority", "nonprivate"}
    assert value["majority"] + 0.2 < value["eps1"] < value["nonprivate"] + 0.05
    assert all(each.goal is None and each.runs == 3 and each.interval for each in figures.values())
    assert tracked


def test_the_bounds_of_the_task_hold_for_every_possible_image():
    task = make_task(5)
    low, high = task.bounds
    assert (low <= task.X).all()
    assert (high >= task.X).all()
    assert len(task.X) > len(task.X_test) > 250


def test_core_reproduces_the_specification():
    figures = {each.figure: each for each in experiment("core").run(runs=1, data=None, track=untracked)}
    assert figures["sigma_table_worst_relative_error"].met
    assert figures["sigma_vs_dp_accounting_worst_relative_error"].value < 1e-5
    assert figures["zcdp_rho_eps1_delta1e-5"].value == pytest.approx(0.03056, abs=5e-6)
    assert max_norm_epsilon() == pytest.approx(49.75)


def test_the_registry():
    assert all(name == each.name and each.runs >= each.quick_runs for name, each in experiments().items())
    with pytest.raises(InputError, match="one of cells, clustering, core, marginals"):
        experiment("everything")


def test_intervals_cover_the_mean():
    rng = np.random.default_rng(0)
    covered = [
        low <= 0 <= high for low, high in (mean_interval(rng.normal(size=5)).ends for _ in range(2000))
    ]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.02)
    assert mean_interval([1.0]).ends is None


def _who(number):
    return number, os.getpid()


def test_shared_runs_come_in_order_from_other_processes():
    with joblib.parallel_config("loky", n_jobs=2):
        found = list(shared(_who, range(6), "numbers", untracked))
    assert [number for number, _ in found] == list(range(6))
    assert os.getpid() not in {process for _, process in found}
    assert {process for _, process in shared(_who, range(3), "numbers", untracked)} == {os.getpid()}
