"""Pictures: inline, in the page's colours, and left out without matplotlib."""

import sys

from privada.report import pictures


def test_without_matplotlib_there_is_a_page_without_picture(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert pictures.spans([], xlabel="x") == ""


def span(**more):
    return pictures.Span(**({"name": "cells", "without": 0.1, "ours": 0.5, "clear": 0.9} | more))


def test_a_picture_is_inline_in_the_pages_colours_and_read_aloud():
    drawn = pictures.spans([span(), span(name="<b>&")], xlabel="accuracy of <i>")
    assert drawn.startswith(
        '<svg role="img" aria-label="For each method, three values of accuracy of &lt;i&gt;'
    )
    assert "<b>" not in drawn
    assert all(f"var(--{colour})" in drawn for colour in ("ink", "line", "accent", "plain"))
    assert "#01020" not in drawn
    assert "<metadata>" not in drawn


def test_the_same_picture_is_the_same_text():
    assert pictures.spans([span()], xlabel="x") == pictures.spans([span()], xlabel="x")


def test_text_stays_text_and_is_no_mathematics():
    drawn = pictures.spans([span(name="$x_1$")], xlabel="x")
    assert "$x_1$" in drawn
    assert "without the private data" in drawn
