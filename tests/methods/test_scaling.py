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
    assert scale.spread[2] == 1.0
    assert scale.varies.tolist() == [True, True, False]
    np.testing.assert_allclose(scale.standardise(PUBLIC), wide)
    constant = PublicScale.of(np.full((5, 2), 3.0))
    assert constant.spread.tolist() == [1.0, 1.0]
    assert constant.rows([[3.0, 3.0]]).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("far", [1e3, 1e150, -1e300])
def test_no_row_leaves_the_ball(far):
    scale = PublicScale.of(PUBLIC)
    rows = scale.rows(np.array([[far, far, far], [far, 0.0, 0.0]]))
    assert (np.linalg.norm(rows, axis=1) <= scale.radius).all()
    assert scale.radius == np.sqrt(3)


def test_one_spread_for_all_columns_keeps_their_proportions():
    scale = PublicScale.of(PUBLIC, each=False)
    assert len(set(scale.spread.tolist())) == 1
    assert np.mean(scale.standardise(PUBLIC) ** 2) == pytest.approx(1.0)
    assert PublicScale.of(np.full((5, 2), 3.0), each=False).spread.tolist() == [1.0, 1.0]


def test_a_column_that_only_rounds_is_constant_in_any_unit():
    for unit in (1e-9, 1.0, 1e9):
        column = unit * (0.1 + 1e-17 * np.arange(6))
        scale = PublicScale.of(np.column_stack([column, unit * np.arange(6)]))
        assert scale.varies.tolist() == [False, True]


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
