"""The printed algorithm: runs on rehearsals only, is stamped, and its noise is the printed one."""

import math

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.reweighting import Penalties
from privada.methods.reweighting.questions.problem import Bounds
from privada.privacy.accounting import curves
from privada_lab.papers.reweighting import (
    paper_discrepancy,
    paper_pcnvxadap,
    printed_mu,
    printed_scales,
)

BOUNDS = Bounds(A=1.0)


def rows(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) / 3
    return X, np.clip(X @ [0.6, -0.4], -1, 1)


DATA = (*rows(40, 0), *rows(30, 1))


def fitted(**more):
    settings = {
        "epsilon": 1.0,
        "delta": 0.01,
        "steps": 20,
        "insecure_seed": 0,
        "penalties": Penalties(alpha=0.5),
    }
    return paper_pcnvxadap(*DATA, bounds=BOUNDS, **(settings | more))


@pytest.mark.parametrize(
    "run", [lambda: fitted(insecure_seed=None), lambda: paper_discrepancy(*DATA, bounds=BOUNDS)]
)
def test_nothing_runs_without_a_seed(run):
    with pytest.raises(InputError, match="not private as claimed: it runs only with insecure_seed="):
        run()


def test_results_are_stamped_repeat_and_stay_in_the_ball():
    model, again = fitted(), fitted()
    assert "not private as claimed" in repr(model)
    assert "rehearsal: not private" in model.stamps
    assert np.array_equal(model.gradients, again.gradients)
    assert model.gradients.shape == (20, 2)
    assert np.linalg.norm(model.coef) <= 1
    assert model.u.shape == (70,)


@pytest.mark.parametrize("steps", [1, 9, 400])
def test_the_printed_noise_amounts_to_the_same_mu_for_every_number_of_steps(steps):
    first, second = printed_scales(epsilon=2, delta=1e-3, steps=steps, size=50, alpha=0.3, bounds=BOUNDS)
    left = 0.7 / 50
    moved = (2 * BOUNDS.G * left / first) ** 2 + (BOUNDS.B * left**2 / second) ** 2
    assert math.sqrt(steps * moved) == pytest.approx(printed_mu(2, 1e-3))


def test_the_printed_claim_holds_up_to_eight_and_not_beyond():
    assert curves.gaussian_delta(7.5, printed_mu(7.5, 0.01)) <= 0.01
    assert curves.gaussian_delta(8.5, printed_mu(8.5, 0.01)) > 0.01


@pytest.mark.parametrize("wrong", [{"epsilon": 0}, {"delta": 0.0}, {"delta": 1.0}, {"steps": 0}])
def test_numbers_are_refused_by_name(wrong):
    (name,) = wrong
    with pytest.raises(InputError, match=name):
        fitted(**wrong)


def test_a_noisy_discrepancy_lies_within_its_range():
    found = [paper_discrepancy(*DATA, bounds=BOUNDS, insecure_seed=seed) for seed in range(20)]
    assert all(0 <= value <= BOUNDS.B for value in found)
    assert len(set(found)) > 10
    assert found[0] == paper_discrepancy(*DATA, bounds=BOUNDS, insecure_seed=0)


@pytest.mark.filterwarnings("ignore")
def test_printed_variants_run_as_rehearsals_only():
    rng = np.random.default_rng(0)
    Xs, Xt = rng.normal(size=(40, 4)), rng.normal(size=(30, 4))
    ys, yt = Xs @ np.ones(4) + 0.3 * rng.normal(size=40), Xt @ [2, 0, 1, 1] + 0.5 + 0.3 * rng.normal(size=30)
    bounds, penalties = Bounds(A=1.0), Penalties(alpha=0.4)
    with pytest.raises(InputError, match="insecure_seed"):
        paper_pcnvxadap(Xs, ys, Xt, yt, epsilon=1, delta=0.01, penalties=penalties, bounds=bounds)
    with pytest.raises(InputError, match="insecure_seed"):
        paper_discrepancy(Xs, ys, Xt, yt, bounds=bounds)
    made = paper_pcnvxadap(
        Xs,
        ys,
        Xt,
        yt,
        epsilon=1e6,
        delta=0.01,
        penalties=penalties,
        bounds=bounds,
        steps=400,
        insecure_seed=0,
    )
    assert "not private as claimed" in made.stamps
    assert made.gradients.shape == (400, 4)
    assert np.all(made.u[40:] >= 30 / 0.6 * (1 - 1e-12))
    assert 0 <= paper_discrepancy(Xs, ys, Xt, yt, bounds=bounds, insecure_seed=3) <= bounds.B


def test_the_printed_formula_fails_beyond_eight():
    """privacy.md, section 4 (b)."""
    assert curves.gaussian_delta(15, printed_mu(15, 0.01)) == pytest.approx(0.1264, abs=1e-4)
    assert curves.gaussian_delta(10, printed_mu(10, 0.01)) == pytest.approx(0.0245, abs=1e-4)
    for epsilon, delta in ((7.90, 0.01), (8.5, 1e-3), (9.38, 1e-5), (9.72, 1e-6)):
        assert curves.gaussian_delta(epsilon, printed_mu(epsilon, delta)) <= delta
        assert curves.gaussian_delta(epsilon + 0.05, printed_mu(epsilon + 0.05, delta)) > delta
    assert curves.gaussian_epsilon(0.01, printed_mu(1, 0.01)) == pytest.approx(0.48, abs=0.01)
