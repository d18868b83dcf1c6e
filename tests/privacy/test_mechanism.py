"""Mechanisms, and the two lemmas that carry the lattice to continuous events."""

import math

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.privacy import ApproxDP, Exponential, Gaussian, Grid, KNorm, Laplace, PureDP, RandomisedResponse
from privada.privacy.accounting import accountant, curves
from privada.privacy.mechanism import KNormCylinder, Plan, pure_event


def hockey_stick(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def lattice(family, scale, reach):
    x = np.arange(-reach, reach + 1)
    weights = np.exp(-(x**2) / (2 * scale**2)) if family == "gaussian" else np.exp(-np.abs(x) / scale)
    return weights / weights.sum()


@pytest.mark.parametrize("sigma", [4.0, 5.3, 12.0])
@pytest.mark.parametrize("shift", [(1,), (3,), (7,), (2, 3), (1, 5)])
def test_the_rounding_lemma_bounds_the_discrete_gaussian(sigma, shift):
    p = lattice("gaussian", sigma, int(12 * sigma))
    worlds = [np.roll(p, s) for s in shift]
    original = np.multiply.outer(p, p) if len(shift) == 2 else p
    moved = np.multiply.outer(*worlds) if len(shift) == 2 else worlds[0]
    mu = math.hypot(*shift) / math.sqrt(sigma**2 - 4)
    for epsilon in np.linspace(0, 4, 17):
        assert hockey_stick(original, moved, epsilon) <= curves.gaussian_delta(epsilon, mu) + 1e-15


def test_without_the_lemma_the_continuous_curve_is_not_a_bound():
    p = lattice("gaussian", 4.0, 60)
    gaps = [
        hockey_stick(p, np.roll(p, 3), epsilon) - curves.gaussian_delta(epsilon, 3 / 4.0)
        for epsilon in np.linspace(0, 4, 200)
    ]
    assert max(gaps) > 0


@pytest.mark.parametrize("scale", [0.7, 2.0, 9.0])
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_the_laplace_lemma_bounds_the_discrete_laplace(scale, shift):
    p = lattice("laplace", scale, int(60 * scale) + 10)
    mechanism = Laplace(sensitivity=shift, scale=scale)
    assert mechanism.epsilon == shift / scale
    loss = accountant.privacy_loss_distribution(mechanism.event)
    for epsilon in np.linspace(0, mechanism.epsilon, 9):
        assert hockey_stick(p, np.roll(p, shift), epsilon) <= loss.get_delta_for_epsilon(epsilon) + 1e-6


@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_a_split_l1_move_is_dominated_by_the_concentrated_one(scale):
    """Laplace noise on a vector: the worst move of L1 norm 3 is in one coordinate."""
    p = lattice("laplace", scale, int(30 * scale))
    split = np.multiply.outer(np.roll(p, 1), np.roll(p, 2))
    for epsilon in np.linspace(0, 3 / scale, 9):
        both = hockey_stick(np.multiply.outer(p, p), split, epsilon)
        assert both <= hockey_stick(p, np.roll(p, 3), epsilon) + 1e-12


def test_a_finer_grid_costs_what_the_continuous_mechanism_costs():
    assert Laplace(sensitivity=1, scale=2.0).event == pure_event(0.5), (
        "whole counts: randomised response itself"
    )
    fine = Laplace.calibrated(sensitivity=1, epsilon=1, grid=Grid(-16))
    assert fine.event.noise_multiplier == pytest.approx(1, rel=1e-4)
    gaussian = Gaussian.calibrated(sensitivity=1, mu=0.5)
    assert accountant.gaussian_mu(gaussian.event) <= 0.5
    assert gaussian.scale == pytest.approx(2, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1, 8])
def test_calibrated_events_keep_their_guarantee(epsilon):
    mu = curves.gaussian_mu(epsilon=epsilon, delta=1e-6)
    gaussian = Gaussian.calibrated(sensitivity=3.0, mu=mu)
    assert accountant.satisfies(gaussian.event, ApproxDP(epsilon=epsilon, delta=1e-6, relation="add/remove"))
    laplace = Laplace.calibrated(sensitivity=3.0, epsilon=epsilon)
    assert laplace.epsilon <= epsilon * (1 + 1e-12)


def test_lattice_draws_are_on_the_grid_and_unbiased(rehearsal):
    mechanism = Gaussian.calibrated(sensitivity=1, mu=0.5, grid=Grid(-6))
    drawn = mechanism.draw(np.full(4000, 7 << 6, dtype=np.int64), rehearsal)
    assert np.array_equal(drawn * 64, np.round(drawn * 64))
    assert abs(drawn.mean() - 7) < 5 * 2 / math.sqrt(4000)


def test_lattice_draws_take_whole_steps_only(rehearsal):
    with pytest.raises(InputError, match="whole grid steps"):
        Laplace(sensitivity=1, scale=1).draw(np.array([0.5]), rehearsal)
    with pytest.raises(InputError, match="finer grid"):
        Gaussian(sensitivity=1, scale=1.0)
    with pytest.raises(InputError, match="steps above 1"):
        Laplace(sensitivity=1, scale=9, grid=Grid(2)).place([1])


@pytest.mark.statistical
@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace(sensitivity=1, scale=3.0),
        Laplace(sensitivity=1, scale=0.4),
        Gaussian.calibrated(sensitivity=1, mu=0.3),
    ],
)
def test_half_widths_cover(mechanism, rehearsal):
    """False alarm below 1e-6: 5 standard errors on 20,000 draws."""
    noise = mechanism.draw(np.zeros(20_000, dtype=np.int64), rehearsal)
    assert np.mean(noise**2) == pytest.approx(mechanism.variance, rel=0.12)
    for confidence in (0.5, 0.9, 0.99):
        inside = np.mean(np.abs(noise) <= mechanism.half_width(confidence))
        assert inside >= confidence - 5 * math.sqrt(confidence * (1 - confidence) / 20_000)


def test_idealised_arithmetic_is_flagged():
    ball, cylinder = KNorm(sensitivity=1, budget=1), KNormCylinder(sensitivity=1, budget=1)
    assert ball.idealised
    assert cylinder.note()["idealised"]
    assert not Laplace(sensitivity=1, scale=1).idealised
    for one in (ball, Exponential(sensitivity=1, budget=1), RandomisedResponse(budget=1, n_classes=3)):
        with pytest.raises(InputError):
            one.half_width(0.9)


def test_randomised_response_channel_loses_epsilon():
    response = RandomisedResponse(budget=2.0, n_classes=10)
    channel = response.channel()
    np.testing.assert_allclose(channel.sum(axis=1), 1)
    assert np.log(channel.max() / channel.min()) == pytest.approx(2.0)
    assert accountant.pure_epsilon(response.event) == pytest.approx(2.0)
    assert channel[0, 0] == pytest.approx(0.451, abs=1e-3)  # privacy.md, section 3


def test_a_plan_composes_its_draws():
    plan = Plan(draws={"a": Laplace(sensitivity=1, scale=2), "b": Laplace(sensitivity=1, scale=4)})
    assert plan.epsilon == 0.75
    assert accountant.satisfies(plan.event, PureDP(epsilon=0.75 * 1.2, relation="add/remove"))
    with pytest.raises(InputError, match="at least one draw"):
        Plan(draws={})
    assert accountant.pure_epsilon(pure_event(0.3)) == pytest.approx(0.3)


def test_a_scale_that_cannot_be_drawn_is_an_error_of_the_plan_not_of_the_answer():
    for make in (Laplace, Gaussian):
        make(sensitivity=1.0, scale=2.0**50)
        with pytest.raises(InputError, match=r"at most 2\*\*50 grid steps"):
            make(sensitivity=1.0, scale=2.0**51)
        with pytest.raises(InputError, match="grid steps"):
            make(sensitivity=1.0, scale=1e300, grid=Grid(-60))


def test_a_contribution_that_integers_cannot_hold_is_an_error_of_the_plan_not_of_some_rows():
    """Rows near the bound would not fit the grid, others would: whether the answer fails told which."""
    for make in (Laplace, Gaussian):
        make(sensitivity=2.0**60, scale=8.0)
        with pytest.raises(InputError, match=r"sensitivity of at most 2\*\*60 grid steps"):
            make(sensitivity=2.0**61, scale=8.0)
        with pytest.raises(InputError, match="grid steps"):
            make(sensitivity=1e300, scale=8.0, grid=Grid(-60))


def test_responses_beyond_floats_lose_without_bound():
    assert accountant.pure_epsilon(RandomisedResponse(budget=800.0, n_classes=3).event) == math.inf
    plain = RandomisedResponse(budget=1.5, n_classes=3).event
    assert accountant.pure_epsilon(plain) == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("draw", "family"),
    [
        (Laplace(sensitivity=1, scale=0.7), "laplace"),
        (Laplace(sensitivity=1, scale=4.0), "laplace"),
        (Gaussian(sensitivity=1, scale=4.0), "gaussian"),
    ],
    ids=["sharp", "wide", "normal"],
)
def test_the_characteristic_function_is_that_of_the_lattice(draw, family):
    law, theta = lattice(family, draw.scale, 200), np.linspace(0, 1.5, 7)
    mean = (law * np.cos(np.outer(theta, np.arange(-200, 201)))).sum(axis=1)
    assert draw.characteristic(theta) == pytest.approx(mean, abs=1e-9)


def test_noise_too_rare_for_a_number_to_tell_has_no_variance():
    draw = Laplace.calibrated(sensitivity=1, epsilon=1e4)
    assert draw.variance == 0
    assert (draw.characteristic(np.linspace(0, 3, 5)) == 1).all()
    assert Laplace.calibrated(sensitivity=1, epsilon=1e-4).variance == pytest.approx(2e8, rel=1e-8)


def test_a_plan_finds_its_draws_by_name_and_family():
    plan = Plan(draws={"count": Laplace(sensitivity=1, scale=2.0), "mean": KNorm(sensitivity=1, budget=1.0)})
    assert plan.lattice("count").steps == 2.0
    assert plan.find("mean", KNorm).epsilon == 1.0
    with pytest.raises(InputError, match=r"has a K-norm \(ball\) draw of the name 'mean', not a Lattice"):
        plan.lattice("mean")
    with pytest.raises(InputError, match="has nothing of the name 'sum', not a Gaussian"):
        plan.find("sum", Gaussian)
