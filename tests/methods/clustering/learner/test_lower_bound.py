"""Lower bounds: the data sets of the proofs are built, and a private method does err on one of them."""

import itertools
import math

import numpy as np
import pytest

from privada import SourceTargetMedoids
from privada.exceptions import InputError
from privada.methods.clustering import lower_bound, lower_bound_beside_radius, separation
from privada.methods.clustering.learner.lower_bound import cost_sensitivity, error_probability
from privada.methods.clustering.learner.solver.objective import cost
from privada.privacy import ZCDP, ApproxDP, PureDP

PURE = PureDP(epsilon=1, relation="add/remove")
BALL = {"radius": 1.0, "width": 4}


def simplex(count, width):
    """Points of the unit sphere, all equally far apart."""
    corners = np.eye(count) - 1 / count
    axes = np.linalg.svd(corners)[2][: count - 1]
    points = corners @ axes.T
    return np.pad(points / np.linalg.norm(points, axis=1)[:, None], ((0, 0), (0, width - count + 1)))


def test_points_can_be_so_far_apart():
    points = simplex(4, 4)
    apart = min(math.dist(a, b) for a, b in itertools.combinations(points, 2))
    assert separation(4, **BALL) == pytest.approx(apart)
    assert separation(8, **BALL) == pytest.approx(math.sqrt(2)), "a cross-polytope"
    assert separation(2, radius=3.0, width=1) == 6
    assert separation(400, **BALL) >= 400 ** (-1 / 4)


def test_the_papers_number_of_points_does_not_fit():
    """Observation 4.1 has (2 sqrt d)^d points 1/2 apart in the unit ball; at most 5^d fit."""
    assert (2 * math.sqrt(8)) ** 8 > 5**8
    assert separation(int((2 * math.sqrt(8)) ** 8), radius=1.0, width=8) < 0.5


@pytest.mark.parametrize("n", [12, 15])
def test_observation_4_2_every_choice_errs_beside_the_one_row_or_without_it(n):
    k, points = 2, simplex(4, 4)
    copies = n // (k + 2)
    T = np.repeat(points[:3], [n - k * copies, copies, copies], axis=0)
    far = np.repeat(points[3:], 5, axis=0)
    bound = lower_bound(PURE, n_centers=k, n_targets=n, **BALL)
    sources = (np.vstack([far, points[:1]]), far)
    choices = list(itertools.combinations(range(3), k))
    costs = np.array([[cost(T, S, points[list(each)]) for each in choices] for S in sources])
    errors = costs - costs.min(axis=1)[:, None]
    assert (errors.max(axis=0) >= bound.error - 1e-12).all(), "no choice is good for both"
    assert bound.error > 0


def test_observation_5_8_as_well_at_a_small_mean_radius():
    k, near, t = 2, 0.1, 5
    places = simplex(3, 4)
    beside = np.repeat(places * (1 - near), t, axis=0)
    T = np.repeat(places, [6, 3, 3], axis=0)
    bound = lower_bound_beside_radius(PURE, near, n_centers=k, n_targets=12, **BALL)
    for S in (beside, np.vstack([beside, places[:1]])):
        nearest = np.sort(np.linalg.norm(T[:, None] - S[None], axis=2), axis=1)[:, :t]
        assert nearest.mean() <= near + 1e-12
    costs = [
        [cost(T, S, places[list(each)]) for each in itertools.combinations(range(3), k)]
        for S in (beside, np.vstack([beside, places[:1]]))
    ]
    errors = np.array(costs) - np.min(costs, axis=1)[:, None]
    assert (errors.max(axis=0) >= bound.error - 1e-12).all()
    assert bound.error == pytest.approx(near / (k + 2))


def test_observation_4_1_one_row_moves_the_cost_by_so_much():
    places = simplex(4, 4)
    T = np.vstack([np.repeat(places[:1], 97, axis=0), places[1:]])
    moved = cost(T, places[1:2], places[1:]) - cost(T, np.vstack([places[:1], places[1:2]]), places[1:])
    assert moved == pytest.approx(cost_sensitivity(n_centers=3, n_targets=100, **BALL))


@pytest.mark.parametrize(
    "guarantee",
    [PURE, ApproxDP(epsilon=0.1, delta=0.1, relation="add/remove"), ZCDP(rho=0.5, relation="add/remove")],
)
def test_probabilities_are_at_least_the_papers(guarantee):
    found = error_probability(guarantee)
    assert 0 < found <= 0.5
    for epsilon in (0.1, 1.0, 3.0):
        assert found >= (1 - 2 * guarantee.delta_at(epsilon)) / (2 * math.exp(epsilon)) - 1e-12


def test_the_estimator_tells_it_and_nonsense_is_refused():
    target = np.random.default_rng(0).uniform(-0.3, 0.3, size=(40, 2))
    model = SourceTargetMedoids(n_centers=4, norm_bound=0.5, epsilon=1, random_state=0)
    model.fit(target.repeat(5, axis=0), Xt=target)
    expected = lower_bound(PURE, n_centers=4, n_targets=40, radius=0.5, width=2)
    assert model.unavoidable_error_ == expected
    assert lower_bound(PURE, n_centers=40, n_targets=40, **BALL).error == 0, "too few points for the proof"
    with pytest.raises(InputError, match="n_centers"):
        lower_bound(PURE, n_centers=-1, n_targets=4, **BALL)
