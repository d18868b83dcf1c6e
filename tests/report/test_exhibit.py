"""Figures are rounded honestly; exhibits are written as numbers and as pictures."""

import csv
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.report import Figure, figures_table
from privada.report.exhibit import Bands, Curves, Dots, Layer, Map, Series, draw, write
from privada.report.tables import Table

VALUES = np.array([[1.0, 2.0], [3.0, 2.0], [2.0, 2.0]])


def test_a_series_has_means_and_standard_errors_over_runs():
    line = Series.over_runs("ours", (5, 10), VALUES, role="ours")
    assert line.mean == [2.0, 2.0]
    assert line.error == pytest.approx([1 / np.sqrt(3), 0.0])
    assert Series.over_runs("once", (5, 10), VALUES[:1]).error == [0.0, 0.0]


@pytest.mark.parametrize(
    ("exhibit", "suffixes", "first"),
    [
        (
            Curves(
                title="Cost by k",
                xlabel="k",
                ylabel="cost",
                series=(Series.over_runs("ours", (5, 10), VALUES),),
            ),
            {".csv", ".svg"},
            ["ours", "5", "2", "0.58"],
        ),
        (
            Map(title="A map", layers=(Layer(name="source", points=VALUES),)),
            {".csv", ".svg"},
            ["source", "1", "2"],
        ),
        (
            Dots(
                title="Two places",
                xlabel="accuracy",
                places=("a", "b"),
                methods={"ours": (1.0, 2.0), "other": (math.nan, 1.5)},
            ),
            {".csv", ".svg"},
            ["a", "ours", "1"],
        ),
        (
            Bands(
                title="Forecasts that came true",
                label="error",
                places=("a", "b"),
                expected=(0.5, 0.2),
                low=(0.4, 0.0),
                high=(0.6, 0.3),
                outcome=(0.45, 0.9),
            ),
            {".csv", ".svg"},
            ["a", "0.5", "0.4", "0.6", "0.45"],
        ),
        (Table(title="A table", columns=("a",), rows=(("1",),)), {".csv"}, ["1"]),
    ],
)
def test_exhibits_are_written_as_numbers_and_pictures(tmp_path, exhibit, suffixes, first):
    files = write(exhibit, tmp_path / "new")
    assert {file.suffix for file in files} == suffixes
    with files[0].open() as file:
        assert list(csv.reader(file))[1] == first
    if ".svg" in suffixes:
        assert exhibit.title.split()[0].lower() in files[1].stem
        assert "<svg" in files[1].read_text()[:400]


def test_several_lines_of_one_kind_differ_in_colour_and_marker():
    from matplotlib.figure import Figure

    lines = tuple(Series.over_runs(f"ours {i}", (5, 10), VALUES + i, role="ours") for i in range(4))
    figure = Figure(layout="constrained")
    Curves(title="t", xlabel="x", ylabel="y", series=lines, logx=True).draw(figure)
    (axes,) = figure.axes
    drawn = [bars.lines[0] for bars in axes.containers]
    assert len({line.get_color() for line in drawn}) == len({line.get_marker() for line in drawn}) == 4
    assert [label.get_text() for label in axes.get_xticklabels()] == ["5", "10"]


def test_long_titles_go_on_below_and_points_of_a_legend_can_be_seen(tmp_path):
    from matplotlib.figure import Figure

    layer = Layer(name="small", points=np.zeros((3, 2)), size=3)
    figure = Figure(layout="constrained")
    Map(title="t", layers=(layer,)).draw(figure)
    (handle,) = figure.axes[0].get_legend().legend_handles
    assert handle.get_sizes()[0] >= 30
    long = "Wasserstein error, batches of 128: MNIST and scikit-learn's digits, mnist to digits"
    (path,) = draw(Map(title=long, layers=(layer,)), tmp_path / "long.svg")
    text = path.read_text()
    assert "mnist to digits<" in text, "letters are text"
    assert long not in text


def figure(**changes):
    fields = {"figure": "f", "value": 0.2, "goal": 0.25, "better": "lower", "beside": "peer 1.0", "runs": 5}
    return Figure(**(fields | changes))


def test_the_line_has_the_keys_of_the_design_in_order():
    line = json.loads(figure(value=0.123456).to_json_line())
    assert list(line) == ["figure", "value", "goal", "better", "beside", "runs"]
    assert line["value"] == 0.1235
    assert json.loads(figure(interval=(0.1, 0.30001)).to_json_line())["interval"] == [0.1, 0.3]
    assert json.loads(figure(goal=None).to_json_line())["goal"] is None


@pytest.mark.parametrize(
    ("better", "value", "goal", "met"),
    [
        ("lower", 1, 2, True),
        ("lower", 3, 2, False),
        ("higher", 3, 2, True),
        ("higher", 1, 2, False),
        ("lower", 1, None, None),
    ],
)
def test_met(better, value, goal, met):
    assert figure(better=better, value=value, goal=goal).met is met


@pytest.mark.parametrize("wrong", [{"better": "bigger"}, {"value": float("nan")}, {"runs": 0}])
def test_wrong_figures(wrong):
    with pytest.raises(InputError):
        figure(**wrong)


def test_the_table_leaves_out_what_no_figure_has():
    table = figures_table("t", [figure(), figure(figure="g", value=0.3)])
    assert "95 % interval" not in table.columns
    assert [row["met"] for row in table.to_dict()] == ["yes", "no"]
    assert "met" not in figures_table("t", [figure(goal=None)]).columns


@pytest.mark.parametrize(
    ("value", "better", "printed"),
    [
        (1.00042, "lower", 1.0004),
        (1.000004, "lower", 1.000004),
        (0.99996, "lower", 1.0),
        (0.99996, "higher", 0.99996),
    ],
)
def test_rounding_never_turns_a_miss_into_a_hit_or_a_hit_into_a_miss(value, better, printed):
    figure = Figure("ratio", value, 1.0, better, "", 30)
    assert figure.to_dict()["value"] == printed
    assert replace(figure, value=figure.to_dict()["value"]).met == figure.met
