"""Transport's experiment on generated domains: what is shared changes nothing, figures have their names."""

import warnings
from importlib.util import find_spec

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.lab.datasets.adaptation import BENCHMARKS, Domain
from privada.lab.datasets.unscored_pairs import unscored_pairs
from privada.lab.experiments import transport
from privada.lab.experiments.registry import experiment, untracked
from privada.lab.experiments.transport import accuracies, contenders, distances, headline, settings
from privada.methods.transport.estimator import TransportClassifier
from privada.report.figure import Figure
from privada.report.tables import Table


def domain(name, seed, n=80, width=30):
    rng = np.random.default_rng(seed)
    y = rng.integers(10, size=n)
    X = 4 * np.abs(np.random.default_rng(9).normal(size=(10, width)))[y] + np.abs(rng.normal(size=(n, width)))
    return Domain(name, X, y)


def domains(benchmark, n=80):
    return {name: domain(name, i, n) for i, name in enumerate(BENCHMARKS[benchmark].domains)}


@pytest.fixture(scope="module")
def scores():
    with pytest.MonkeyPatch.context() as patch:  # one run of everything, to save time
        for module in (accuracies, headline):
            patch.setattr(module, "QUICK", 0)
        return transport.benchmark("googlenet", domains("googlenet"), 1)


@pytest.fixture(scope="module")
def quick():
    return transport.benchmark("googlenet", domains("googlenet"), 1)


def test_a_quick_look_leaves_out_what_is_slow_and_no_figure(scores, quick):
    assert set(quick.found) < set(scores.found)
    assert {f"ours, eps {epsilon:g}" for epsilon in accuracies.EPSILONS} <= set(quick.found)
    means = [{figure.figure for figure in headline._means("surf", each, 1)} for each in (scores, quick)]
    assert means[0] == means[1]
    first = list(distances.distances(domains("googlenet", n=60), 1, untracked))
    assert [type(each) for each in first] == [Figure, Figure]


def test_scores_are_means_over_pairs_of_means_over_runs():
    scores = transport.Scores()
    for pair, values in ((("a", "b"), [1.0, 3.0]), (("b", "a"), [4.0])):
        scores.add("ours", pair, *values)
    assert scores.mean("ours") == 3.0
    assert scores.error("ours") == pytest.approx(0.5)


def test_mapping_rows_once_is_asking_about_the_rows():
    case = next(transport.cases("googlenet", domains("googlenet")))
    (X, _), (y, _) = (case.source.domain.X, case.target.domain.X), case.labels
    settings = {"epsilon": 4.0, "delta": case.delta, "classes": tuple(range(10)), "rehearsal": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = TransportClassifier(**settings, bounds=(0, 50)).fit(X, y, case.target.domain.X)
        once = TransportClassifier(**settings, bounds=(-2, 2), features=case.inside)
        once.fit(case.mapped, y, case.target.points)
    assert np.allclose(whole.release_["sums"], once.release_["sums"])
    assert np.array_equal(whole.transduction_, once.transduction_)


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


def test_only_one_target_label_a_class_is_shown():
    case = next(transport.cases("googlenet", domains("googlenet")))
    known = contenders.one_label_a_class(case, 0)
    at = known >= 0
    assert np.array_equal(known[at], case.labels[1][at])
    assert np.unique(known[at], return_counts=True)[1].tolist() == [1] * at.sum()


def test_the_distance_has_both_cases_and_its_curves(monkeypatch):
    monkeypatch.setattr(distances, "RATIOS", (0.7, 1.3))
    monkeypatch.setattr(distances, "SAMPLED_EPSILONS", (8.0,))
    found = list(distances.distances(domains("googlenet", n=60), 2, untracked))
    figures = [item.figure for item in found if isinstance(item, Figure)]
    assert figures == ["wasserstein_error_vs_projection_only", "wasserstein_error_vs_projection_only_case_ii"]
    titles = [item.title for item in found if not isinstance(item, Figure)]
    assert [title.split(", ")[1] for title in titles] == ["batches of 128", "whole sets", "8 sampled batches"]


def test_the_noise_of_a_distance_is_its_ratio():
    """Case (i): σ is the ratio times the largest row norm, and what is charged is the whole attribute."""
    rows = domain("d", 0, n=40).X
    found = distances.private_wasserstein(
        rows, rows, bounds=(0, 50), norm_bound=1.0, rho=50**2 / 2, relation="attribute", n_components=3
    )
    w = np.linalg.norm(distances.FeatureMap.random(30, 3, seed=0).projection, axis=1).max()
    assert float(found.release.noise["rows"]["scale"]) == pytest.approx(w, rel=1e-6)
    assert "1250" in str(found.release.guarantee)


def test_without_data_it_says_what_it_needs(tmp_path):
    with pytest.raises(InputError, match="--data"):
        list(experiment("transport").run(runs=1, data=tmp_path, track=untracked))


def test_a_feature_file_that_is_there_gets_its_table(tmp_path):
    benchmark = BENCHMARKS["visda"]
    (tmp_path / benchmark.file).parent.mkdir()
    arrays = {}
    for i, name in enumerate(benchmark.domains):
        found = domain(name, i, n=40)
        arrays |= {f"x_{name}": found.X.astype(np.float32), f"y_{name}": found.y + 1}
    np.savez(tmp_path / benchmark.file, **arrays)
    items = list(transport.run(runs=1, data=tmp_path))
    tables = [item for item in items if isinstance(item, Table)]
    assert ["Table 2" in table.title for table in tables] == [True]
    assert {item.figure for item in items if isinstance(item, Figure)} == {
        f"visda_mean_eps{epsilon:g}" for epsilon in accuracies.EPSILONS
    }


def test_adversarial_adaptation_has_a_row_where_torch_is():
    case = next(transport.cases("googlenet", domains("googlenet")))
    found = contenders.adversarial(case)
    assert (found is None) == (find_spec("torch") is None)
    if found is not None:
        assert case.accuracy(found.argmax(axis=1)) > 50


def test_settings_are_measured_on_pairs_that_no_figure_scores(monkeypatch):
    few = [pair for pair in unscored_pairs() if pair.kind in ("mixtures", "scikit-learn")][3:6]
    monkeypatch.setattr(settings, "unscored_pairs", lambda data: iter(few))
    monkeypatch.setattr(settings, "CHOICES", {name: each[:2] for name, each in settings.CHOICES.items()})
    items = list(settings.run(runs=1, data=None))
    figures = {item.figure: item for item in items if isinstance(item, Figure)}
    assert figures.keys() == {
        f"transport_default_{name}_behind_best_eps{epsilon}"
        for name in ("components", "clipping", "refinement")
        for epsilon in (1, 4)
    }
    assert all(figure.value >= 0 for figure in figures.values())
    means, pairs = (item for item in items if isinstance(item, Table))
    names = ["10 components", "the default", "clipped at quantile 0.25", "regularisation 0.025"]
    assert [row[0] for row in means.rows] == names
    assert [row[0] for row in pairs.rows] == [pair.name for pair in few]
    assert max(float(row[3]) for row in means.rows) > 60  # of chances of 5 to 53 %


def test_the_settings_measure_what_the_classifier_does():
    """Seeded noise, the map that is asked with, and the usual constants on the same release."""
    pair = next(pair for pair in unscored_pairs() if pair.kind == "activations")
    mapped = settings.Mapped.of(pair, settings.DEFAULT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mapped.asked(4.0, 0)
        whole = TransportClassifier(
            epsilon=4.0, delta=1 / 1500, classes=tuple(range(10)), bounds=(0, 50), rehearsal=0
        ).fit(pair.source.X, pair.source.y, pair.target.X)
    assert np.array_equal(whole.transduction_, model.transduction_)
    right = 100 * np.mean(model.transduction_ == pair.target.y)
    assert mapped.again(model, settings.DEFAULT.refinement) == pytest.approx(right)
