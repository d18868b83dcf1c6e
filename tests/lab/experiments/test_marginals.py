from dataclasses import replace

import numpy as np
import pytest

from privada.lab.datasets.hidden_target import hidden_target
from privada.lab.experiments import marginals
from privada.lab.experiments.marginals import contenders, headline, limits, sets
from privada.lab.experiments.marginals.scores import Scores, table_two
from privada.lab.experiments.registry import untracked
from privada.report.exhibit import Curves
from privada.report.figure import Figure
from privada.report.tables import Table


@pytest.fixture
def small(monkeypatch):
    """Small sets and short training: what is tested is the bookkeeping."""
    monkeypatch.setattr(
        sets,
        "hidden_target",
        lambda name, seed: hidden_target(name, seed=seed, source_size=150, target_size=200),
    )
    monkeypatch.setattr(contenders, "STEPS", {2: 2, 4: 2})
    monkeypatch.setattr(headline, "GENERATED", (sets.GENERATED[0], sets.GENERATED[2]))


def test_a_quick_look_prints_every_figure_once_with_its_goal(small):
    found = list(marginals.run(runs=1))
    figures = {item.figure: item for item in found if isinstance(item, Figure)}
    assert set(figures) == {"any_pure_A", "any_pure_C", "marginal_pure_C", "any_quarter_margin"}
    assert figures["any_pure_A"].goal == 90
    assert "printed" in figures["any_pure_A"].beside
    assert all(0 <= figures[name].value <= 100 for name in ("any_pure_A", "any_pure_C", "marginal_pure_C"))
    (table,) = (item for item in found if isinstance(item, Table))
    assert ("C", "target-trained") in {row[:2] for row in table.rows}


def test_more_runs_measure_baselines_perspectives_and_curves(small, monkeypatch):
    monkeypatch.setattr(headline, "GENERATED", (sets.GENERATED[2],))
    monkeypatch.setattr(headline, "BESIDE_RUNS", 1)
    found = list(marginals.run(runs=3))
    (curves,) = (item for item in found if isinstance(item, Curves))
    assert [line.name for line in curves.series][:2] == ["cells, one round", "error tables, rounds"]
    (table,) = (item for item in found if isinstance(item, Table))
    rows = {row[1]: row for row in table.rows}
    for name in (
        "features subsampled",
        "features chosen",
        "bins varied",
        "importance query",
        "trained on the synthetic target",
        "weighting, source labelled",
        "C-EXPRIL, no privacy",
    ):
        assert rows[name][4] == "1"
    assert rows["any"][4] == "3"
    assert rows["printed"][3] == "85.8"


def test_a_set_of_few_test_rows_takes_more_runs_than_were_asked_for(small, monkeypatch):
    few = replace(sets.GENERATED[0], least_runs=4)
    asked = []
    monkeypatch.setattr(headline, "headline", lambda data, setting, seed: asked.append(seed) or {"any": 1.0})
    monkeypatch.setattr(headline, "BESIDE_RUNS", 0)
    for runs, wanted in ((2, 2), (3, 4), (5, 5)):
        asked.clear()
        headline.measured(few, runs, None, untracked)
        assert asked == list(range(headline.FRESH, headline.FRESH + wanted))


def test_points_over_the_majority_have_an_interval_of_their_own():
    scores = Scores()
    for ours, majority in ((90.0, 80.0), (70.0, 58.0), (80.0, 69.0)):
        scores.note({"any": ours, "majority": majority, "printed": 50.0})
    (figure,) = headline._figures(replace(sets.CARDIOTOCOGRAMS[0]), scores)
    assert figure.value == pytest.approx(11)
    assert figure.runs == 3
    low, high = figure.interval
    assert high - low == pytest.approx(4 / np.sqrt(3))


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


def test_limits_are_differences_of_the_same_runs(small, monkeypatch):
    monkeypatch.setattr(limits, "SETS", sets.GENERATED[2:3])
    *figures, table = limits.run(runs=3)
    assert [figure.figure for figure in figures] == ["noise_cost_C", "hidden_rows_cost_C"]
    rows = {row[1]: row for row in table.rows}
    assert rows["the default"][3] == "0.00 ± 0.00"
    assert {row[4] for row in table.rows} == {"3"}
    for figure, name in zip(figures, (limits.NOISELESS, limits.KNOWN), strict=True):
        assert rows[name][3].startswith(f"{figure.value:.2f} ")
        low, high = figure.interval
        assert low <= figure.value <= high
    assert not set(range(limits.FIRST, limits.FIRST + 30)) & set(range(headline.FRESH, headline.FRESH + 100))


@pytest.mark.filterwarnings("ignore::privada.exceptions.RehearsalWarning")
def test_limits_change_one_thing_at_a_time(small, monkeypatch):
    asked = []

    def noted(data, **settings):
        asked.append((data, settings))
        return contenders.learner(data, **settings)

    monkeypatch.setattr(limits, "learner", noted)
    data, setting = sets.GENERATED[2].load(5), sets.GENERATED[2]
    found = limits.measured(data, setting, 5)
    assert all(0 <= value <= 100 for value in found.values())
    cells = {settings.get("cells") for _, settings in asked[1:3]}
    assert len(cells) == 1
    assert [settings.get("epsilon") for _, settings in asked] == [
        None,
        limits.NO_NOISE,
        None,
        None,
        None,
        None,
    ]
    assert [given.source is data.source for given, _ in asked] == [True, True, False, True, True, True]
    assert asked[2][0].source is data.X
    assert {settings["rehearsal"] for _, settings in asked} == {5}
