"""What is made of a release: thresholds, projections, spreads and synthetic rows."""

import math
import warnings

import numpy as np
import pytest
from scipy.stats import binom

from privada import Owner
from privada.exceptions import InputError, RehearsalWarning
from privada.methods.clustering import (
    NearestMeans,
    NeighbourAverages,
    SourceRadius,
    count_threshold,
    estimate_radius,
    sanitise,
)
from privada.methods.clustering.learner.source import (
    MOST_IN_A_CELL,
    LocalPosterior,
    PyramidPosterior,
    estimate_occupied,
    mark_likeliest,
    repeat_children,
    sum_children,
    threshold,
    unpack_triangles,
)
from privada.methods.clustering.questions.multiscale import GridPyramid, LocalMeans
from privada.parties import Policy, Schema
from privada.privacy import ZCDP, ApproxDP, PureDP
from privada.privacy.mechanism import Gaussian, KNormCylinder, Laplace
from tests.methods.clustering.questions.sensitivity import noise_variances

PURE, RHO = PureDP(epsilon=3, relation="add/remove"), ZCDP(rho=3, relation="add/remove")


APPROXIMATE = ApproxDP(epsilon=3, delta=1e-5, relation="add/remove")


CELLS = np.array([[-0.3, -0.2], [0.3, -0.2], [0.0, 0.3], [0.2, 0.1]])


SCHEMA = Schema.of_numbers(bounds=(-0.5, 0.5), width=2)


def answered(question, X, seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RehearsalWarning)
        accounting = "gaussian" if isinstance(question.guarantee, ApproxDP) else None
        owner = Owner(
            X,
            schema=SCHEMA,
            dataset="s",
            budget=question.guarantee,
            policy=Policy(idealised=True),
            accounting=accounting,
            insecure_seed=seed,
            allow_empty=True,
        )
    return owner.answer(question)


def local(guarantee=RHO, **more):
    return LocalMeans(
        **{"cells": CELLS, "shells": [0.05, 0.1, 0.3], "domain": 0.5, "guarantee": guarantee} | more
    )


def test_full_cells_pass_and_empty_ones_do_not():
    X = np.repeat(CELLS[:2] + 0.01, 400, axis=0)
    for question in (
        NearestMeans(cells=CELLS, radius=0.5, guarantee=PURE),
        NearestMeans(cells=CELLS, radius=0.5, noise="k-norm", guarantee=PURE),
        NearestMeans(cells=CELLS, radius=0.2, recentred=True, domain=0.5, guarantee=RHO),
        local(),
        local(PURE, moments="trace"),
    ):
        found = sanitise(question, answered(question, X), gamma=1e-4)
        assert found.cells.tolist() == [0, 1]
        assert np.allclose(found.points, CELLS[:2] + 0.01, atol=0.02)
        assert np.allclose(found.weights, 400, atol=20)
        assert len(found) == 2


def test_nothing_comes_of_no_source():
    for question in (NearestMeans(cells=CELLS, radius=0.5, guarantee=PURE), local(moments="full")):
        found = sanitise(question, answered(question, np.empty((0, 2))), gamma=1e-6)
        assert found.points.shape == (0, 2)


@pytest.mark.parametrize("moments", ["none", "trace", "full", "pooled"])
def test_points_stay_where_rows_can_be(moments):
    """However large the noise: within the shell of its cell, and always in the public ball."""
    question = local(ZCDP(rho=0.001, relation="add/remove"), moments=moments, domain=0.35)
    rng = np.random.default_rng(0)
    found = sanitise(question, answered(question, rng.uniform(-0.3, 0.3, size=(300, 2))), gamma=0.9)
    assert len(found) > 0
    assert np.linalg.norm(found.points, axis=1).max() <= 0.35
    reach = np.linalg.norm(found.points - question.cells[found.cells], axis=1)
    inside = np.linalg.norm(question.cells[found.cells], axis=1) <= 0.35  # nearer to these when projected
    assert np.all(reach[inside] <= question.shells[-1] * (1 + 1e-12))


def test_nearest_means_are_projected():
    question = NearestMeans(cells=CELLS, radius=0.5, guarantee=ZCDP(rho=0.001, relation="add/remove"))
    found = sanitise(question, answered(question, np.zeros((50, 2))), gamma=0.9)
    assert len(found) > 0
    assert np.linalg.norm(found.points, axis=1).max() <= 0.5


@pytest.mark.statistical
@pytest.mark.parametrize("noise", ["lattice", "k-norm"])
def test_points_are_as_far_off_as_the_noise_says(noise):
    """Root mean squared error over 150 seeds; false alarm below 1e-4."""
    X = np.tile([[0.29, -0.19]], (1000, 1))
    question = NearestMeans(cells=CELLS, radius=0.5, noise=noise, guarantee=PURE)
    found = [sanitise(question, answered(question, X, seed), gamma=1e-9) for seed in range(150)]
    errors = [np.linalg.norm(one.points[0] - X[0]) for one in found]
    count, total = noise_variances(question)  # to first order, on counts of about 1000
    expected = np.sqrt(2 * total + np.sum(X[0] ** 2) * count) / 1000
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(expected, rel=0.25)


def test_averages_are_sums_over_t():
    X = np.tile([[0.1, 0.2]], (2000, 1))
    for noise in ("lattice", "k-norm"):
        question = NeighbourAverages(targets=CELLS, t=1000, radius=0.5, noise=noise, guarantee=PURE)
        found = sanitise(question, answered(question, X))
        assert np.allclose(found.points, X[:4], atol=0.05)
        assert found.cells.tolist() == [0, 1, 2, 3]
    short = NeighbourAverages(targets=CELLS, t=1000, radius=0.5, guarantee=RHO)
    found = sanitise(short, answered(short, X[:500]))
    assert np.allclose(found.points, X[:4] / 2, atol=0.02), "absent rows are the centre"


@pytest.mark.statistical
@pytest.mark.parametrize("guarantee", [PURE, RHO], ids=str)
def test_the_radius_is_estimated_and_bounded(guarantee):
    """The bound fails in at most 5 % of 200 runs (false alarm 1e-4)."""
    X = np.random.default_rng(1).normal(size=(300, 2)) * 0.1
    question = SourceRadius(targets=CELLS, t=20, radius=0.5, guarantee=guarantee)
    distances = np.sort(np.linalg.norm(CELLS[:, None] - X[None], axis=2), axis=1)[:, :20].mean()
    found = [estimate_radius(question, answered(question, X, seed)) for seed in range(200)]
    assert np.mean([one.value for one in found]) == pytest.approx(distances, abs=0.01)
    missed = sum(one.upper(0.95) < distances for one in found)
    assert missed <= binom.ppf(1 - 1e-4, 200, 0.05)
    assert missed >= 1
    assert found[0].upper(0.3) <= found[0].upper(0.99)


def test_an_absent_source_is_as_far_as_can_be():
    question = SourceRadius(
        targets=CELLS, t=20, radius=0.5, guarantee=PureDP(epsilon=200, relation="add/remove")
    )
    found = estimate_radius(question, answered(question, np.empty((0, 2))))
    assert found.value == pytest.approx(np.mean(np.linalg.norm(CELLS, axis=1)) + 0.5, abs=0.01)


def test_only_the_release_of_the_question_is_read():
    question = NearestMeans(cells=CELLS, radius=0.5, guarantee=PURE)
    other = NearestMeans(cells=CELLS, radius=0.4, guarantee=PURE)
    radius = SourceRadius(targets=CELLS, t=2, radius=0.5, guarantee=PURE)
    release = answered(question, np.zeros((5, 2)))
    with pytest.raises(InputError, match="another one"):
        sanitise(other, release)
    with pytest.raises(InputError, match="another one"):
        estimate_radius(radius, release)
    with pytest.raises(InputError, match="does not ask for"):
        sanitise(radius, answered(radius, np.zeros((5, 2))))
    for wrong in (np.zeros((5, 2)), None):
        with pytest.raises(InputError, match="Releases only"):
            sanitise(question, wrong)
    with pytest.raises(InputError, match="gamma"):
        sanitise(question, release, gamma=0.0)


@pytest.mark.statistical
@pytest.mark.parametrize("gamma", [0.05, 0.3])
@pytest.mark.parametrize(
    "question",
    [
        NearestMeans(cells=np.zeros((20, 2)), radius=0.5, guarantee=PURE),
        NearestMeans(cells=np.zeros((20, 2)), radius=0.5, noise="k-norm", guarantee=PURE),
        NearestMeans(cells=np.zeros((20, 2)), radius=0.5, guarantee=RHO),
        NearestMeans(cells=np.zeros((20, 2)), radius=0.5, guarantee=APPROXIMATE),
        LocalMeans(cells=np.zeros((10, 2)), shells=[0.1, 0.2], domain=0.5, guarantee=PURE),
        LocalMeans(cells=np.zeros((10, 2)), shells=[0.1, 0.2], domain=0.5, moments="full", guarantee=RHO),
    ],
    ids=lambda q: f"{q.kind}-{q.guarantee}",
)
def test_empty_cells_pass_with_the_stated_probability_at_most(question, gamma, rehearsal):
    """1e4 runs without a source; false alarm 1e-4 for each."""
    runs, cells = 10_000, 20
    if "table" in question.plan.draws:
        draws = (
            question.plan.draws["table"].draw(np.zeros((runs * cells, 3)), rehearsal)[:, 0] * question.moves
        )
        counts = draws.reshape(runs, cells)
    else:
        counts = question.plan.draws["counts"].draw(np.zeros((runs, cells), dtype=np.int64), rehearsal)
    passed = np.sum((counts >= count_threshold(question, gamma=gamma)).any(axis=1))
    assert passed <= binom.ppf(1 - 1e-4, runs, gamma)
    assert passed >= 1, "a threshold that nothing ever passes is too high"


def test_thresholds_are_those_of_the_lattice():
    """The specification's b ln(N/2γ) is for continuous noise: on whole numbers it lets too many pass."""
    coarse, gamma = Laplace(sensitivity=1, scale=1.0), 0.5005 * math.exp(-2)
    passes = {h: math.exp(-h) / (1 + math.exp(-1)) for h in range(9)}
    h = threshold(coarse, cells=1, gamma=gamma, width=2)
    assert passes[h] <= gamma < passes[h - 1]
    assert passes[math.ceil(math.log(1 / (2 * gamma)))] > 1.4 * gamma
    fine = Laplace(sensitivity=1, scale=1e4)
    assert threshold(fine, cells=100, gamma=0.05, width=2) == pytest.approx(1e4 * math.log(1000), rel=1e-4)
    normal = Gaussian.calibrated(sensitivity=1, mu=0.5)
    assert threshold(normal, cells=100, gamma=0.05, width=2) == pytest.approx(2 * 3.2905, rel=1e-4)
    wide = KNormCylinder(sensitivity=1.0, budget=1.0)
    assert threshold(wide, cells=1, gamma=0.6, width=2) == 0
    assert threshold(wide, cells=10, gamma=0.1, width=8) > threshold(wide, cells=10, gamma=0.1, width=2)


AR = "add/remove"


@pytest.mark.parametrize("width", [1, 2, 3])
def test_cubes_are_sum_children_and_repeat_children(width):
    cube = np.random.default_rng(2).normal(size=(4,) * width)
    joined = sum_children(cube)
    assert joined.shape == (2,) * width
    assert joined.sum() == pytest.approx(cube.sum())
    assert np.array_equal(sum_children(repeat_children(joined)), joined * 2**width)
    best = mark_likeliest(cube)
    assert best.sum() == 2**width
    assert np.array_equal(sum_children(best), np.ones((2,) * width))
    chosen = repeat_children(sum_children(np.where(best, cube, 0.0)))
    assert np.all(chosen >= cube)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_with_little_noise_a_draw_is_where_the_source_is(width):
    rng = np.random.default_rng(3)
    source = np.clip(rng.normal(0.2, 0.02, size=(400, width)), -0.5, 0.5)
    question = GridPyramid(levels=(2, 4), domain=0.5, width=width, guarantee=ZCDP(rho=50.0, relation=AR))
    schema = Schema.of_numbers(bounds=(-0.5, 0.5), width=width)
    holder = Owner(source, schema=schema, dataset="s", budget=ZCDP(rho=50.0, relation=AR))
    drawn = PyramidPosterior(question, holder.answer(question)).draw(rng)
    assert len(drawn) > 5
    assert np.mean(np.abs(drawn - 0.2).max(axis=1) < 0.2) > 0.9


def test_noise_alone_draws_little():
    """An empty source: what noise makes up is a handful of points, not a source."""
    question = GridPyramid(levels=(3, 5), domain=0.5, width=2, guarantee=ZCDP(rho=1.0, relation=AR))
    schema = Schema.of_numbers(bounds=(-0.5, 0.5), width=2)
    holder = Owner(
        np.empty((0, 2)), schema=schema, dataset="s", budget=ZCDP(rho=30.0, relation=AR), allow_empty=True
    )
    rng = np.random.default_rng(4)
    sizes = [len(PyramidPosterior(question, holder.answer(question)).draw(rng)) for _ in range(20)]
    assert np.mean(sizes) < 40


def test_more_rows_in_a_cell_are_more_points_up_to_a_limit():
    """The nearest of many points is nearer than that of few: a cap of a few points made costs too high."""
    rng = np.random.default_rng(0)
    question = GridPyramid(levels=(2, 3), domain=0.5, width=2, guarantee=ZCDP(rho=50.0, relation=AR))
    schema = Schema.of_numbers(bounds=(-0.5, 0.5), width=2)
    sizes = []
    for rows in (20, 5000):
        source = rng.uniform(0.01, 0.12, size=(rows, 2))
        holder = Owner(source, schema=schema, dataset="s", budget=ZCDP(rho=50.0, relation=AR))
        sizes.append(len(PyramidPosterior(question, holder.answer(question)).draw(rng)))
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
    holder = Owner(source, schema=schema, dataset="s", budget=ZCDP(rho=50.0, relation=AR))
    drawn = LocalPosterior(question, holder.answer(question), target).draw(rng)
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
