"""The price of sanitised sources: sensitivities by brute force, splits against their optimum."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from privada.audit import replay
from privada.audit.replaying import keeps
from privada.exceptions import InputError
from privada.methods.clustering import LocalMeans, NearestMeans, NeighbourAverages, SourceRadius
from privada.methods.clustering.questions import means
from privada.methods.clustering.questions.multiscale import GridPyramid
from privada.parties import Rows, Schema
from privada.privacy import ZCDP, ApproxDP, Gaussian, Grid, Laplace, PureDP, Unit
from privada.privacy.mechanism import Plan
from tests.methods.clustering.questions.sensitivity import (
    CELLS,
    PURE,
    RHO,
    SCHEMA,
    exact,
    loss,
    noise_variances,
)

T = 3


ROOT = math.sqrt(0.125)


RECORDS = np.array(
    [
        [0.0, 0.0],  # ties between cells
        [-0.5, 0.0],
        [0.5, 0.0],
        [ROOT, ROOT],
        [-ROOT, -ROOT],
        [0.25, 0.0],
        [0.25 + 0.19999 * ROOT, 0.19999 * ROOT],
        [0.25 - 0.19999 * ROOT, -0.19999 * ROOT],
        [-0.25 + 0.19999 * ROOT, 0.19999 * ROOT],
        [1e6, -1e6],
        [-1e6, 1e6],
        [1e-9, 0.3333],
    ]
)


GUARANTEES = [
    PURE,
    replace(PURE, relation="replace-one"),
    RHO,
    replace(RHO, relation="replace-one"),
    ApproxDP(epsilon=2, delta=1e-5, relation="replace-one"),
]


def questions():
    for guarantee in GUARANTEES:
        shared = {"guarantee": guarantee}
        yield NearestMeans(cells=CELLS, radius=0.5, **shared)
        yield NearestMeans(cells=CELLS, radius=0.3, recentred=True, domain=0.5, **shared)
        for moments in ("none", "trace", "full", "pooled"):
            yield LocalMeans(cells=CELLS, shells=[0.05, 0.1], domain=0.5, moments=moments, **shared)
        yield NeighbourAverages(targets=CELLS, t=T, radius=0.5, **shared)
        yield SourceRadius(targets=CELLS, t=T, radius=0.5, **shared)
        if isinstance(guarantee, PureDP):
            yield NearestMeans(cells=CELLS, radius=0.5, noise="k-norm", **shared)
            yield NeighbourAverages(targets=CELLS, t=T, radius=0.5, noise="k-norm", **shared)


def neighbours(base, replaces):
    for row in RECORDS:
        here = np.vstack([base, row])
        for X in [np.vstack([other, base]) for other in RECORDS] if replaces else [base]:
            yield here, X


@pytest.mark.parametrize("question", list(questions()), ids=lambda q: f"{q.kind}-{q.guarantee}")
def test_no_neighbour_moves_further_than_the_plan_says(question):
    """Ties, duplicates, outliers, and sources of 0, 1, t-1, t and t+1 rows."""
    replaces = question.guarantee.relation.value == "replace-one"
    worst = 0.0
    for rows in ([], [0], [2] * (T - 1), [2] * T, [4] * (T + 1), [8] * (T + 1), [1, 5, 0, 8]):
        known = {}
        for here, there in neighbours(RECORDS[rows], replaces):
            for X in (here, there):
                if X.tobytes() not in known:
                    known[X.tobytes()] = exact(question, X)
            worst = max(worst, loss(question, known[here.tobytes()], known[there.tobytes()]))
    assert worst <= 1 + 1e-9
    assert worst >= (0.5 if isinstance(question, (NeighbourAverages, SourceRadius)) else 0.8)


TABLE = {  # privacy.md, section 1 (c): MSE n² at R = 1/2 for d = 2, 8, 32, 82
    "laplace": (8.7, 62.5, 680, 3925),
    "k-norm": (4.2, 31.2, 379, 2338),
    "gaussian": (1.46, 3.66, 11.1, 25.3),
}


@pytest.mark.parametrize(("index", "d"), list(enumerate((2, 8, 32, 82))))
def test_the_table_of_the_specification(index, d):
    """d σᵣ² + R² σₙ²; shares are given, since the default keeps a tenth for counts in many dimensions."""

    def error(**more):
        counts, sums = noise_variances(NearestMeans(cells=np.zeros((1, d)), radius=0.5, **more))
        return d * sums + 0.25 * counts

    pure, half = PureDP(epsilon=0.01, relation="add/remove"), ZCDP(rho=0.5, relation="add/remove")
    best = 1 / (1 + d ** (2 / 3)), 1 / (1 + math.sqrt(d))
    assert error(guarantee=pure, count_share=best[0]) * 1e-4 == pytest.approx(
        TABLE["laplace"][index], rel=0.01
    )
    assert error(guarantee=pure, noise="k-norm") * 1e-4 == pytest.approx(TABLE["k-norm"][index], rel=0.01)
    assert error(guarantee=half, count_share=best[1]) == pytest.approx(TABLE["gaussian"][index], rel=0.01)
    assert error(guarantee=half) <= error(guarantee=half, count_share=best[1]) * 1.001


@pytest.mark.statistical
def test_k_norm_noise_has_the_moments_and_the_density_of_the_specification(rehearsal):
    """privacy.md, section 1 (d), 1e5 draws; the density ratio is bounded by ε wherever it is looked at."""
    d, epsilon, R = 8, 3.0, 0.5
    counts, sums = rehearsal.k_norm_cylinder(dimension=d, radius=R, epsilon=epsilon, size=100_000)
    assert np.mean(counts**2) == pytest.approx((d + 2) * (d + 3) / (3 * epsilon**2), rel=0.03)
    assert np.mean(np.sum(sums**2, axis=1)) == pytest.approx(d * (d + 3) * R**2 / epsilon**2, rel=0.03)

    def norm(c, s):
        return np.maximum(np.abs(c), np.linalg.norm(s, axis=1) / R)

    step = np.zeros(d)
    step[0] = R
    ratio = epsilon * (norm(counts - 1, sums - step) - norm(counts, sums))
    assert np.abs(ratio).max() <= epsilon * (1 + 1e-12)
    assert np.abs(ratio).max() > 0.99 * epsilon


GOOD = {
    NearestMeans: {"cells": CELLS, "radius": 0.5},
    LocalMeans: {"cells": CELLS, "shells": [0.1], "domain": 0.5},
    NeighbourAverages: {"targets": CELLS, "t": 2, "radius": 0.5},
    SourceRadius: {"targets": CELLS, "t": 2, "radius": 0.5},
}


@pytest.mark.parametrize(
    ("kind", "bad", "named"),
    [
        (NearestMeans, {"cells": np.zeros((0, 2))}, "cells"),
        (NearestMeans, {"cells": [[np.nan, 0.0]]}, "cells"),
        (NearestMeans, {"radius": -1.0}, "radius"),
        (NearestMeans, {"noise": "none"}, "noise"),
        (NearestMeans, {"recentred": True}, "domain"),
        (NearestMeans, {"domain": 0.0}, "domain"),
        (NearestMeans, {"count_share": 1.5}, "count_share"),
        (NearestMeans, {"noise": "k-norm", "count_share": 0.5}, "count_share"),
        (NearestMeans, {"noise": "k-norm", "guarantee": RHO}, "pure guarantee"),
        (LocalMeans, {"shells": []}, "shells"),
        (LocalMeans, {"shells": [0.0, 1.0]}, "shells"),
        (LocalMeans, {"shells": [0.2, 0.1]}, "shells"),
        (LocalMeans, {"shells": [0.1, np.inf]}, "shells"),
        (LocalMeans, {"domain": np.inf}, "domain"),
        (LocalMeans, {"moments": "third"}, "moments"),
        (LocalMeans, {"moment_share": 0.5}, "moment_share"),
        (LocalMeans, {"moments": "trace", "moment_share": 0.5, "count_share": 0.5}, "sums"),
        (LocalMeans, {"cells": np.zeros((10, 5000)), "moments": "full"}, "numbers"),
        (NeighbourAverages, {"t": 0}, "t to be"),
        (NeighbourAverages, {"t": 10**9}, "numbers"),
        (NeighbourAverages, {"radius": None}, "radius"),
        (NeighbourAverages, {"noise": "k-norm", "guarantee": RHO}, "pure guarantee"),
        (SourceRadius, {"t": 2.5}, "t to be"),
        (SourceRadius, {"targets": [1.0, 2.0]}, "targets"),
    ],
)
def test_bad_questions_are_refused_by_name(kind, bad, named):
    with pytest.raises(InputError, match=named):
        kind(**({"guarantee": PURE} | GOOD[kind] | bad))


@pytest.mark.parametrize("kind", list(GOOD))
def test_other_widths_do_not_fit(kind):
    question = kind(guarantee=PURE, **GOOD[kind])
    question.fits(SCHEMA)
    with pytest.raises(InputError, match="3 features"):
        question.fits(Schema.of_numbers(bounds=(0, 1), width=3))


def test_public_arrays_cannot_be_changed_afterwards():
    shells = np.array([0.1, 0.2])
    question = LocalMeans(cells=CELLS.copy(), shells=shells, domain=0.5, guarantee=PURE)
    shells[0] = 9
    assert question.shells[0] == 0.1
    for array in (question.cells, question.shells):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 2


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        (NearestMeans, {"cells": [[1e300, 0.0]]}),
        (NearestMeans, {"radius": 1e-320}),
        (LocalMeans, {"shells": [1e-320]}),
        (LocalMeans, {"shells": [0.1, 1e300]}),
        (LocalMeans, {"cells": [[-1e308, 1e308]]}),
        (LocalMeans, {"domain": 1e200}),
        (NeighbourAverages, {"targets": [[1e200, 0.0]]}),
        (NeighbourAverages, {"radius": 1e-200}),
        (SourceRadius, {"radius": 1e101}),
    ],
)
def test_parameters_that_floats_cannot_be_scaled_by_are_refused(kind, bad):
    """A shell of 1e-320 around a guessed row would make the sum 0 times infinity."""
    with pytest.raises(InputError, match="1e"):
        kind(**({"guarantee": PURE} | GOOD[kind] | bad))


@pytest.mark.parametrize("kind", [NearestMeans, NeighbourAverages])
@pytest.mark.parametrize("radius", [1e-90, 1e90])
def test_a_radius_without_a_grid_is_refused_before_the_charge_under_any_noise(kind, radius):
    """K-norm noise needs no grid, its rows do: the answer failed after the charge."""
    points = {NearestMeans: {"cells": CELLS}, NeighbourAverages: {"targets": CELLS, "t": T}}[kind]
    for noise in ("lattice", "k-norm"):
        question = kind(**points, radius=radius, noise=noise, guarantee=PURE)
        with pytest.raises(InputError, match="grid"):
            question.plan  # what an owner works out before the charge


@pytest.mark.parametrize("guarantee", GUARANTEES[:4], ids=str)
@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_rows_and_points_at_the_ends_of_floats_move_nothing_past_its_price(guarantee, size):
    most = 1.7e308
    wide = Schema.of_numbers(bounds=(-most, most), width=2, size=5)
    X = np.array([[most, -most], [0.0, 5e-324], [-most, -most], [size, size], [0.1, 0.2]])
    other = X[1:] if guarantee.relation == "add/remove" else np.vstack([[[most, most]], X[1:]])
    near, far = size * CELLS, np.where(CELLS > 0, 1e99, -1e99)
    for cells, one in ((near, size), (far, size), (np.tile(near, (20, 1)), size)):
        for question in (
            NearestMeans(cells=cells, radius=one, recentred=True, domain=one, guarantee=guarantee),
            LocalMeans(cells=cells, shells=[one / 3, one], domain=one, moments="full", guarantee=guarantee),
            NeighbourAverages(targets=cells, t=T, radius=one, guarantee=guarantee),
        ):
            found = replay(question, Rows(X, schema=wide), Rows(other, schema=wide))
            assert found.passed, found


def test_a_pyramid_of_more_levels_than_there_are_numbers_is_refused_at_once():
    with pytest.raises(InputError, match="numbers in the answer"):
        GridPyramid(levels=(10**9,), domain=0.5, width=10**6, guarantee=PURE)


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


HALF = PureDP(epsilon=0.5, relation="add/remove")


APPROXIMATE = ApproxDP(epsilon=1, delta=1e-6, relation="replace-one")


@pytest.mark.parametrize(
    ("guarantee", "family"),
    [(HALF, Laplace), (APPROXIMATE, Gaussian), (ZCDP(rho=0.2, relation="attribute"), Gaussian)],
)
def test_the_least_noise_that_keeps_a_guarantee(guarantee, family):
    made = means.calibrate_lattice(guarantee, sensitivity=3.0, grid=Grid(-20))
    assert isinstance(made, family)
    assert keeps(Plan(draws={"x": made}), guarantee)
    assert made.scale == pytest.approx(3.0 / means.noise_budget(guarantee), rel=1e-3)


def test_only_add_and_remove_do_not_replace():
    guarantees = (HALF, APPROXIMATE, ZCDP(rho=1, relation="attribute"))
    asked = [NearestMeans(cells=CELLS, radius=0.5, guarantee=each) for each in guarantees]
    assert [question.moves for question in asked] == [1, 2, 2]


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_grids_are_fine_and_within_what_integers_hold(unit, scale):
    step = Grid.finer_than_both(unit, scale).step
    assert unit / step <= 2**31
    assert scale / step <= 2**46
    assert step <= max(min(unit, scale) * 2.0**-20, unit * 2.0**-30, scale * 2.0**-45)


@pytest.mark.parametrize("wrong", [0, -1.0, 1e-101, 1e101, np.nan, "1"])
def test_a_radius_is_refused_by_name(wrong):
    with pytest.raises(InputError, match="radius"):
        means.check_radius(radius=wrong)


def test_points_are_copies_within_bounds_that_cannot_be_written_to():
    mine = np.ones((2, 2))
    kept = means.freeze_points(cells=mine)
    mine[:] = 5
    assert (kept == 1).all()
    assert not kept.flags.writeable
    for wrong in ([[1e101]], [[np.nan]], [1.0]):
        with pytest.raises(InputError, match="cells"):
            means.freeze_points(cells=wrong)


def test_k_norm_noise_is_for_pure_guarantees():
    means.check_noise("k-norm", HALF)
    with pytest.raises(InputError, match="k-norm"):
        means.check_noise("k-norm", APPROXIMATE)


def test_an_answer_that_no_memory_holds_is_refused():
    means.check_answer_size(means.MOST_NUMBERS, "the answer")
    with pytest.raises(InputError, match="numbers in the answer"):
        means.check_answer_size(means.MOST_NUMBERS + 1, "the answer")
