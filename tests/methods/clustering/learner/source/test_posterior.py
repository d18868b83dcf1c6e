"""Plausible sources: where the source is, and little of noise alone."""

import math

import numpy as np
import pytest

from privada import Owner
from privada.methods.clustering.learner.source.posterior import (
    MOST_IN_A_CELL,
    LocalPosterior,
    PyramidPosterior,
    _mark_likeliest,
    _repeat_children,
    _sum_children,
    estimate_occupied,
    unpack_triangles,
)
from privada.methods.clustering.questions.local import LocalMeans
from privada.methods.clustering.questions.pyramid import GridPyramid
from privada.parties import Schema
from privada.privacy import ZCDP
from privada.privacy.mechanism import Laplace

AR = "add/remove"


@pytest.mark.parametrize("width", [1, 2, 3])
def test_cubes_are_sum_children_and_repeat_children(width):
    cube = np.random.default_rng(2).normal(size=(4,) * width)
    joined = _sum_children(cube)
    assert joined.shape == (2,) * width
    assert joined.sum() == pytest.approx(cube.sum())
    assert np.array_equal(_sum_children(_repeat_children(joined)), joined * 2**width)
    best = _mark_likeliest(cube)
    assert best.sum() == 2**width
    assert np.array_equal(_sum_children(best), np.ones((2,) * width))
    chosen = _repeat_children(_sum_children(np.where(best, cube, 0.0)))
    assert np.all(chosen >= cube)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_with_little_noise_a_draw_is_where_the_source_is(width):
    rng = np.random.default_rng(3)
    source = np.clip(rng.normal(0.2, 0.02, size=(400, width)), -0.5, 0.5)
    question = GridPyramid(levels=(2, 4), domain=0.5, width=width, guarantee=ZCDP(rho=50.0, relation=AR))
    schema = Schema.of_numbers(bounds=(-0.5, 0.5), width=width)
    house = Owner(source, schema=schema, dataset="s", budget=ZCDP(rho=50.0, relation=AR))
    drawn = PyramidPosterior(question, house.answer(question)).draw(rng)
    assert len(drawn) > 5
    assert np.mean(np.abs(drawn - 0.2).max(axis=1) < 0.2) > 0.9


def test_noise_alone_draws_little():
    """An empty source: what noise makes up is a handful of points, not a source."""
    question = GridPyramid(levels=(3, 5), domain=0.5, width=2, guarantee=ZCDP(rho=1.0, relation=AR))
    schema = Schema.of_numbers(bounds=(-0.5, 0.5), width=2)
    house = Owner(
        np.empty((0, 2)), schema=schema, dataset="s", budget=ZCDP(rho=30.0, relation=AR), allow_empty=True
    )
    rng = np.random.default_rng(4)
    sizes = [len(PyramidPosterior(question, house.answer(question)).draw(rng)) for _ in range(20)]
    assert np.mean(sizes) < 40


def test_more_rows_in_a_cell_are_more_points_up_to_a_limit():
    """The nearest of many points is nearer than that of few: a cap of a few points made costs too high."""
    rng = np.random.default_rng(0)
    question = GridPyramid(levels=(2, 3), domain=0.5, width=2, guarantee=ZCDP(rho=50.0, relation=AR))
    schema = Schema.of_numbers(bounds=(-0.5, 0.5), width=2)
    sizes = []
    for rows in (20, 5000):
        source = rng.uniform(0.01, 0.12, size=(rows, 2))
        house = Owner(source, schema=schema, dataset="s", budget=ZCDP(rho=50.0, relation=AR))
        sizes.append(len(PyramidPosterior(question, house.answer(question)).draw(rng)))
    assert 10 <= sizes[0] <= 40
    assert sizes[1] == MOST_IN_A_CELL


def test_local_draws_lie_in_their_shells_and_in_the_ball():
    rng = np.random.default_rng(1)
    cells = rng.normal(0, 0.1, size=(4, 5))
    source = cells[0] + rng.normal(0, 0.02, size=(3000, 5))
    target = rng.normal(0, 0.1, size=(60, 5))
    question = LocalMeans(
        cells=cells, shells=[0.05, 0.2], domain=0.5, moments="pooled", guarantee=ZCDP(rho=50.0, relation=AR)
    )
    schema = Schema.of_numbers(bounds=(-0.5, 0.5), width=5)
    house = Owner(source, schema=schema, dataset="s", budget=ZCDP(rho=50.0, relation=AR))
    drawn = LocalPosterior(question, house.answer(question), target).draw(rng)
    assert np.linalg.norm(drawn, axis=1).max() <= 0.5
    near = np.linalg.norm(drawn - cells[0], axis=1) < 0.4
    assert near.mean() > 0.9


def test_cells_of_many_rows_are_occupied_and_noise_is_not():
    noise = Laplace(sensitivity=1, scale=2.0)
    counts = np.r_[np.full(10, 60.0), np.random.default_rng(0).laplace(0, 2.0, size=200)]
    found = estimate_occupied(counts, noise)
    assert found[:10].min() > 0.99
    assert np.median(found[10:]) < 0.05


def test_triangles_come_back_as_matrices():
    rng = np.random.default_rng(0)
    v = rng.normal(size=(5, 3))
    rows, columns = np.triu_indices(3)
    packed = v[:, rows] * v[:, columns] * np.where(rows == columns, 1, math.sqrt(2))
    assert np.allclose(unpack_triangles(packed, 3), v[:, :, None] * v[:, None, :])
