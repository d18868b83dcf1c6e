"""What a notebook shows: tables without markup of others, and no row."""

from html.parser import HTMLParser

import numpy as np
import pytest

from privada import CellStatistics, NearestCells, Owner, Schema
from privada._notebook import describe, list_rows
from privada.privacy import Ledger, OwnerKey, PureDP

HOSTILE = "<script>alert(1)</script>\x1b[2J\u202e&\"'"
PLANTED = 0.123456789


class Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.tags, self.text = set(), ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert {name for name, _ in attrs} <= {"style"}

    def handle_data(self, data):
        self.text += data


def check(page):
    """The text of a page that holds nothing but a table."""
    read = Tags(page)
    assert read.tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert "\x1b" not in read.text
    assert "\u202e" not in read.text
    return read.text


@pytest.mark.parametrize(
    "page",
    [describe(HOSTILE, [(HOSTILE, HOSTILE)]), list_rows(HOSTILE, [HOSTILE], [[HOSTILE]])],
    ids=["facts", "rows"],
)
def test_everything_is_escaped(page):
    assert check(page).count("<script>") >= 3


def test_long_text_is_bounded():
    assert len(describe("t", [("a", "x" * 10**6)])) < 2000


def test_every_object_of_a_release_is_shown_and_no_row_is():
    name = f"rows {HOSTILE}".replace("\x1b", "").replace("\u202e", "")
    budget = PureDP(epsilon=1, relation="add/remove")
    with Ledger.open(":memory:", OwnerKey.generate()) as ledger:
        ledger.open_budget(name, budget)
        schema = Schema.of_numbers(bounds=(0, 1), width=1)
        owner = Owner(np.full((20, 1), PLANTED), schema=schema, dataset=name, budget=budget, ledger=ledger)
        guarantee = PureDP(epsilon=0.5, relation="add/remove")
        question = CellStatistics(tables=(NearestCells(centers=[[0.2], [0.8]]),), guarantee=guarantee)
        quote, release = owner.price(question), owner.answer(question)
        things = (guarantee, question, quote, release, release.receipt, ledger, owner)
        texts = [check(thing._repr_html_()) for thing in things]
    assert all(str(PLANTED)[:6] not in text for text in texts)
    assert "ε = 0.5 (pure), add/remove one row" in texts[0]
    assert question.digest in texts[1]
    assert "50 %" in texts[2]
    assert "±" in texts[3]
    assert release.receipt.digest in texts[4]
    assert "50 %" in texts[5]
    assert owner.public_key in texts[6]


def test_a_closed_ledger_is_shown_as_well():
    ledger = Ledger.open(":memory:", OwnerKey.generate())
    ledger.close()
    assert "Ledger" in check(ledger._repr_html_())
