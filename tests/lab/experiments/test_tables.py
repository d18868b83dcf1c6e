"""Defaults beside trivial rivals: what is compared with what, and that a stopped run goes on."""

import time

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.lab.datasets import table_readers as read
from privada.lab.datasets.tables import TablePair, table_pair, table_pairs
from privada.lab.experiments import experiment
from privada.lab.experiments.registry import untracked
from privada.lab.experiments.tables import CONTENDERS, Case, Record, Results, headline, run
from privada.lab.experiments.tables.measuring import Unit, measure, time_limit
from privada.lab.experiments.tables.regrets import cells, figures, tables
from privada.lab.experiments.tables.results import NAME, append
from privada.parties.schema import Number

CANCER = "cancer: smooth to rough"
AREAS = TablePair(  # a regression that needs no data folder, of a table whose pair is for development
    name="cancer: areas, smooth to rough",
    half="development",
    read=read.cancer,
    columns=read.without(read.CANCER, "mean smoothness", "mean area", "worst area"),
    label=Number(name="mean area", low=0, high=2000),
    private=read.above_median("mean smoothness"),
    rows=150,
)
NAMES = {each.name: each for each in CONTENDERS}


def record(contender, error, *, pair=CANCER, epsilon=1.0, split=0, **more):
    spends = NAMES[contender].spends
    about = {"rows": 150, "features": 29, "tests": 134, "split": split, "pair": pair}
    return Record(contender=contender, epsilon=epsilon if spends else None, error=error, **about, **more)


def test_rivals_see_no_more_than_the_method_and_spend_no_more():
    rivals = {each.figure: {rival.name for rival in each.rivals()} for each in CONTENDERS if each.figure}
    assert rivals["reweighting_regressor"] == {"public ridge", "shift", "one sum", "noisy mean", "DP ridge"}
    assert rivals["marginals_regressor"] == {"noisy mean", "DP ridge"}
    counting = {"noisy majority", "DP logistic", "objective perturbation", "noisy counts"}
    assert rivals["marginals_learner"] == counting
    public = {"public logistic", "public majority", "class shares"}
    assert rivals["reweighting_classifier"] == counting | public
    assert rivals["transport"] == {f"transport: {name}" for name in counting}
    assert not any("target" in name or "source" in name for names in rivals.values() for name in names)


@pytest.mark.parametrize("pair", [table_pair(CANCER), AREAS], ids=lambda pair: pair.task)
def test_every_rival_keeps_the_guarantee_of_the_case(pair, monkeypatch):
    """Each release that is made while rivals run is (epsilon, delta) at replace-one, or pure epsilon."""
    from privada.parties.owner import Owner

    split, seen = pair.split(None, 0), []
    answer = Owner.answer
    monkeypatch.setattr(Owner, "answer", lambda *args: seen.append(answer(*args)) or seen[-1])
    for each in CONTENDERS:
        if each.figure or not each.suits(split.pair):
            continue
        case = Case.flipped(split) if each.view == "transport" else Case.of(split)
        budget, before = case.budget(1.5), len(seen)
        found = case.errors(each.run(case, budget).predicted)
        assert np.isfinite(found["error"])
        assert (len(seen) > before) == each.spends
        for release in seen[before:]:
            assert release.guarantee.relation.value == "replace-one"
            assert release.guarantee.epsilon == 1.5
            assert getattr(release.guarantee, "delta", 0.0) <= budget["delta"] == 1 / (10 * len(case.private))


def test_a_flipped_case_tests_on_public_rows_that_it_does_not_show():
    split = table_pair(CANCER).split(None, 0)
    case = Case.flipped(split)
    assert np.array_equal(case.private.X, split.train.X)
    assert len(case.public) + len(case.test) == len(split.source)
    assert not {tuple(row) for row in case.public.X} & {tuple(row) for row in case.test.X}


def test_errors_are_held_to_the_public_range_and_balanced():
    case = Case.of(AREAS.split(None, 0))
    far = case.errors(np.full(len(case.test), 1e9))["error"]
    assert far == pytest.approx(np.mean((2000 - case.test.y) ** 2))
    case = Case.of(table_pair(CANCER).split(None, 0))
    found = case.errors(np.full(len(case.test), "benign"))
    assert found["error"] == pytest.approx(np.mean(case.test.y == "malignant"))
    assert found["balanced"] == 0.5
    assert found["majority"] >= 0.5


def test_a_regret_is_the_ratio_of_means_and_the_best_rival_is_chosen_by_its_mean():
    results = Results(
        [
            *(record("ReweightedClassifier", each, split=at) for at, each in enumerate((0.2, 0.4))),
            *(record("public logistic", each, split=at) for at, each in enumerate((0.1, 0.4))),
            *(record("class shares", each, split=at) for at, each in enumerate((0.3, 0.1))),
            record("noisy counts", 0.001),  # on one split alone: not compared
            *(record("target logistic", 0.0, split=at) for at in (0, 1)),  # in the clear: not ranked
        ]
    )
    (cell,) = cells(results, [table_pair(CANCER)], [1.0])
    assert (cell.best, cell.rank, cell.splits) == ("class shares", 3, 2)
    assert cell.regret == pytest.approx(0.3 / 0.2)
    values = {each.figure: each for each in figures(results, [table_pair(CANCER)], [1.0])}
    assert values["regret_worst_reweighting"].value == pytest.approx(1.5)
    assert values["regret_mean_reweighting_classifier"].goal == 0.95
    assert values["worst_rank"].value == 3
    (table,) = tables(results, [table_pair(CANCER)], [1.0])
    assert table.to_dict()[0]["class shares"] == "0.2"


def test_balanced_errors_are_shown_where_one_class_is_most():
    uneven = record("public logistic", 0.1, balanced=0.4, majority=0.9)
    even = record("public majority", 0.5, balanced=0.5, majority=0.5)
    plain, balanced = tables(Results([uneven, even]), [table_pair(CANCER)], [1.0])
    assert set(plain.to_dict()[0]) == {"pair", "n", "public logistic", "public majority"}
    assert balanced.to_dict() == [{"pair": CANCER, "n": "150", "public logistic": "0.4"}]


def test_an_error_of_nothing_counts_as_half_a_row():
    results = Results([record("ReweightedClassifier", 0.0), record("public logistic", 0.0)])
    (cell,) = cells(results, [table_pair(CANCER)], [1.0])
    assert (cell.regret, cell.rank) == (1, 1)


def test_forecasts_are_held_against_what_doing_nothing_costs():
    results, pairs = Results(), [pair for pair in table_pairs() if pair.task == "regression"][:6]
    for at, pair in enumerate(pairs):
        said = 0.5 + at / 10
        band = (said - 0.05, said + 0.05) if at else (0.0, 0.1)
        results.add([record("public ridge", 2.0, pair=pair.name)])
        results.add(
            [record("ReweightedRegressor", 2 * said + 0.01, pair=pair.name, forecast=said, band=band)]
        )
    values = {each.figure: each.value for each in figures(results, pairs, [1.0])}
    assert values["forecast_correlation_reweighting"] == pytest.approx(1)
    assert values["forecast_coverage_reweighting_regressor"] == pytest.approx(5 / 6)


def test_fits_without_a_result_are_counted():
    failed = record("ReweightedClassifier", None, split=1, failed="time limit")
    results = Results([record("ReweightedClassifier", 0.2), record("public logistic", 0.1), failed])
    values = {each.figure: each for each in figures(results, [table_pair(CANCER)], [1.0])}
    assert "1 fits gave no result" in values["regret_mean_reweighting"].beside


def test_results_are_read_back_and_a_line_that_was_cut_short_is_left_out(tmp_path):
    made = [record("shift", 0.1, forecast=0.5, band=(0.4, 0.6)), record("public ridge", 0.2)]
    for each in made:
        append(tmp_path, each)
    assert list(Results.read(tmp_path)) == made
    with (tmp_path / NAME).open("a") as file:
        file.write('{"pair": "wi')
    assert list(Results.read(tmp_path)) == made
    with (tmp_path / NAME).open("a") as file:
        file.write("\n" + made[0].to_line() + "\n")
    with pytest.raises(InputError, match="line 3"):
        Results.read(tmp_path)


def test_a_fit_that_was_given_up_is_tried_again_with_more_time():
    late = record("ReweightedClassifier", None, seconds=10.2, failed="time limit")
    broken = record("class shares", None, failed="InputError")
    results = Results([late, broken])
    assert results.settled(late.key, 10.0)
    assert not results.settled(late.key, 60.0)
    assert not results.settled(late.key, None)
    assert results.settled(broken.key, None)
    assert not results.settled(record("shift", 0.1).key, 10.0)


def test_a_run_goes_on_where_it_was(tmp_path, monkeypatch):
    settings = {"runs": 1, "data": None, "half": "development", "quick": True, "out": tmp_path}
    only = (CANCER, "class shares", "public logistic", "ReweightedClassifier")
    found = list(run(**settings, only=only))
    values = {getattr(each, "figure", None): each for each in found}
    assert values["regret_worst_reweighting"].value > 0
    assert len(Results.read(tmp_path).records) == 3
    asked = []
    monkeypatch.setattr(headline, "measure", lambda unit: asked.append(unit) or [])
    again = list(run(**settings, only=only))
    assert asked == []
    assert {each.figure: each for each in again if hasattr(each, "figure")} == {
        name: each for name, each in values.items() if name
    }
    list(run(**settings, only=(CANCER, "noisy majority")))
    assert [unit.todo for unit in asked] == [
        (("noisy majority", 1.0), ("transport: noisy majority", 1.0)),
    ]
    with pytest.raises(InputError, match="--only"):
        list(run(**settings, only=("no such thing",)))


def test_a_quick_look_is_at_development_pairs_unless_told_otherwise(monkeypatch):
    asked = []
    monkeypatch.setattr(headline, "measure", lambda unit: asked.append(unit) or [])
    list(run(runs=1, data=None, quick=True))
    assert {table_pair(unit.pair).half for unit in asked} == {"development"}
    assert all(unit.limit for unit in asked)
    asked.clear()
    list(run(runs=2, data=None))
    assert {table_pair(unit.pair).half for unit in asked} == {"final"}
    assert len(asked) == 2 * len(table_pairs("final"))
    assert not any(unit.limit for unit in asked)


def test_a_stopped_run_shows_what_is_there(tmp_path, monkeypatch):
    append(tmp_path, record("ReweightedClassifier", 0.2))
    append(tmp_path, record("public logistic", 0.1))

    def stop(unit):
        raise KeyboardInterrupt

    monkeypatch.setattr(headline, "measure", stop)
    found = list(run(runs=1, data=None, quick=True, out=tmp_path, track=untracked))
    assert "regret_worst_reweighting" in {getattr(each, "figure", None) for each in found}


def test_a_fit_that_takes_too_long_is_recorded_as_such():
    unit = Unit(pair=CANCER, split=0, todo=(("ReweightedClassifier", 1.0),), data=None, limit=1e-4)
    (found,) = measure(unit)
    assert (found.failed, found.error) == ("time limit", None)
    start = time.perf_counter()
    with time_limit(None):
        pass
    with time_limit(5.0):
        pass
    assert time.perf_counter() - start < 1


def test_other_experiments_do_not_take_its_settings():
    given = {"half": None, "only": (), "limit": None, "out": None, "quick": True}
    assert experiment("tables").taken(**given) == given
    assert experiment("core").taken(**given) == {}
    with pytest.raises(InputError, match="tables does"):
        experiment("core").taken(**given | {"half": "final"})
