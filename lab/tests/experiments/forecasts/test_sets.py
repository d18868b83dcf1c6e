"""The sets of the experiment: tables that are there, and generated ones that never change."""

import numpy as np
import pytest

from privada_lab.experiments.forecasts.sets import find_sets, generated


def test_without_data_the_shipped_tables_and_generated_sets_are_used():
    names = [pair.name for pair in find_sets(None)]
    assert names[0] == "cancer: smooth to rough"
    assert len(names) == len(set(names)) == 11
    assert len(find_sets(None, quick=True)) == 6


def test_a_data_folder_brings_a_half_of_the_tables(tmp_path):
    final, development = (find_sets(tmp_path, half=half) for half in (None, "development"))
    assert {pair.half for pair in final[:-8]} == {"final"}
    assert {pair.half for pair in development} == {"development"}
    assert [pair.name for pair in find_sets(tmp_path, quick=True)] == [
        pair.name for pair in find_sets(None, quick=True)
    ]


@pytest.mark.parametrize("number", [0, 1])
def test_a_generated_set_is_the_same_each_time_and_has_a_shift(number):
    first, again = (generated(number).split(None, seed=3) for _ in range(2))
    assert np.array_equal(first.train.X, again.train.X)
    assert first.pair.task == ("classification" if number else "regression")
    moved = np.abs(first.train.X.mean(axis=0) - first.source.X.mean(axis=0))
    assert moved.max() > 4 * np.sqrt(2 / len(first.train))
