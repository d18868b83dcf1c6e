"""Scores of one set: means, intervals, and a paired test."""

import numpy as np
import pytest

from privada_lab.experiments.marginals import sets
from privada_lab.experiments.marginals.scores import Scores, table_two


def test_scores_say_their_interval_and_test():
    scores = Scores()
    for value in np.linspace(80, 90, 8):
        scores.note({"any": value, "printed": value - 10 - value / 50, "target-trained": 90.0})
    low, high = scores.interval("any")
    assert low < 85 < high
    assert "p = 0.008" in scores.paired("printed")
    scores.note({"few": 1.0})
    assert scores.paired("few") == "too few runs to test"
    row = table_two({"A": (sets.GENERATED[0], scores)}).rows[1]
    assert row[:2] == ("A", "printed")
    assert row[5] == "74.0 ± 4.8"
    assert float(row[3]) == pytest.approx(scores.deviation("printed"), abs=0.05)
    assert float(row[4]) == pytest.approx((90 - scores.mean("printed")) / 90, abs=1e-3)
    assert "p = 0.008" in scores.paired("printed", "target-trained")


def test_the_papers_ratio_is_of_what_it_prints_itself():
    for setting in (*sets.GENERATED, *sets.CARDIOTOCOGRAMS):
        best, cumulative = setting.paper[:2]
        assert setting.ratio == pytest.approx((best - cumulative) / best, rel=0.05)
        assert len(setting.deviations) == len(setting.paper)
