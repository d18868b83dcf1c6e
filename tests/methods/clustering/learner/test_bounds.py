"""What is certain of the cost on the true source."""

import itertools
import math
import warnings

import numpy as np
import pytest
from scipy.stats import binom

from privada import Owner, SourceTargetMedoids
from privada.exceptions import InputError, RehearsalWarning
from privada.methods.clustering import (
    LocalMeans,
    NearestMeans,
    NeighbourAverages,
    SourceRadius,
    lower_bound,
    lower_bound_beside_radius,
    separation,
)
from privada.methods.clustering.learner.bounds import (
    certified,
    cost_bound,
    cost_sensitivity,
    error_probability,
)
from privada.methods.clustering.learner.medoids import cost, source_distances
from privada.methods.clustering.learner.source import estimate_radius, sanitise
from privada.methods.clustering.questions.multiscale import GridPyramid
from privada.parties import Policy, Schema
from privada.privacy import ZCDP, ApproxDP, PureDP
from tests.methods.clustering.generated import RADIUS, make_grids, make_two_gaussians

AR = "add/remove"


PURE, RHO = PureDP(epsilon=2, relation=AR), ZCDP(rho=1, relation=AR)


SCHEMA = Schema.of_numbers(bounds=(-RADIUS, RADIUS), width=2)


def owner(X, seed, budget):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RehearsalWarning)
        return Owner(
            X,
            schema=SCHEMA,
            dataset="s",
            budget=budget,
            policy=Policy(idealised=True),
            accounting="gaussian" if isinstance(budget, ApproxDP) else None,
            insecure_seed=seed,
            allow_empty=True,
        )


def cover(target, radius):
    """Points of a target such that each target point is within the radius of one of them."""
    chosen = []
    for point in target:
        if all(np.linalg.norm(point - other) > radius for other in chosen):
            chosen.append(point)
    return np.array(chosen)


@pytest.mark.statistical
@pytest.mark.parametrize(
    "question",
    [
        GridPyramid(levels=(2, 3, 4), domain=RADIUS, width=2, guarantee=PURE),
        GridPyramid(levels=(2, 3, 4), domain=RADIUS, width=2, guarantee=RHO),
        LocalMeans(cells=[[0.1, 0.1], [-0.2, 0.1]], shells=[0.05, 0.1, 0.2], domain=RADIUS, guarantee=PURE),
        LocalMeans(
            cells=[[0.1, 0.1], [-0.2, 0.1]],
            shells=[0.05, 0.1, 0.2],
            domain=RADIUS,
            moments="pooled",
            guarantee=RHO,
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_certified_distances_hold_as_often_as_they_say(question, rows):
    """Few rows, so that noise alone would certify; false alarm 1e-4."""
    rng = np.random.default_rng(0)
    source = rng.uniform(-0.3, 0.3, size=(rows, 2))
    target = rng.uniform(-0.3, 0.3, size=(60, 2))
    true, gamma, runs = source_distances(target, source), 0.3, 200
    broken = 0
    for seed in range(runs):
        release = owner(source, seed, question.guarantee).answer(question)
        broken += bool(np.any(certified(question, release, target, gamma) < true - 1e-12))
    assert broken <= binom.ppf(1 - 1e-4, runs, gamma)


def test_certified_distances_are_worth_having():
    pair = make_grids(seed=3, source_size=5000, target_size=1000)
    model = SourceTargetMedoids(20, norm_bound=RADIUS, rho=3, insecure_seed=1, random_state=0)
    with pytest.warns(RehearsalWarning):
        model.fit(pair.source, Xt=pair.target)
    ours = cost(pair.target, pair.source, model.cluster_centers_)
    without = source_distances(pair.target, model.cluster_centers_).mean()
    assert ours <= model.cost_bound_ < 0.2 * without


def test_averages_certify_nothing():
    question = NearestMeans(cells=[[0.0, 0.0]], radius=RADIUS, guarantee=PURE)
    release = owner(np.zeros((50, 2)), 0, PURE).answer(question)
    assert np.isinf(certified(question, release, np.zeros((3, 2)), 0.05)).all()
    found = cost_bound(np.ones((3, 2)) * 0.1, np.zeros((1, 2)), question, release)
    assert found.cost == pytest.approx(0.1 * math.sqrt(2))
    assert found.difference is None


@pytest.mark.parametrize("guarantee", [PURE, RHO, ApproxDP(epsilon=2, delta=1e-6, relation=AR)], ids=str)
@pytest.mark.parametrize("radius", [0.0, 0.05])
@pytest.mark.parametrize("size", [0, 3, 2000])
def test_the_theorem_bounds_the_difference_of_every_choice(guarantee, radius, size):
    """Theorems 5.5, 5.9 and 5.11 and Corollary B.1, with the constants of the docstring."""
    rng = np.random.default_rng(size)
    target, source = rng.normal(0, 0.1, size=(80, 2)), rng.normal(0.05, 0.1, size=(size, 2))
    coreset = cover(target, radius)
    asked = NeighbourAverages(targets=coreset, t=40, radius=RADIUS, guarantee=guarantee.part(0.7))
    about = SourceRadius(targets=target, t=40, radius=RADIUS, guarantee=guarantee.part(0.3))
    for seed in range(5):
        holder = owner(source, seed, guarantee)
        release, estimate = holder.answer(asked), estimate_radius(about, holder.answer(about))
        found = cost_bound(target, target[:3], asked, release, radius=estimate, confidence=0.999)
        sanitised = sanitise(asked, release).points
        for _ in range(20):
            chosen = target[rng.choice(80, 3, replace=False)]
            gap = abs(cost(target, source, chosen) - cost(target, sanitised, chosen))
            assert gap <= found.difference
        assert cost(target, source, target[:3]) <= found.cost


def test_k_norm_averages_have_a_bound_too():
    rng = np.random.default_rng(0)
    target, source = rng.normal(0, 0.1, size=(30, 2)), rng.normal(0, 0.1, size=(500, 2))
    asked = NeighbourAverages(targets=target, t=40, radius=RADIUS, noise="k-norm", guarantee=PURE.part(0.7))
    about = SourceRadius(targets=target, t=40, radius=RADIUS, guarantee=PURE.part(0.3))
    holder = owner(source, 0, PURE)
    release, estimate = holder.answer(asked), estimate_radius(about, holder.answer(about))
    found = cost_bound(target, target[:3], asked, release, radius=estimate)
    gap = abs(cost(target, source, target[:3]) - cost(target, sanitise(asked, release).points, target[:3]))
    assert gap <= found.difference < 100


@pytest.mark.parametrize("price", [{"epsilon": 3.0}, {"rho": 3.0}, {"epsilon": 3.0, "delta": 1e-6}])
def test_a_share_of_the_budget_buys_the_radius(price):
    pair = make_two_gaussians(seed=1, source_size=2000, target_size=200)
    model = SourceTargetMedoids(
        3,
        norm_bound=RADIUS,
        bound_share=0.2,
        bound_neighbours=20,
        insecure_seed=3,
        random_state=0,
        n_draws=4,
        **price,
    )
    with pytest.warns(RehearsalWarning):
        model.fit(pair.source, Xt=pair.target)
    assert cost(pair.target, pair.source, model.cluster_centers_) <= model.cost_bound_
    whole = model.guarantee_
    assert all(getattr(whole, name) == value for name, value in price.items())
    assert model.release_.guarantee < whole, "the question got the rest"


def test_a_question_must_leave_what_the_bound_needs():
    target = np.random.default_rng(0).uniform(-0.3, 0.3, size=(20, 2))
    greedy = NearestMeans(cells=target, radius=RADIUS, guarantee=PURE)
    model = SourceTargetMedoids(3, norm_bound=RADIUS, epsilon=2, question=greedy, bound_share=0.1)
    with pytest.raises(InputError, match="bound_share"):
        model.fit(target, Xt=target)


@pytest.mark.parametrize("bad", [{"bound_share": 1.0}, {"bound_share": -0.1}, {"confidence": 1.5}])
def test_bad_shares_are_named(bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        SourceTargetMedoids(2, norm_bound=RADIUS, epsilon=1, **bad).fit(np.zeros((3, 2)), Xt=np.zeros((5, 2)))


ONE = PureDP(epsilon=1, relation="add/remove")


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
    bound = lower_bound(ONE, n_centers=k, n_targets=n, **BALL)
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
    bound = lower_bound_beside_radius(ONE, near, n_centers=k, n_targets=12, **BALL)
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
    [ONE, ApproxDP(epsilon=0.1, delta=0.1, relation="add/remove"), ZCDP(rho=0.5, relation="add/remove")],
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
    expected = lower_bound(ONE, n_centers=4, n_targets=40, radius=0.5, width=2)
    assert model.unavoidable_error_ == expected
    assert lower_bound(ONE, n_centers=40, n_targets=40, **BALL).error == 0, "too few points for the proof"
    with pytest.raises(InputError, match="n_centers"):
        lower_bound(ONE, n_centers=-1, n_targets=4, **BALL)
