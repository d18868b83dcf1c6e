"""What a claim says: the points of a guarantee, and the curve of Gaussian noise."""

import numpy as np
import pytest

from privada.audit.claims import Curve, Point, claims, points
from privada.privacy import ZCDP, ApproxDP, Gaussian, Laplace, PureDP
from privada.privacy.accounting import curves
from privada.privacy.mechanism import Plan

ONE = PureDP(epsilon=1.0, relation="add/remove")


def test_claims_become_points():
    assert points(ONE) == (Point(epsilon=1.0, delta=0.0, first=True),)
    approximate = ApproxDP(epsilon=2.0, delta=1e-5, relation="add/remove")
    assert points(approximate) == (Point(epsilon=2.0, delta=1e-5, first=True),)
    zcdp = ZCDP(rho=0.1, relation="add/remove")
    assert all(point.epsilon == pytest.approx(zcdp.epsilon_at(point.delta)) for point in points(zcdp))


def test_a_gaussian_plan_adds_points_of_its_exact_profile():
    plan = Plan(draws={"x": Gaussian.calibrated(sensitivity=1, mu=0.5)})
    charged = points(ApproxDP(epsilon=2.0, delta=1e-5, relation="add/remove"), plan)[1:]
    assert len(charged) == 4
    for point in charged:
        assert point.epsilon == pytest.approx(curves.gaussian_epsilon(point.delta, 0.5), rel=1e-6)


def test_a_plan_of_gaussian_noise_is_tried_on_its_whole_curve_and_others_are_not():
    claimed = ApproxDP(epsilon=2.0, delta=1e-5, relation="add/remove")
    gaussian = claims(claimed, Plan(draws={"x": Gaussian.calibrated(sensitivity=1, mu=0.5)}))
    assert isinstance(gaussian[-1], Curve)
    assert gaussian[-1].mu == pytest.approx(0.5, rel=1e-6)
    mixed = claims(claimed, Plan(draws={"x": Laplace(sensitivity=1, scale=1.0)}))
    assert not any(isinstance(claim, Curve) for claim in mixed)
    assert Point(epsilon=1.0, delta=0.0) in mixed


def test_bounds_are_exact_on_probabilities_that_attain_the_claim():
    from scipy.special import ndtr

    low, high = np.array([0.5]), np.array([(0.5 - 0.1) / np.e])
    assert Point(epsilon=1.0, delta=0.1).bounds(low, high) == pytest.approx(1.0)
    assert Curve(mu=1.0).bounds(ndtr(np.array([1.5])), ndtr(np.array([0.5]))) == pytest.approx(1.0)


def test_bounds_stay_numbers_where_an_event_never_or_always_happens():
    never, always = np.array([0.0]), np.array([1.0])
    for claim in (Point(epsilon=1.0, delta=0.1), Curve(mu=1.0)):
        assert np.isfinite(claim.bounds(never, always)).all()
        assert (claim.bounds(never, always) < 0).all()
