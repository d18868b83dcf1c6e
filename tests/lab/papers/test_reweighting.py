"""The printed algorithm: runs on rehearsals only, is stamped, and its noise is the printed one."""

import math

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.lab.papers.reweighting import (
    paper_discrepancy,
    paper_pcnvxadap,
    printed_mu,
    printed_scales,
)
from privada.methods.reweighting import Penalties
from privada.methods.reweighting.questions.problem import Bounds
from privada.privacy.accounting import curves

BOUNDS = Bounds(A=1.0)


def rows(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) / 3
    return X, np.clip(X @ [0.6, -0.4], -1, 1)


DATA = (*rows(40, 0), *rows(30, 1))


def fitted(**more):
    settings = {"epsilon": 1.0, "delta": 0.01, "steps": 20, "rehearsal": 0, "penalties": Penalties(alpha=0.5)}
    return paper_pcnvxadap(*DATA, bounds=BOUNDS, **(settings | more))


@pytest.mark.parametrize(
    "run", [lambda: fitted(rehearsal=None), lambda: paper_discrepancy(*DATA, bounds=BOUNDS)]
)
def test_nothing_runs_without_a_seed(run):
    with pytest.raises(InputError, match="not private as claimed: it runs only with rehearsal="):
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
    found = [paper_discrepancy(*DATA, bounds=BOUNDS, rehearsal=seed) for seed in range(20)]
    assert all(0 <= value <= BOUNDS.B for value in found)
    assert len(set(found)) > 10
    assert found[0] == paper_discrepancy(*DATA, bounds=BOUNDS, rehearsal=0)
