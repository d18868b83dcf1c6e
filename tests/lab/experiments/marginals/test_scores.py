"""Scores of one set: means, intervals, and a paired test."""

import numpy as np

from privada.lab.experiments.marginals import sets
from privada.lab.experiments.marginals.scores import Scores, table_two


def test_scores_say_their_interval_and_test():
    scores = Scores()
    for value in np.linspace(80, 90, 8):
        scores.note({"any": value, "printed": value - 10 - value / 50})
    low, high = scores.interval("any")
    assert low < 85 < high
    assert "p = 0.008" in scores.paired("printed")
    scores.note({"few": 1.0})
    assert scores.paired("few") == "too few runs to test"
    row = table_two({"A": (sets.GENERATED[0], scores)}).rows[1]
    assert row[:2] == ("A", "printed")
    assert row[3] == "74.0"
