import numpy as np
import pytest

from privada.datasets.hidden_target import hidden_target
from privada.experiments import marginals


@pytest.fixture
def small(monkeypatch):
    """Small sets and short training: what is tested is the bookkeeping."""
    monkeypatch.setattr(
        marginals,
        "hidden_target",
        lambda name, seed: hidden_target(name, seed=seed, source_size=150, target_size=200),
    )
    monkeypatch.setattr(marginals, "EPOCHS", {2: 2, 4: 2})
    monkeypatch.setattr(marginals, "SHAPES", {"A": (8, 8), "C": (8, 8)})


def test_every_figure_is_printed_once_with_its_goal(small):
    figures = {figure.figure: figure for figure in marginals.run(runs=1)}
    assert set(figures) == {"any_pure_A", "any_pure_C", "marginal_pure_C", "any_quarter_margin"}
    assert figures["any_pure_A"].goal == 90
    assert "printed" in figures["any_pure_A"].beside
    assert all(0 <= figures[name].value <= 100 for name in ("any_pure_A", "any_pure_C", "marginal_pure_C"))


def test_scores_say_their_interval_and_test():
    scores = marginals.Scores()
    for value in np.linspace(0.8, 0.9, 8):
        scores.add("any", value)
        scores.add("printed", value - 0.1 - value / 50)
    low, high = scores.interval("any")
    assert low < 85 < high
    assert "p = 0.008" in scores.paired()
