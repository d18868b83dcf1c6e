"""The printed algorithms, and the worst cases that bound every private one."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binom

from privada.exceptions import InputError
from privada.methods.clustering import NearestMeans
from privada.privacy import PureDP
from privada_lab.papers.clustering import advanced_share, nas_noise, paper_nas, paper_nna

RNG = np.random.default_rng(0)
S = RNG.normal((0.1, 0.0), 0.1, size=(2000, 2))
T = RNG.normal((0.0, 0.1), 0.1, size=(50, 2))


@pytest.mark.parametrize("run", [paper_nna, paper_nas])
def test_they_run_in_rehearsal_only_and_say_so(run):
    more = {"gamma": 0.05} if run is paper_nna else {"t": 20}
    with pytest.raises(InputError, match="not private as claimed"):
        run(S, T, epsilon=3, **more)
    found = run(S, T, epsilon=3, insecure_seed=1, **more)
    assert "not private as claimed" in found.stamps
    assert "not private as claimed" in repr(found)
    assert np.array_equal(found.points, run(S, T, epsilon=3, insecure_seed=1, **more).points)
    for wrong in ({}, {"epsilon": 1, "rho": 1}, {"epsilon": -1}, {"rho": 0.0}):
        with pytest.raises(InputError, match="epsilon|rho"):
            run(S, T, insecure_seed=1, **more, **wrong)


@pytest.mark.statistical
def test_the_noise_is_the_printed_one():
    """Theorems 5.9 to 5.12, on 2e4 and more numbers."""
    nothing, many = np.zeros((0, 8)), np.zeros((4000, 8))
    root = math.sqrt(8) + 1
    sums = paper_nna(nothing, many, gamma=0.05, epsilon=3, insecure_seed=0).sums
    assert np.abs(sums).mean() == pytest.approx(root / 3, rel=0.03)
    assert np.std(paper_nna(nothing, many, gamma=0.05, rho=3, insecure_seed=0).sums) == pytest.approx(
        math.sqrt(2 / 3), rel=0.03
    )
    averages = paper_nas(nothing, many, t=150, epsilon=3, insecure_seed=0).points
    assert np.abs(averages).mean() == pytest.approx(4000 * math.sqrt(8) / 450, rel=0.03)
    averages = paper_nas(nothing, many, t=150, rho=3, insecure_seed=0).points
    assert np.std(averages) == pytest.approx(math.sqrt(4000 / 6) / 150, rel=0.03)


@pytest.mark.statistical
def test_theorem_5_3_has_the_noise_of_advanced_composition():
    each = advanced_share(3.0, 1e-5, uses=4000)
    composed = each * math.sqrt(2 * 4000 * math.log(1e5)) + 4000 * each * math.expm1(each) / (
        math.exp(each) + 1
    )
    assert composed == pytest.approx(3.0)
    averages = paper_nas(np.zeros((0, 8)), np.zeros((4000, 8)), t=150, epsilon=3, delta=1e-5, insecure_seed=0)
    assert np.abs(averages.points).mean() == pytest.approx(math.sqrt(8) / (150 * each), rel=0.03)
    assert "not private as claimed" in averages.stamps
    with pytest.raises(InputError, match="delta"):
        paper_nas(S, T, t=20, rho=1, delta=1e-5, insecure_seed=0)


def test_the_printed_bound_of_the_noise_holds():
    found = paper_nas(np.zeros((0, 2)), np.zeros((50, 2)), t=150, epsilon=3, insecure_seed=0).points
    assert np.linalg.norm(found, axis=1).mean() <= nas_noise(50, width=2, t=150, gamma=0.05, epsilon=3)


@pytest.mark.statistical
def test_the_printed_threshold_lets_too_many_empty_cells_pass():
    """privacy.md, section 1 (b): .0483 for each cell at γ = .01, d = 8, ε = 3, not .01."""
    found = paper_nna(np.zeros((0, 8)), np.zeros((40_000, 8)), gamma=0.01, epsilon=3, insecure_seed=0)
    assert len(found.points) / 40_000 == pytest.approx(0.0483, abs=0.005)


def test_the_sanitised_source_is_near_the_source():
    found = paper_nna(S, T, gamma=0.05, epsilon=300, insecure_seed=0)
    assert np.linalg.norm(found.points[:, None] - S[None], axis=2).min(axis=1).max() < 0.1
    averages = paper_nas(S, T, t=20, epsilon=1e5, insecure_seed=0).points
    near = np.array([S[np.argsort(np.linalg.norm(S - x, axis=1))[:20]].mean(axis=0) for x in T])
    assert np.allclose(averages, near, atol=0.01)
    with pytest.raises(InputError, match="short"):
        paper_nas(S, T, t=20, epsilon=1, short="mirror", insecure_seed=0)


def cost(target, source, chosen):
    centers = np.vstack([source, chosen]) if len(source) else chosen
    return np.linalg.norm(target[:, None] - centers[None], axis=2).min(axis=1).mean()


def apart(count, distance):
    """Points of the unit ball at one distance from each other: a simplex, shrunk."""
    return np.eye(count) * distance / math.sqrt(2)


def test_observation_4_1_the_cost_is_sensitive():
    """One row more or less moves the cost by 1/4 whatever the size of the data."""
    k, n = 3, 40
    x = apart(k + 1, 0.5)
    target = np.vstack([x[1:], np.repeat(x[:1], n - k, axis=0)])
    chosen = x[1:]
    for copies in (1, 1000):
        rest = np.repeat(x[1:2], copies, axis=0)
        moved = abs(cost(target, np.vstack([rest, x[:1]]), chosen) - cost(target, rest, chosen))
        assert moved >= 1 / 4


def best_choice(points, weights, source, k):
    """The cheapest k of the distinct target points."""
    target = np.repeat(points, weights, axis=0)
    options = [list(choice) for choice in combinations(range(len(points)), k)]
    costs = [cost(target, source, points[choice]) for choice in options]
    return points[options[int(np.argmin(costs))]]


def failures(source, points, weights, k, epsilon, excess, noise, runs):
    """How often the choice beside a sanitised source costs ``excess`` more than the best one."""
    target = np.repeat(points, weights, axis=0)
    question = NearestMeans(
        cells=points, radius=1.0, guarantee=PureDP(epsilon=epsilon, relation="add/remove")
    )
    cells = np.linalg.norm(source[:, None] - points[None], axis=2).argmin(axis=1)
    counts = np.bincount(cells, minlength=len(points))
    sums = np.array([source[cells == cell].sum(axis=0) for cell in range(len(points))])
    best = cost(target, source, best_choice(points, weights, source, k))
    draws, missed = question.plan.draws, 0
    for _ in range(runs):
        noisy = draws["counts"].draw(counts, noise)
        total = draws["sums"].draw(draws["sums"].grid.truncate(sums), noise)
        kept = noisy >= 1
        chosen = best_choice(points, weights, total[kept] / noisy[kept, None], k)
        missed += cost(target, source, chosen) >= best + excess - 1e-9
    return missed


@pytest.mark.statistical
@pytest.mark.parametrize(("epsilon", "distance"), [(0.1, 0.5), (1.0, 0.5), (1.0, 0.1)])
def test_observations_4_2_and_5_8_no_private_choice_escapes_them(epsilon, distance, rehearsal):
    """On one of two neighbours a choice costs Δ/(k+2) more than the best with probability 1/(2 e^ε).

    Δ is the distance of all points from each other: 1/2 in Observation 4.2, and at least Δᵗ(S) in 5.8.
    False alarm 1e-4.
    """
    k, runs = 2, 150
    points = apart(k + 2, distance)
    targets, weights = points[: k + 1], [2, *[1] * k]
    crowd = np.repeat(points[-1:], 30, axis=0)
    neighbours = np.vstack([points[:1], crowd]), crowd
    t = 5
    for source in neighbours:
        near = np.sort(np.linalg.norm(targets[:, None] - source[None], axis=2), axis=1)[:, :t]
        assert np.average(near.mean(axis=1), weights=weights) <= distance * (1 + 1e-12), "Δᵗ(S) of 5.8"
    missed = [
        failures(source, targets, weights, k, epsilon, distance / (k + 2), rehearsal, runs)
        for source in neighbours
    ]
    assert max(missed) >= binom.ppf(1e-4, runs, 1 / (2 * math.exp(epsilon)))
