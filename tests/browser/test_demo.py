"""The demo's page as people see it: on a desk and on a phone, light and dark."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

STORIES = ("clustering", "marginals", "transport", "reweighting", "summarization")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Its page, and the same as JSON: written by the real command."""
    out = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "privada.cli", "demo", "--out", str(out), "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return (out / "index.html").as_uri(), json.loads(ended.stdout)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_is_whole(visit, demo, width, dark):
    seen = visit(demo[0], width=width, dark=dark)
    seen.check()
    assert seen.violations() == []


def test_each_of_the_five_stories_has_a_picture_and_there_is_one_ledger(visit, demo):
    page = visit(demo[0]).page
    for story in STORIES:
        panel = page.locator("section", has=page.locator("h2", has_text=f"{story}:"))
        assert panel.locator("figure svg").first.is_visible()
        assert panel.locator("figcaption").inner_text()
    assert page.locator("h2", has_text="The ledger").count() == 1


def test_a_score_that_seems_odd_is_explained_where_it_stands(visit, demo):
    page = visit(demo[0]).page
    for row in demo[1]["rows"]:
        odd = row["ours"] < row["clear"] if row["better"] == "lower" else row["ours"] > row["clear"]
        panel = page.locator("section", has=page.locator("h2", has_text=f"{row['method']}:"))
        assert panel.locator("p.note").count() == odd
