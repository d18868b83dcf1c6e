"""Couplings beside POT: same plans, same objectives, stable where plain scalings underflow."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.transport.learner.coupling import (
    barycentric,
    entropic,
    exact,
    extend,
    group_lasso,
    l1l2,
    objective,
    relaxed,
)


@pytest.fixture
def case():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=60)
    S = rng.normal(size=(60, 2)) + 3 * np.eye(3, 2)[y]
    T = rng.normal(size=(50, 2)) + 3 * np.eye(3, 2)[rng.integers(3, size=50)] + 0.5
    cost = ((S[:, None] - T[None]) ** 2).sum(axis=2)
    return cost / cost.max(), y, S, T


@pytest.fixture(scope="module", autouse=True)
def quiet():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POT_BACKEND_DISABLE_PYTORCH", "1")
        yield


@pytest.mark.parametrize("reg", [0.5, 0.05, 0.01])
def test_entropic_plans_are_pots(case, reg):
    import ot

    cost = case[0]
    theirs = ot.sinkhorn([], [], cost, reg, method="sinkhorn_log", numItermax=20_000, stopThr=1e-10)
    ours = entropic(cost, None, None, reg, tolerance=1e-10, iterations=20_000)
    assert np.abs(ours - theirs).max() < 1e-7


def test_small_regularisation_is_stable_and_near_the_exact_plan(case):
    cost = case[0]
    plan = entropic(cost, None, None, 1e-4, iterations=20_000, tolerance=1e-5)
    assert np.isfinite(plan).all()
    assert np.abs(plan.sum(axis=1) - 1 / 60).sum() < 1e-4
    best = np.sum(exact(cost) * cost)
    assert best * (1 - 1e-3) <= np.sum(plan * cost) <= best + 2e-3


def test_forbidden_pairs_get_no_mass():
    plan = entropic([[0.0, np.inf], [1.0, 1.0]], None, None, 0.1)
    assert plan[0, 1] == 0
    assert np.allclose(plan.sum(axis=1), 0.5, atol=1e-6)


@pytest.mark.filterwarnings("ignore:Sinkhorn did not converge")
@pytest.mark.parametrize("reg_cl", [0.01, 0.1])
def test_group_lasso_reaches_pots_objective(case, reg_cl):
    import ot

    cost, y = case[:2]
    a, b = np.full(60, 1 / 60), np.full(50, 1 / 50)
    theirs = ot.da.sinkhorn_lpl1_mm(a, y, b, cost, 0.02, eta=reg_cl, numItermax=10, numInnerItermax=1000)
    ours = group_lasso(cost, y, reg_e=0.02, reg_cl=reg_cl, tolerance=1e-8, iterations=2000)
    value = [objective(plan, cost, y, reg_e=0.02, reg_cl=reg_cl) for plan in (ours, theirs)]
    assert value[0] <= value[1] + 0.01 * abs(value[1])
    assert np.abs(ours.sum(axis=0) - b).sum() < 1e-4


def test_group_lasso_makes_columns_draw_from_fewer_classes(case):
    cost, y = case[:2]

    def mixed(plan):
        sums = np.array([plan[y == c].sum(axis=0) for c in range(3)])
        return float((sums.max(axis=0) / sums.sum(axis=0)).mean())

    assert (
        mixed(group_lasso(cost, y, reg_e=0.05, reg_cl=0.2)) > mixed(entropic(cost, None, None, 0.05)) + 0.02
    )


def test_adding_row_constants_changes_no_plan(case):
    """privacy.md, section 3 (b): the noise's own square is a row constant."""
    cost = case[0]
    moved = cost + np.random.default_rng(1).normal(size=(60, 1))
    assert np.abs(entropic(cost, None, None, 0.05) - entropic(moved, None, None, 0.05)).max() < 1e-8
    assert np.allclose(exact(cost), exact(moved - moved.min()), atol=1e-12)


def test_the_convex_group_lasso_is_pots(case):
    plan = l1l2(case[0], case[1], reg_e=0.05, reg_cl=0.01)
    assert np.abs(plan.sum(axis=1) - 1 / 60).sum() < 1e-3


def test_images_are_means_of_targets_and_extend_to_new_rows(case):
    cost, _, S, T = case
    images = barycentric(exact(cost), T)
    assert images[0] == pytest.approx(60 * exact(cost)[0] @ T)
    assert np.allclose(extend(S[:3], S, images), images[:3])
    assert np.allclose(extend(S[:1] + 1e-6, S, images) - images[0], 1e-6)


@pytest.mark.parametrize("cost", [np.zeros((0, 2)), [[np.nan, 1.0]], [[np.inf, np.inf], [0.0, 0.0]]])
def test_bad_costs_have_names(cost):
    with pytest.raises(InputError, match="cost"):
        entropic(cost, None, None, 0.1)


def test_relaxed_shares_lie_between_the_posterior_and_the_balanced_plan():
    rng = np.random.default_rng(0)
    cost = rng.uniform(size=(3, 50))
    cost[0] -= 0.3
    prior = np.array([0.2, 0.3, 0.5])
    loose, half, tight = (relaxed(cost, prior, 0.1, weight=weight) for weight in (0.0, 1.0, 1e8))
    for plan in (loose, half, tight):
        assert np.allclose(plan.sum(axis=0), 1 / 50)
    posterior = prior[:, None] * np.exp(-cost / 0.1)
    assert np.allclose(loose * 50, posterior / posterior.sum(axis=0))
    assert np.allclose(tight, entropic(cost, prior, None, 0.1), atol=1e-4)
    shares = [plan.sum(axis=1)[0] for plan in (tight, half, loose)]
    assert shares == sorted(shares)


def test_relaxed_is_the_least_of_its_objective():
    rng = np.random.default_rng(1)
    cost, prior, weight, reg = rng.uniform(size=(3, 8)), np.array([0.2, 0.3, 0.5]), 0.7, 0.2
    found = relaxed(cost, prior, reg, weight=weight)

    def value(plan):
        shares = plan.sum(axis=1)
        spread = np.sum(plan * np.log(plan / (prior[:, None] / 8)))
        return np.sum(plan * cost) + reg * (spread + weight * np.sum(shares * np.log(shares / prior)))

    for _ in range(50):
        moved = found * np.exp(0.05 * rng.normal(size=found.shape))
        moved /= moved.sum(axis=0) * 8
        assert value(found) <= value(moved) + 1e-9


def test_infinite_costs_forbid_mass_in_a_relaxed_plan():
    plan = relaxed([[0.0, np.inf], [1.0, 0.5]], [0.5, 0.5], 0.1, weight=1.0)
    assert plan[0, 1] == 0
    assert np.allclose(plan.sum(axis=0), 0.5)
