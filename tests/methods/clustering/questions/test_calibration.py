"""Budgets as scales, grids within what integers hold, and public points that floats can be scaled by."""

import numpy as np
import pytest

from privada.audit.replaying import keeps
from privada.exceptions import InputError
from privada.methods.clustering.questions import calibration
from privada.privacy import ZCDP, ApproxDP, Gaussian, Grid, Laplace, PureDP
from privada.privacy.mechanism import Plan

PURE = PureDP(epsilon=0.5, relation="add/remove")
APPROXIMATE = ApproxDP(epsilon=1, delta=1e-6, relation="replace-one")


@pytest.mark.parametrize(
    ("guarantee", "family"),
    [(PURE, Laplace), (APPROXIMATE, Gaussian), (ZCDP(rho=0.2, relation="attribute"), Gaussian)],
)
def test_the_least_noise_that_keeps_a_guarantee(guarantee, family):
    made = calibration.lattice(guarantee, sensitivity=3.0, grid=Grid(-20))
    assert isinstance(made, family)
    assert keeps(Plan(draws={"x": made}), guarantee)
    assert made.scale == pytest.approx(3.0 / calibration.budget_of(guarantee), rel=1e-3)


def test_only_add_and_remove_do_not_replace():
    assert not calibration.replaces(PURE)
    assert calibration.replaces(APPROXIMATE)
    assert calibration.replaces(ZCDP(rho=1, relation="attribute"))


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_grids_are_fine_and_within_what_integers_hold(unit, scale):
    step = calibration.fine_grid(unit, scale).step
    assert unit / step <= 2**31
    assert scale / step <= 2**46
    assert step <= max(min(unit, scale) * 2.0**-20, unit * 2.0**-30, scale * 2.0**-45)


@pytest.mark.parametrize("wrong", [0, -1.0, 1e-101, 1e101, np.nan, "1"])
def test_a_radius_is_refused_by_name(wrong):
    with pytest.raises(InputError, match="radius"):
        calibration.sized(radius=wrong)


def test_points_are_copies_within_bounds_that_cannot_be_written_to():
    mine = np.ones((2, 2))
    kept = calibration.frozen(cells=mine)
    mine[:] = 5
    assert (kept == 1).all()
    assert not kept.flags.writeable
    for wrong in ([[1e101]], [[np.nan]], [1.0]):
        with pytest.raises(InputError, match="cells"):
            calibration.frozen(cells=wrong)


def test_k_norm_noise_is_for_pure_guarantees():
    calibration.only_pure(PURE)
    with pytest.raises(InputError, match="k-norm"):
        calibration.only_pure(APPROXIMATE)


def test_an_answer_that_no_memory_holds_is_refused():
    calibration.few_numbers(calibration.MOST_NUMBERS, "the answer")
    with pytest.raises(InputError, match="numbers in the answer"):
        calibration.few_numbers(calibration.MOST_NUMBERS + 1, "the answer")
