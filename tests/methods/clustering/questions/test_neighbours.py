"""Averages of neighbours and their distance: sensitivities that are attained, and noise."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.clustering import NeighbourAverages, SourceRadius
from privada.privacy import ApproxDP, PureDP, Unit
from tests.methods.clustering.questions.sensitivity import PURE, RHO, exact, loss


def test_the_sensitivity_of_neighbour_averages_is_attained():
    """One row near every target point pushes out one that is opposite: 2R at each, under both relations."""
    targets = np.array([[0.4, 0.0], [0.4, 0.1], [0.5, 0.0]])
    for relation in ("add/remove", "replace-one"):
        question = NeighbourAverages(
            targets=targets, t=1, radius=0.5, guarantee=replace(RHO, relation=relation)
        )
        far, near = np.array([[-0.5, 0.0]]), np.array([[-0.5, 0.0], [0.5, 0.0]])
        if relation == "replace-one":
            far = np.vstack([far, far])
        assert loss(question, exact(question, far), exact(question, near)) == pytest.approx(1, abs=1e-5)


def test_persons_exchange_as_many_neighbours_as_they_have_rows():
    """m rows of one person move t neighbours by min(m, t) of them, added or replaced."""
    for rows, relation in product((2, 9), ("add/remove", "replace-one")):
        unit = Unit(name="person", max_rows=rows)
        question = NeighbourAverages(
            targets=np.array([[0.4, 0.0]]),
            t=4,
            radius=0.5,
            guarantee=replace(RHO, relation=relation, unit=unit),
        )
        base, mine, other = (
            np.tile(v, (n, 1)) for v, n in (([-0.4, 0], 6), ([0.5, 0], rows), ([-0.5, 0], rows))
        )
        there = np.vstack([base, other]) if relation == "replace-one" else base
        moved = loss(question, exact(question, np.vstack([base, mine])), exact(question, there))
        assert moved == pytest.approx(0.9, abs=1e-5)
        assert question.exchanged == min(rows, 4)


def test_the_noise_of_neighbour_averages_is_the_specifications():
    """privacy.md, section 1b (c): n = 100, t = 150, d = 8: standard deviations .2487, .889 and .629."""
    shared = {"targets": np.zeros((100, 8)), "t": 150, "radius": 0.5}
    approximate = ApproxDP(epsilon=1, delta=1e-5, relation="add/remove")
    gaussian = NeighbourAverages(guarantee=approximate, **shared).plan.draws["sums"]
    assert gaussian.scale / 150 == pytest.approx(0.2487, abs=1e-4)
    pure = PureDP(epsilon=3, relation="add/remove")
    laplace = NeighbourAverages(guarantee=pure, **shared).plan.draws["sums"]
    assert math.sqrt(laplace.variance) / 150 == pytest.approx(0.889, abs=1e-3)
    ball = NeighbourAverages(guarantee=pure, noise="k-norm", **shared).plan.draws["sums"]
    assert math.sqrt(801) * ball.sensitivity / ball.budget / 150 == pytest.approx(0.629, abs=1e-3)


def test_the_source_radius_costs_at_most_the_diameter_over_t():
    rng = np.random.default_rng(0)
    targets = rng.normal(size=(50, 3))
    targets *= 0.5 / np.linalg.norm(targets, axis=1, keepdims=True)
    question = SourceRadius(targets=targets, t=10, radius=0.5, guarantee=PURE)
    assert question.plan.draws["total"].sensitivity / (50 * 10) == pytest.approx(1 / 10, rel=1e-5)


def test_distances_whose_sum_overflows_are_refused_before_any_charge():
    loose = PureDP(epsilon=1e4, relation="add/remove")
    question = SourceRadius(targets=[[1e8, 0.0]], t=100_000, radius=1.0, guarantee=loose)
    with pytest.raises(InputError, match="overflows"):
        question.price
