"""Errors against n and epsilon: the first rows, and roles of their lines."""

import numpy as np
import pytest

from privada_lab.datasets import domain_pairs
from privada_lab.experiments.registry import untracked
from privada_lab.experiments.reweighting import curves


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("ours, epsilon 4", "ours"),
        ("CnvxAdap", "bound"),
        ("public-only", "bound"),
        ("minibatch SGD", "baseline"),
        ("PCnvxAdap, sound", "paper"),
        ("PNCnvxAdap, printed", "paper"),
    ],
)
def test_lines_have_their_roles(name, role):
    assert curves._role(name) == role


@pytest.mark.parametrize("epsilon", curves.EPSILONS)
def test_the_lines_of_an_epsilon_are_its_own(epsilon):
    """Those of epsilon 15 once stood under epsilon 1, whose name theirs begins with."""
    points = {f"ours, epsilon {each:g}": [[each]] for each in (15, *curves.EPSILONS)}
    assert curves._of_epsilon(points, f"epsilon {epsilon:g}") == {"ours": [[epsilon]]}


def test_more_rows_begin_with_the_fewer_ones(pair):
    few, more = (curves._first(pair.train, n) for n in (50, 100))
    assert np.array_equal(more.X[:50], few.X)
    assert np.array_equal(more.y[:50], few.y)


def test_the_gradient_mapping_is_drawn_with_its_least_so_far(two_classes, monkeypatch):
    monkeypatch.setattr(domain_pairs, "adult", lambda data, seed: two_classes)
    monkeypatch.setattr(curves, "STEPS", 30)
    (drawn,) = curves.gradient_curve(None, range(200, 201))
    now, least = drawn.series
    assert now.x == least.x == [1, 3, 10, 30, 30]
    assert list(least.mean) == sorted(least.mean, reverse=True)
    assert all(low <= value for low, value in zip(least.mean, now.mean, strict=True))


def test_figure_four_has_ours_at_every_size_beside_a_level(two_classes, monkeypatch):
    monkeypatch.setattr(domain_pairs, "adult", lambda data, seed: two_classes)
    monkeypatch.setattr(curves, "STEPS", 5)
    monkeypatch.setattr(curves, "ADULT_SIZES", (100, 200))
    monkeypatch.setattr(curves, "ours", lambda pair, epsilon, train: 1 / len(train))
    drawn, *others = curves.adult_curve(None, range(200, 201), untracked)
    assert [each.title[-2:].strip() for each in (drawn, *others)] == ["1", "4", "15"]
    ours, sound, printed, level = drawn.series
    assert (sound.name, printed.name) == ("PNCnvxAdap, sound", "PNCnvxAdap, printed")
    assert list(ours.mean) == [1 / 100, 1 / 200]
    assert len(set(level.mean)) == 1
