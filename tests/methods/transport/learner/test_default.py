"""Default maps: any units, no silent transformation."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.transport import default_map, standardised_map

RNG = np.random.default_rng(0)
ROWS = RNG.gamma(2.0, size=(80, 25))
UNITS = 10.0 ** RNG.integers(-4, 5, size=25)


@pytest.mark.parametrize("make", [default_map, standardised_map])
def test_units_of_columns_do_not_matter(make):
    plain, other = make(ROWS), make(ROWS * UNITS)
    assert np.allclose(plain.spread(ROWS), other.spread(ROWS * UNITS))
    assert plain.radius == pytest.approx(other.radius)


@pytest.mark.parametrize("make", [default_map, standardised_map])
def test_many_columns_that_cannot_be_negative_are_not_rescaled(make):
    assert make(ROWS).rescale == "none"
    middle = (ROWS[0] + ROWS[1]) / 2
    spread = make(ROWS).spread(np.array([ROWS[0], ROWS[1], middle]))
    assert np.allclose((spread[0] + spread[1]) / 2, spread[2])


def test_roots_are_taken_where_they_are_asked_for():
    assert default_map(ROWS, rescale="root").rescale == "root"


def test_a_column_that_is_constant_in_the_target_is_left_out():
    rows = np.column_stack([ROWS[:, :3], np.full(80, 7.0)])
    moved = rows + np.array([0.0, 0.0, 0.0, 1e6])
    assert np.array_equal(standardised_map(rows).spread(rows), standardised_map(rows).spread(moved))
    with pytest.raises(InputError, match="differ"):
        standardised_map(np.ones((4, 3)))


def test_a_wide_target_is_seen_through_its_leading_components():
    wide = RNG.normal(size=(40, 320))
    assert standardised_map(wide).components <= 40
    assert standardised_map(ROWS, components=5).components == 5
    assert standardised_map(ROWS).components == 25
