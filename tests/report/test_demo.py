"""The results of all methods as a table, as JSON and as a page that say the same, with pictures."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from privada.methods.example import DemoRow
from privada.methods.pictures import Curve, Line, Picture, Plane, Points, Tiles
from privada.privacy import Ledger, OwnerKey, PureDP
from privada.report import demo
from privada.report.demo import demo_lines, demo_page, demo_plain, demo_table

CLAIMED = PureDP(epsilon=1.0, relation="add/remove")


@pytest.fixture(scope="module")
def row():
    with Ledger.open(":memory:", OwnerKey.generate()) as ledger:
        ledger.open_budget("digits", CLAIMED)
        export = ledger.export("digits")
    return DemoRow(
        method="cells",
        title="counts",
        holders="A clinic holds <rows>.",
        guarantee=CLAIMED,
        score="accuracy",
        without=9.96,
        ours=51.25,
        clear=0.123456,
        ledger=export,
        stamps=("idealised",),
    )


def test_the_table_names_the_guarantee_its_relation_and_the_stamps(row):
    table = demo_table([row, replace(row, method="other")])
    assert [each[0] for each in table.rows] == ["cells", "other"]
    assert table.rows[0][2] == "ε = 1 (pure), add/remove one row; idealised"
    assert table.rows[0][4:] == ("9.96", "51.2", "0.123")


def test_the_plain_form_is_the_row(row):
    plain = json.loads(json.dumps(demo_plain(row)))
    assert (plain["without"], plain["ours"], plain["clear"]) == (9.96, 51.25, 0.123456)
    assert plain["guarantee"] == CLAIMED.to_dict()
    assert plain["stamps"] == ["idealised"]


def test_the_page_has_a_story_for_each_method_and_one_ledger(row):
    page = demo_page([row, replace(row, method="other")])
    titles = [panel.title for panel in page.panels]
    assert titles == ["At a glance", "cells: counts", "other: counts", "The ledger"]
    budgets, lines = page.panels[-1].tables
    assert [each[0] for each in budgets.rows] == ["cells", "other"]
    assert {each[0] for each in lines.rows} == {"cells", "other"}
    html = page.to_html()
    assert "&lt;rows&gt;" in html
    assert "idealised" in html
    assert "51.2" in html


@pytest.mark.parametrize(
    ("better", "clear", "shown"), [("higher", 50, True), ("higher", 52, False), ("lower", 52, True)]
)
def test_a_private_score_that_beats_the_clear_one_is_explained(row, better, clear, shown):
    odd = replace(row, better=better, clear=clear, surprise="By chance.")
    assert ("By chance." in demo_page([odd]).to_html()) == shown
    assert (demo_plain(odd)["surprise"] == "By chance.") == shown


def test_a_picture_has_its_caption(row):
    tiles = Tiles(title="digits", images=np.ones((2, 8, 8)))
    panel = demo_page([replace(row, picture=Picture(caption="Two digits.", parts=(tiles,)))]).panels[1]
    assert panel.picture.startswith("<svg")
    assert "<figcaption>Two digits.</figcaption>" in panel.to_html()


def test_every_ledger_has_its_table(row):
    (table,) = demo_lines([row])
    assert table.title == "Ledger lines of cells"
    assert len(table.rows) == len(row.ledger["datasets"]["digits"]["lines"])


AT = np.array([[0.0, 1.0], [2.0, 3.0]])
PARTS = {
    "plane": Plane(
        title="<a plane>", layers=(Points(name="homes", at=AT), Points(name="c", at=AT, names="ab"))
    ),
    "curve": Curve(
        title="a curve",
        xlabel="ε",
        ylabel="e",
        log=True,
        lines=(Line.over_runs("ours", [1, 2], [[1, 2], [3, 5]]),),
    ),
    "tiles": Tiles(title="tiles", images=np.ones((11, 8, 8)), names=list("abcdefghijk")),
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_each_part_is_one_svg_with_its_title_read_aloud(part):
    text = demo.draw(Picture(caption="", parts=(part, part)))
    assert text.count("<svg ") == text.count('aria-label="') == 2
    assert "<a plane>" not in text


def test_names_and_images_are_drawn():
    assert demo.draw(Picture(caption="", parts=(PARTS["tiles"],))).count("<image ") == 11
    assert "homes" in demo.draw(Picture(caption="", parts=(PARTS["plane"],)))


def test_nothing_without_a_picture_or_without_matplotlib(monkeypatch):
    assert demo.draw(None) == ""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert demo.draw(Picture(caption="", parts=tuple(PARTS.values()))) == ""


def test_anything_else_is_refused():
    with pytest.raises(TypeError, match="got a str"):
        demo.draw_part("x", None)
