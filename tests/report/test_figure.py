import json
from dataclasses import replace

import pytest

from privada.exceptions import InputError
from privada.report import Figure, figures_table


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
