import numpy as np
import pytest

from privada.datasets.adaptation import BENCHMARKS, Domain
from privada.exceptions import InputError
from privada.experiments import transport
from privada.experiments.registry import experiment, untracked


def domain(name, seed, n=80, width=30):
    rng = np.random.default_rng(seed)
    y = rng.integers(10, size=n)
    X = 4 * np.abs(np.random.default_rng(9).normal(size=(10, width)))[y] + np.abs(rng.normal(size=(n, width)))
    return Domain(name, X, y)


def test_scores_are_means_over_pairs_of_means_over_runs():
    scores = transport.Scores()
    for pair, values in ((("a", "b"), [1.0, 3.0]), (("b", "a"), [4.0])):
        for value in values:
            scores.add("ours", pair, value)
    assert scores.mean("ours") == 3.0


def test_the_default_adapts_and_its_figures_have_their_names():
    domains = {name: domain(name, i) for i, name in enumerate(BENCHMARKS["googlenet"].domains)}
    found = {figure.figure: figure for figure in transport._googlenet(domains, 1, untracked)}
    assert {
        "googlenet_AW_eps1",
        "googlenet_AW_eps2",
        "googlenet_WA_eps2",
        "googlenet_WA_eps4",
    } <= found.keys()
    assert found["mean_gap_to_best_nonprivate_eps4"].better == "lower"
    assert found["googlenet_mean_eps8"].value > 50


def test_the_distance_has_both_cases():
    domains = {name: domain(name, i, n=140) for i, name in enumerate(BENCHMARKS["googlenet"].domains)}
    found = [figure.figure for figure in transport._wasserstein(domains, 1, untracked)]
    assert found == ["wasserstein_error_vs_projection_only", "wasserstein_error_vs_projection_only_case_ii"]


def test_without_data_it_says_what_it_needs(tmp_path):
    with pytest.raises(InputError, match="--data"):
        list(experiment("transport").run(runs=1, data=tmp_path, track=untracked))
