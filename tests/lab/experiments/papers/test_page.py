"""The page of papers: what was found stands beside what the paper prints."""

import pytest

from privada.exceptions import InputError
from privada.lab.experiments.papers.item import PaperItem
from privada.lab.experiments.papers.page import Measured, missing_items, write_page
from privada.report.exhibit import Curves, Series
from privada.report.figure import Figure
from privada.report.tables import Table

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
    assert "CnvxAdap \\| 1" in text
    assert "![First: curves](papers/first-curves.svg)" in text
    assert (tmp_path / "papers/first-curves.svg").exists()
    assert "| a | b |" in text
    assert "Not this" not in text
    assert "`other`" not in text
    assert "| `reweighting` | 2 | 1.0 |" in text


def test_what_was_not_measured_is_said(tmp_path):
    text = write_page([ITEM], {}, tmp_path, command="it").read_text()
    assert "Not in this run" in text
    assert missing_items([ITEM], {}) == [ITEM]


def test_an_item_shows_something_or_says_why_not():
    with pytest.raises(InputError, match="say what is missing"):
        PaperItem(paper="003", name="Table 9", shows="", experiment="reweighting")
