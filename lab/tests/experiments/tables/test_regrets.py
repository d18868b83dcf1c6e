"""What is compared with what."""

import pytest

from privada_lab.datasets.tables import table_pair, table_pairs
from privada_lab.experiments.tables import Results
from privada_lab.experiments.tables.regrets import cells, figures, tables

CANCER = "cancer: smooth to rough"


def test_a_regret_is_the_ratio_of_means_and_the_best_rival_is_chosen_by_its_mean(record):
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


def test_balanced_errors_are_shown_where_one_class_is_most(record):
    uneven = record("public logistic", 0.1, balanced=0.4, majority=0.9)
    even = record("public majority", 0.5, balanced=0.5, majority=0.5)
    plain, balanced = tables(Results([uneven, even]), [table_pair(CANCER)], [1.0])
    assert set(plain.to_dict()[0]) == {"pair", "n", "public logistic", "public majority"}
    assert balanced.to_dict() == [{"pair": CANCER, "n": "150", "public logistic": "0.4"}]


def test_an_error_of_nothing_counts_as_half_a_row(record):
    results = Results([record("ReweightedClassifier", 0.0), record("public logistic", 0.0)])
    (cell,) = cells(results, [table_pair(CANCER)], [1.0])
    assert (cell.regret, cell.rank) == (1, 1)


def test_forecasts_are_held_against_what_doing_nothing_costs(record):
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


def test_fits_without_a_result_are_counted(record):
    failed = record("ReweightedClassifier", None, split=1, failed="time limit")
    results = Results([record("ReweightedClassifier", 0.2), record("public logistic", 0.1), failed])
    values = {each.figure: each for each in figures(results, [table_pair(CANCER)], [1.0])}
    assert "1 fits gave no result" in values["regret_mean_reweighting"].beside
