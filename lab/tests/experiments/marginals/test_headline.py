"""Every figure once, with its goal."""

from dataclasses import replace

import numpy as np
import pytest

from privada.report.exhibit import Curves, Dots, Figure
from privada.report.tables import Table
from privada_lab.experiments import marginals
from privada_lab.experiments.marginals import headline, sets
from privada_lab.experiments.marginals.scores import Scores
from privada_lab.experiments.registry import untracked


@pytest.mark.filterwarnings("ignore:No gain is expected")  # of one tiny run
def test_a_quick_look_prints_every_figure_once_with_its_goal(small):
    found = list(marginals.run(runs=1))
    figures = {item.figure: item for item in found if isinstance(item, Figure)}
    margins = {"any_quarter_margin", "any_margin_over_trivial"}
    tests = {
        f"expril_cumulative_over_instantaneous_{each}_{name}"
        for each in ("eps1", "no_privacy")
        for name in "AC"
    }
    assert set(figures) == {"any_pure_A", "any_pure_C", "marginal_pure_C"} | margins | tests
    assert all(name in figures["any_margin_over_trivial"].beside for name in ("A ", "C "))
    assert figures["any_pure_A"].goal == 90
    assert "printed" in figures["any_pure_A"].beside
    assert all(0 <= figures[name].value <= 100 for name in ("any_pure_A", "any_pure_C", "marginal_pure_C"))
    settings, form, bins, table = (item for item in found if isinstance(item, Table))
    assert settings.rows[0] == ("A", "2", "no", "200", "2", "[16, 256, 256, 16]")
    assert [row[0] for row in form.rows] == ["A", "C"]
    assert form.rows[0][4].endswith("(74.0)")
    assert [row[0] for row in bins.rows] == ["C"], "only where there is an importance step"
    assert ("C", "target-trained") in {row[:2] for row in table.rows}
    assert "PATE" not in " ".join(row[1] for row in table.rows), "baselines are left out of a quick look"
    assert [item.title[0] for item in found if isinstance(item, Curves)] == ["A", "C"]
    (picture,) = (item for item in found if isinstance(item, Dots))
    assert picture.places == ("A", "C")
    assert picture.methods["any"][0] == figures["any_pure_A"].value


def test_more_runs_measure_baselines_perspectives_and_curves(small, monkeypatch):
    monkeypatch.setattr(headline, "GENERATED", (sets.GENERATED[2],))
    monkeypatch.setattr(headline, "BESIDE_RUNS", 1)
    found = list(marginals.run(runs=3))
    (curves,) = (item for item in found if isinstance(item, Curves))
    assert [line.name for line in curves.series][:2] == ["cells, one round", "error tables, rounds"]
    *_, table = (item for item in found if isinstance(item, Table))
    rows = {row[1]: row for row in table.rows}
    for name in (
        "features subsampled",
        "features chosen",
        "bins varied",
        "importance query",
        "trained on the synthetic target",
        "weighting, source labelled",
        "C-EXPRIL, no privacy",
        "printed, weighted bins",
    ):
        assert rows[name][7] == "1"
    assert rows["any"][7] == "3"
    assert rows["printed"][5] == "85.8 ± 4.0"
    tests = [each for each in found if str(getattr(each, "figure", "")).startswith("expril_cumulative")]
    assert [each.runs for each in tests] == [1, 1]


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
