"""Figures without pyplot: nothing global changes."""

import numpy as np
import pytest

from privada import _extras, _plot
from privada.exceptions import InputError

pytest.importorskip("matplotlib")


def test_a_figure_has_as_many_panels_as_asked_for():
    figure, panels = _plot.new_figure(3)
    assert len(figure.axes) == len(panels) == 3


def test_tables_show_numbers_only_where_they_can_be_read():
    for size, shown in ((3, 9), (20, 0)):
        _, (axes,) = _plot.new_figure()
        _plot.draw_table(axes, np.arange(float(size * size)).reshape(size, size))
        assert len(axes.texts) == shown


def test_names_are_no_mathematics(tmp_path):
    figure, (axes,) = _plot.new_figure()
    _plot.name_axes(axes, title="$x", x="$\\frac", y="a_b")
    _plot.draw_intervals(axes, [0, 1], np.zeros(2), np.zeros(2) - 1, np.ones(2))
    figure.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(_extras, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"privada\[plot\]"):
        _plot.new_figure()
