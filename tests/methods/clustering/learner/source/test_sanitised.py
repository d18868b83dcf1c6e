"""What is made of a release: thresholds, projections, spreads and synthetic rows."""

import warnings

import numpy as np
import pytest
from scipy.stats import binom

from privada import Owner
from privada.exceptions import InputError, RehearsalWarning
from privada.methods.clustering import (
    LocalMeans,
    NearestMeans,
    NeighbourAverages,
    SourceRadius,
    estimate_radius,
    sanitise,
)
from privada.parties import Policy, Schema
from privada.privacy import ZCDP, ApproxDP, PureDP

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
        assert found.to_dict()["points"] == []


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
def test_deviations_are_what_the_noise_does(noise):
    """Root mean squared error over 150 seeds; false alarm below 1e-4."""
    X = np.tile([[0.29, -0.19]], (1000, 1))
    question = NearestMeans(cells=CELLS, radius=0.5, noise=noise, guarantee=PURE)
    found = [sanitise(question, answered(question, X, seed), gamma=1e-9) for seed in range(150)]
    errors = [np.linalg.norm(one.points[0] - X[0]) for one in found]
    said = np.mean([one.deviations[0] for one in found])
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(said, rel=0.25)


def test_averages_are_sums_over_t():
    X = np.tile([[0.1, 0.2]], (2000, 1))
    for noise in ("lattice", "k-norm"):
        question = NeighbourAverages(targets=CELLS, t=1000, radius=0.5, noise=noise, guarantee=PURE)
        found = sanitise(question, answered(question, X))
        assert np.allclose(found.points, X[:4], atol=0.05)
        assert found.cells.tolist() == [0, 1, 2, 3]
        assert found.deviations.max() < 0.05
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
