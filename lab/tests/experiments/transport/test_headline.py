"""The figures have their names, in a quick look too."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.report.exhibit import Curves, Figure
from privada.report.tables import Table
from privada_lab.datasets.adaptation import BENCHMARKS
from privada_lab.experiments import transport
from privada_lab.experiments.registry import experiment, untracked
from privada_lab.experiments.transport import accuracies, contenders, distances, headline


def test_a_quick_look_leaves_out_what_is_slow_and_no_figure(scores, quick, domains):
    assert set(quick.found) < set(scores.found)
    assert len(quick.found["PATE, eps 4"]) == 1, "on the first pair alone"
    assert len(scores.found["PATE, eps 4"]) == 6
    assert len(quick.found[headline.best(quick)[0]]) == 6, "what counts as best was run on all pairs"
    assert {f"ours, eps {epsilon:g}" for epsilon in accuracies.EPSILONS} <= set(quick.found)
    means = [{figure.figure for figure in headline._means("surf", each, 1)} for each in (scores, quick)]
    assert means[0] == means[1]
    first = list(distances.distances(domains("googlenet", n=60), 1, untracked))
    assert [type(each) for each in first] == [Figure, Figure]


@pytest.mark.parametrize("which", ["scores", "quick"])
def test_figures_have_their_names(request, which):
    scores = request.getfixturevalue(which)
    found = {figure.figure: figure for figure in headline._googlenet(scores, 1)}
    assert found.keys() == {
        "googlenet_AW_eps1",
        "googlenet_AW_eps2",
        "googlenet_WA_eps2",
        "googlenet_WA_eps4",
        "mean_gap_to_best_nonprivate_eps4",
    }
    margins = {figure.figure: figure.value for figure in headline._margins({"surf": scores}, 1)}
    strict = margins["smallest_margin_over_any_private_source_only_eps4"]
    assert strict <= margins["smallest_margin_over_dp_source_only_eps4"]
    assert "reviews_and_surf_points_over_dp_logistic_eps4" in margins
    assert "label" not in headline.best(scores)[0]
    trivial = headline._over_trivial("surf", scores, 1)
    assert trivial.value > 0
    for name in ("noisy majority", "DP logistic", "noisy counts"):
        assert name in trivial.beside


def test_without_data_it_says_what_it_needs(tmp_path):
    with pytest.raises(InputError, match="--data"):
        list(experiment("transport").run(runs=1, data=tmp_path, track=untracked))


def test_a_feature_file_that_is_there_gets_its_table(tmp_path, domain):
    benchmark = BENCHMARKS["visda"]
    (tmp_path / benchmark.file).parent.mkdir()
    arrays = {}
    for i, name in enumerate(benchmark.domains):
        found = domain(name, i, n=40)
        arrays |= {f"x_{name}": found.X.astype(np.float32), f"y_{name}": found.y + 1}
    np.savez(tmp_path / benchmark.file, **arrays)
    items = list(transport.run(runs=1, data=tmp_path))
    tables = [item for item in items if isinstance(item, Table)]
    assert ["Table 2" in table.title for table in tables] == [True] * 4
    assert tables[-1].rows[-1][0] == "all"
    assert len(tables[-1].rows) == benchmark.n_classes + 1
    assert {item.figure for item in items if isinstance(item, Figure)} == {
        f"visda_mean_eps{epsilon:g}" for epsilon in accuracies.EPSILONS
    } | {"visda_points_over_trivial_eps4"}
    picture = next(item for item in items if isinstance(item, Curves))
    assert picture.series[0].mean == [
        item.value for item in items if getattr(item, "figure", "").startswith("visda_mean")
    ]


def test_without_pot_what_needs_it_is_left_out(domains, monkeypatch):
    monkeypatch.setattr(contenders, "find_spec", lambda name: None)
    (case, *_) = transport.cases("visda", domains("visda", n=30))
    assert set(contenders.quickly_in_the_clear(case)) == {"source only", "source only, propagated"}
    assert set(contenders.in_the_clear(case)) == {"source only", "source only, propagated"}


def test_everybody_is_measured(scores):
    for method in ("ours", "same release, no transport", "DP logistic", "DP logistic, propagated"):
        for epsilon in accuracies.EPSILONS:
            assert len(scores.found[accuracies.named(method, epsilon)]) == 6
    names = " ".join(scores.found)
    for method in (
        "PATE",
        "as printed",
        "made sound",
        "OTDA 0.2, propagated",
        "target only",
        "1 label a class",
    ):
        assert method in names
    small = scores.found[accuracies.named("DPDA made sound", 20.0)]
    assert {source for source, _ in small} == {"dslr", "webcam"}
    assert scores.mean("ours, eps 8") > 50 > scores.mean("PATE, eps 4")
    found = accuracies.table(scores, title="t")
    assert isinstance(found, Table)
    assert len(found.columns) == 1 + 6 + 3
