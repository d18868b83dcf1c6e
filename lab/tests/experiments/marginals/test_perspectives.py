"""Perspectives change one setting each; curves hold every round of every run."""

import numpy as np
import pytest

from privada_lab.experiments.marginals import perspectives, sets


@pytest.fixture
def data(small):
    return sets.GENERATED[2].load(3)


def test_perspectives_change_one_thing_beside_the_rounds(data):
    found = perspectives._perspectives(data)
    assert len(found) == 5 + len(perspectives.RULES)
    changed = [set(settings) - {"rounds"} for settings in found.values()]
    assert all(len(names) <= 1 for names in changed)
    assert found["features subsampled"]["features"] == data.source.shape[1] // 2
    wide, narrow = (found[f"rows a bin {rule} times its noise"]["bins"] for rule in perspectives.RULES)
    assert wide >= narrow >= 2


def test_curves_are_means_over_runs_and_one_round_is_a_level():
    rounds = perspectives.CURVE_ROUNDS
    runs = [
        {"error tables, rounds": [0.0] * rounds, "printed C-EXPRIL": [1.0] * rounds},
        {"error tables, rounds": [2.0] * rounds, "printed C-EXPRIL": [3.0] * rounds},
    ]
    found = perspectives.curves("C", runs, [-1.0, 1.0])
    assert [line.name for line in found.series] == [
        "cells, one round",
        "error tables, rounds",
        "printed C-EXPRIL",
    ]
    assert [list(line.mean) for line in found.series] == [[0.0] * rounds, [1.0] * rounds, [2.0] * rounds]
    assert [line.role for line in found.series] == ["ours", "ours", "paper"]


@pytest.mark.filterwarnings("ignore::privada.exceptions.PrivadaWarning")
def test_learning_has_a_number_for_each_round_beside_the_best(data):
    found = perspectives.learning(data, sets.GENERATED[2], 0, best=90.0)
    assert set(found) == {"error tables, rounds", *perspectives.PRINTED_CURVES}
    assert {"C-EXPRIL, no privacy", "I-EXPRIL, no privacy"} < set(found)
    for values in found.values():
        assert len(values) == perspectives.CURVE_ROUNDS
        assert all(-90 <= value <= 10 for value in values)
    assert np.isfinite(perspectives.synthetic(data, sets.GENERATED[2], 0))
