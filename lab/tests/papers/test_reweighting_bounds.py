"""Theorems 2, 4 and 5: they hold on small problems, and move with epsilon and n as they should."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.reweighting import Penalties
from privada.methods.reweighting.questions.problem import Bounds
from privada_lab import objectives
from privada_lab.baselines.cnvx_adap import cnvx_adap
from privada_lab.papers import reweighting_bounds
from privada_lab.papers.reweighting import paper_pcnvxadap

PENALTIES, BOUNDS = Penalties(alpha=0.5, kappa1=4.0), Bounds(A=1.0)
SIZES = {"m": 80, "n": 60, "d": 2}


def rows(n, seed):
    X = np.random.default_rng(seed).normal(size=(n, 2)) / 3
    return X, np.clip(X @ [0.6, -0.4], -1, 1)


DATA = (*rows(80, 0), *rows(60, 1))


def objective(w, u):
    X, y = np.vstack(DATA[::2]), np.r_[DATA[1], DATA[3]]
    return objectives.objective_f((X @ w - y) ** 2, u, PENALTIES.reference(80, 60), PENALTIES)


def test_theorem_2_holds_for_the_printed_algorithm():
    best = cnvx_adap(*DATA, radius=1.0, penalties=PENALTIES)
    settings = {"epsilon": 5.0, "delta": 0.01, "steps": 50, "penalties": PENALTIES, "bounds": BOUNDS}
    gaps = []
    for seed in range(5):
        model = paper_pcnvxadap(*DATA, **settings, insecure_seed=seed)
        gaps.append(objective(model.coef, model.u) - best.objective)
    bound = reweighting_bounds.excess_objective(
        **settings, **SIZES
    )  # no loss exceeds κ₁: u* is where u starts
    assert 0 <= np.mean(gaps) <= bound


def test_more_steps_than_enough_hardly_help():
    settings = {"epsilon": 5.0, "delta": 0.01, "penalties": PENALTIES, "bounds": BOUNDS} | SIZES
    steps = reweighting_bounds.enough_steps(**settings)
    now, later = (reweighting_bounds.excess_objective(steps=t, **settings) for t in (steps, 100 * steps))
    assert later <= now <= 2 * later


def test_theorem_4_takes_the_steps_at_which_its_bound_is_least():
    settings = {
        "delta": 0.01,
        "m": 1000,
        "n": 500,
        "d": 5,
        "penalties": PENALTIES,
        "beta": 0.25,
        "G": 1,
        "B": 2,
    }
    steps, bound = reweighting_bounds.gradient_mapping(epsilon=2.0, **settings)
    more, less = reweighting_bounds.gradient_mapping(epsilon=20.0, **settings)
    assert more == pytest.approx(10 * steps, rel=0.2)
    assert less == pytest.approx(bound / 10, rel=0.2)
    with pytest.raises(InputError, match="alpha below 1"):
        reweighting_bounds.gradient_mapping(epsilon=1.0, **settings | {"penalties": Penalties(alpha=1.0)})


def test_theorem_5_is_above_the_weighted_loss_and_refuses_weights_far_from_the_reference():
    losses, p = np.full(140, 0.1), PENALTIES.reference(80, 60)
    bound = reweighting_bounds.target_loss(losses, p, p, m=80, discrepancy=0.2, bounds=BOUNDS)
    farther = reweighting_bounds.target_loss(losses, 0.9 * p, p, m=80, discrepancy=0.2, bounds=BOUNDS)
    assert 0.2 < bound < farther
    with pytest.raises(InputError, match="within distance 1"):
        reweighting_bounds.target_loss(losses, 2.5 * p, p, m=80, discrepancy=0.2, bounds=BOUNDS)
