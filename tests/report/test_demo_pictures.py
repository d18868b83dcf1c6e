"""Planes, curves and tiles are drawn one SVG each, or not at all without matplotlib."""

import sys

import numpy as np
import pytest

from privada.methods.pictures import Curve, Line, Picture, Plane, Points, Tiles
from privada.report import demo_pictures

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
    text = demo_pictures.draw(Picture(caption="", parts=(part, part)))
    assert text.count("<svg ") == text.count('aria-label="') == 2
    assert "<a plane>" not in text


def test_names_and_images_are_drawn():
    assert demo_pictures.draw(Picture(caption="", parts=(PARTS["tiles"],))).count("<image ") == 11
    assert "homes" in demo_pictures.draw(Picture(caption="", parts=(PARTS["plane"],)))


def test_nothing_without_a_picture_or_without_matplotlib(monkeypatch):
    assert demo_pictures.draw(None) == ""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert demo_pictures.draw(Picture(caption="", parts=tuple(PARTS.values()))) == ""


def test_anything_else_is_refused():
    with pytest.raises(TypeError, match="got a str"):
        demo_pictures.draw_part("x", None)
