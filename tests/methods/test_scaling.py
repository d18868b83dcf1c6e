"""Public scaling: public rows alone decide it, a row's result is its own, and no row leaves the ball."""

import numpy as np
import pytest

from privada.methods.scaling import PublicScale

PUBLIC = np.random.default_rng(0).normal((5.0, -2.0, 7.0), (10.0, 0.1, 0.0), (200, 3))


def test_public_rows_are_centred_and_of_one_spread_and_a_constant_is_only_centred():
    scale = PublicScale.of(PUBLIC)
    wide = (PUBLIC - scale.mean) / scale.spread
    np.testing.assert_allclose(wide.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(wide[:, :2].std(axis=0), 1)
    assert scale.spread[2] in (1.0, PUBLIC[:, 2].std())
    constant = PublicScale.of(np.full((5, 2), 3.0))
    assert constant.spread.tolist() == [1.0, 1.0]
    assert constant.rows([[3.0, 3.0]]).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("far", [1e3, 1e150, -1e300])
def test_no_row_leaves_the_ball(far):
    scale = PublicScale.of(PUBLIC)
    rows = scale.rows(np.array([[far, far, far], [far, 0.0, 0.0]]))
    assert (np.linalg.norm(rows, axis=1) <= scale.radius).all()
    assert scale.radius == np.sqrt(3)


def test_units_do_not_matter():
    units = np.array([1e-3, 100.0, 4.0])
    X = PUBLIC[:20]
    np.testing.assert_allclose(
        PublicScale.of(PUBLIC * units).rows(X * units)[:, :2], PublicScale.of(PUBLIC).rows(X)[:, :2]
    )


def test_a_row_is_scaled_by_itself_to_the_last_bit():
    scale, X = PublicScale.of(PUBLIC), PUBLIC * 3
    whole = scale.rows(X)
    for at in (0, 7, 199):
        assert scale.rows(X[at : at + 1]).tobytes() == whole[at : at + 1].tobytes()
