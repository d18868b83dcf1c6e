"""Releases as pictures."""

import numpy as np
import pytest

from privada import Bins, CellStatistics, NearestCells, Owner, PureDP, Schema
from privada.exceptions import InputError
from privada.privacy.release_picture import draw_release

pytest.importorskip("matplotlib")
PURE = PureDP(epsilon=1.0, relation="add/remove")


def released(**settings):
    rows = np.random.default_rng(0).uniform(size=(100, 2))
    schema = Schema.of_numbers(bounds=(0, 1), width=2)
    owner = Owner(rows, schema=schema, dataset="rows", budget=PureDP(epsilon=9, relation="add/remove"))
    return owner.answer(CellStatistics(guarantee=PURE, **settings))


def test_counts_have_intervals_and_the_guarantee_stands_above(tmp_path):
    release = released(tables=(Bins(feature=0, edges=np.linspace(0.1, 0.9, 9)),))
    figure = release.plot()
    (axes,) = figure.axes
    assert "95%" in axes.get_title(loc="left")
    assert str(release.guarantee) in figure.get_suptitle()
    figure.savefig(tmp_path / "counts.png")


def test_every_array_has_a_panel():
    centers = np.random.default_rng(1).uniform(size=(80, 2))
    figure = released(tables=(NearestCells(centers=centers),), radius=1.0, width=2).plot(0.9)
    assert len([axes for axes in figure.axes if axes.get_title(loc="left")]) == 2


def test_a_release_without_noise_on_arrays_is_not_drawn():
    class Empty:
        noise = ()

        def interval(self, confidence):
            return {}

    with pytest.raises(InputError, match="no noisy array"):
        draw_release(Empty(), 0.95)
