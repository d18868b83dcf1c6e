import re
from html.parser import HTMLParser

import numpy as np

from privada.methods.pictures import Picture, Plane, Points
from privada.report import Page, Panel, Table, demo_pictures
from privada.report.page import Score

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
        picture=demo_pictures.draw(Picture(caption="", parts=(Plane(title=HOSTILE, layers=(layer,)),))),
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
