"""The page of papers: what was found stands beside what the paper prints."""

import pytest

from privada.exceptions import InputError
from privada.report.exhibit import Curves, Figure, Series
from privada.report.tables import Table
from privada_lab.experiments.papers.item import Cell, PaperItem
from privada_lab.experiments.papers.page import MOST_ROWS, Measured, markdown, missing_items, write_page
from privada_lab.experiments.registry import experiment

ITEM = PaperItem(
    paper="003",
    name="Figure 1",
    shows="errors",
    experiment="reweighting",
    figures=("gas_*",),
    exhibits=("F*",),
)


def test_what_was_found_is_on_the_page(tmp_path):
    line = Series(name="ours", x=[1, 2], mean=[1.0, 0.5], error=[0, 0], role="ours")
    found = (
        Figure("gas_mse", 1.25, None, "lower", "CnvxAdap | 1", 2),
        Figure("other", 7.0, None, "lower", "", 2),
        Curves(title="First: curves", xlabel="n", ylabel="MSE", series=(line,)),
        Table(title="For all", columns=("a", "b"), rows=(("1", "2"),)),
        Table(title="Not this", columns=("a",), rows=(("x",),)),
    )
    page = write_page([ITEM], {"reweighting": Measured("reweighting", 2, 60, found)}, tmp_path, command="it")
    text = page.read_text()
    assert "`gas_mse` 1.25" in text
    assert "| [Figure 1](#003-figure-1) |" in text
    assert "CnvxAdap \\| 1" in text
    assert "![First: curves](papers/first-curves.svg)" in text
    assert (tmp_path / "papers/first-curves.svg").exists()
    assert "| a | b |" in text
    assert "Not this" not in text
    assert "`other`" not in text
    full = experiment("reweighting")
    hours = full.runs / 2 / 60 / full.quick_share
    assert f"| `reweighting` | 2 | 1.0 | {full.runs} | {hours:.1f} |" in text
    assert "**estimate**" in text


def test_what_was_not_measured_is_said(tmp_path):
    text = write_page([ITEM], {}, tmp_path, command="it").read_text()
    assert "Not in this run" in text
    assert missing_items([ITEM], {}) == [ITEM]


def test_an_item_shows_something_or_says_why_not():
    with pytest.raises(InputError, match="say what is missing"):
        PaperItem(paper="003", name="Table 9", shows="", experiment="reweighting")


def test_cells_of_exhibits_stand_in_the_overview():
    line = Series(name="ours", x=[1, 2], mean=[1.0, 0.5], error=[0, 0], role="ours")
    curves = Curves(title="Figure 1: gas", xlabel="n", ylabel="MSE", series=(line,))
    table = Table(title="Table 1", columns=("set", "DM"), rows=(("gas", "0.4"), ("wind", "")))
    assert Cell("Figure 1*", "ours", "2", "at 2:").read(curves) == "at 2: 0.5"
    assert Cell("Figure 2*", "ours", "2", "").read(curves) is None
    assert Cell("Table*", "gas", "DM", "DM").read(table) == "DM 0.4"
    assert Cell("Table*", "wind", "DM", "DM").read(table) is None


def test_an_exhibit_of_two_items_is_shown_once_and_linked_to(tmp_path):
    table = Table(title="Table 1", columns=("set", "DM"), rows=(("gas", "0.4"),))
    cell = Cell("Table 1", "gas", "DM", "gas")
    both = [
        PaperItem(
            paper="003", name=name, shows="", experiment="reweighting", exhibits=("Table*",), cells=(cell,)
        )
        for name in ("First", "Second, again")
    ]
    found = {"reweighting": Measured("reweighting", 1, 60, (table,))}
    text = write_page(both, found, tmp_path, command="it").read_text()
    assert text.count("| gas | 0.4 |") == 1
    assert "*Table 1*: [above](#003-first)." in text
    assert "[Second, again](#003-second-again)" in text
    assert text.count("| gas 0.4 |") == 2


def test_figures_stand_in_the_order_of_the_items_names(tmp_path):
    item = PaperItem(paper="003", name="a", shows="", experiment="reweighting", figures=("b*", "*"))
    found = tuple(Figure(name, 1.0, None, "lower", "", 1) for name in ("a1", "b1", "a2", "b2"))
    text = write_page([item], {"reweighting": Measured("reweighting", 1, 60, found)}, tmp_path, command="it")
    assert "`b1` 1; `b2` 1; `a1` 1 |" in text.read_text()


def test_a_long_table_says_how_many_rows_it_leaves_out():
    rows = tuple((str(i),) for i in range(MOST_ROWS + 4))
    assert "4 more rows" in markdown(Table(title="t", columns=("a",), rows=rows))
    assert "more rows" not in markdown(Table(title="t", columns=("a",), rows=rows[:MOST_ROWS]))


def test_what_stands_beside_a_figure_is_shortened(tmp_path):
    item = PaperItem(paper="003", name="a", shows="", experiment="reweighting", figures=("*",))
    found = (
        Figure("x", 1.0, None, "lower", "word " * 100, 1),
        Figure("y", 1.0, None, "lower", "all of it", 1),
    )
    text = write_page([item], {"reweighting": Measured("reweighting", 1, 60, found)}, tmp_path, command="it")
    told = text.read_text()
    assert told.count("word") < 40
    assert "word … |" in told
    assert "| all of it |" in told
