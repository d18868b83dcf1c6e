"""Pages and their pictures: inline, escaped, in the page's colours; nothing is fetched."""

import re
from html.parser import HTMLParser

import numpy as np
from matplotlib.figure import Figure

from privada.methods.pictures import Picture, Plane, Points
from privada.report import Page, Panel, Table, demo
from privada.report.page import ACCENT, CSS, INK, Score, svg

HOSTILE = "<img src=x onerror=alert(1)>"
VOID = {"meta", "br", "img", "link", "path", "use"}


class Balanced(HTMLParser):
    """Collects tags and refuses a document that does not nest."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


def page():
    layer = Points(name=f"{HOSTILE} $x$", at=np.eye(2), names=(HOSTILE, HOSTILE))
    panel = Panel(
        title=HOSTILE,
        text=HOSTILE,
        guarantee=HOSTILE,
        stamps=("rehearsal: not private", HOSTILE),
        scores=(Score(label=HOSTILE, value=HOSTILE, ours=True),),
        picture=demo.draw(Picture(caption="", parts=(Plane(title=HOSTILE, layers=(layer,)),))),
        caption=HOSTILE,
        note=HOSTILE,
        tables=(Table(title=HOSTILE, columns=(HOSTILE,), rows=((HOSTILE,),), note=HOSTILE),),
    )
    return Page(title=HOSTILE, lead=HOSTILE, panels=(panel,), stamps=(HOSTILE,), footer=HOSTILE)


def test_everything_is_escaped_and_nests():
    html = page().to_html()
    assert "<img" not in html
    assert html.count("&lt;img") > 12
    parser = Balanced()
    parser.feed(html)
    assert parser.open == []


def test_nothing_is_loaded_and_nothing_runs():
    html = page().to_html()
    parser = Balanced()
    parser.feed(html)
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in parser.seen}
    for _, attributes in parser.seen:
        for name in ("src", "href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith("#")
    assert "default-src 'none'" in html
    assert not re.search(r"url\((?!#)", html)
    assert "@import" not in html


def test_stamps_are_shown():
    assert "rehearsal: not private" in page().to_html()


def test_light_and_dark():
    html = page().to_html()
    assert "prefers-color-scheme:dark" in html
    assert "#01020" not in html  # every mark of a picture became a colour of the page


def test_save_makes_the_folder(tmp_path):
    written = page().save(tmp_path / "a" / "b.html")
    assert written.read_text(encoding="utf-8") == page().to_html()


def drawn(text="x", label="a label"):
    figure = Figure()
    axes = figure.add_subplot()
    axes.plot([0, 1], color=ACCENT)
    axes.set_title(text, parse_math=False, color=INK)
    return svg(figure, label=label)


def test_a_picture_is_inline_in_the_pages_colours_and_read_aloud():
    text = drawn("<b>&", label="accuracy of <i>")
    assert text.startswith('<svg role="img" aria-label="accuracy of &lt;i&gt;"')
    assert "<b>" not in text
    assert all(f"var(--{colour})" in text for colour in ("ink", "accent"))
    assert "#01020" not in text
    assert "<metadata>" not in text


def test_the_same_picture_is_the_same_text():
    assert drawn() == drawn()


def test_text_stays_text_and_is_no_mathematics():
    assert "$x_1$" in drawn("$x_1$")


def defined(text):
    return set(re.findall(r"(--[\w-]+):", text))


def test_every_variable_that_is_used_is_defined_in_light_and_dark():
    used = set(re.findall(r"var\((--[\w-]+)\)", CSS)) - {"--p"}  # --p is set by each bar
    light, dark = (defined(block) for block in re.findall(r":root\{(.*?)\}", CSS, flags=re.DOTALL))
    assert used <= light == dark


def test_nothing_is_fetched():
    assert not re.search(r"url\(|@import|@font-face|http", CSS)


def test_braces_are_balanced():
    assert CSS.count("{") == CSS.count("}")


def test_the_pictures_use_these_variables():
    from privada.report.page import MARKED_COLOURS

    assert {mark[4:-1] for mark in MARKED_COLOURS.values()} <= defined(CSS)
