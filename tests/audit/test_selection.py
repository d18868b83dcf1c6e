"""Events are chosen on some outcomes and bounded on others, by exact intervals."""

import numpy as np
import pytest

from privada.audit import selection
from privada.audit.claims import Point, points
from privada.audit.sampling import Outcomes
from privada.privacy import (
    PureDP,
)

ONE = PureDP(epsilon=1.0, relation="add/remove")


@pytest.fixture
def rng():
    return np.random.default_rng(2024)


def test_clopper_pearson_is_exact_at_every_count():
    """P(count >= k) at the lower bound, and P(count <= k) at the upper, are the stated error."""
    from scipy.special import bdtr, bdtrc

    lows, highs = selection.clopper_pearson(50, 0.01)
    assert lows[0] == 0
    assert highs[50] == 1
    np.testing.assert_allclose(bdtrc(np.arange(50), 50, lows[1:]), 0.01, rtol=1e-6)
    np.testing.assert_allclose(bdtr(np.arange(50), 50, highs[:-1]), 0.01, rtol=1e-6)


def null_pair(rng, trials=800, width=5):
    return rng.normal(size=(trials, width)), rng.normal(size=(trials, width))


@pytest.mark.statistical
def test_without_the_split_the_coverage_would_be_lost(rng, monkeypatch):
    """Bounding on the outcomes that the event was chosen on exceeds the truth: the test above can fail."""
    monkeypatch.setattr(selection, "CAUTION", 1.0)
    above = 0
    for _ in range(20):
        outcomes = Outcomes.of(*null_pair(rng))
        guesses = selection.guess_events(outcomes, points(ONE), 0.2)
        above += max(selection.bound_event(guess, outcomes.halves()[1], 0.2) for guess in guesses) > 0
    assert above >= 15


def test_the_event_that_tells_two_data_sets_apart_is_chosen(rng):
    """Coordinate 3 alone moves, by more than its noise is wide."""
    first, second = null_pair(rng)
    second[:, 3] += 20.0
    guesses = selection.guess_events(Outcomes.of(first, second), points(ONE), 0.01)
    assert {guess.direction for guess in guesses} == {0, 1}
    for guess in guesses:
        assert guess.rank[0]
        assert selection.bound_event(guess, Outcomes.of(first, second), 0.01) > 3


def test_a_violation_outranks_a_tight_bound_and_a_point_that_is_not_named_comes_last():
    def guess(bound, *, first):
        claim = Point(epsilon=1.0, delta=0.0, first=first)
        return selection.Guess(score=None, threshold=0.0, direction=0, claim=claim, bound=bound)

    violated, tight, aside = guess(1.1, first=False), guess(0.99, first=True), guess(0.99, first=False)
    assert max([aside, tight, violated], key=lambda each: each.rank) is violated
    assert max([aside, tight], key=lambda each: each.rank) is tight
