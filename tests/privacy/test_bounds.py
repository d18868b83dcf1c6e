import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from privada.exceptions import BoundsError, SchemaError
from privada.privacy import Ball, Box, Classes, Grid

vectors = hnp.arrays(np.float64, (4, 3), elements=st.floats(-1e300, 1e300, allow_nan=False))


@given(vectors, st.floats(1e-3, 1e3))
def test_a_clipped_and_truncated_vector_never_leaves_the_ball(rows, radius):
    grid = Grid.finer_than(radius * 2**-20)
    steps = grid.truncate(Ball(radius=radius).clip(rows))
    exact = [sum(int(v) ** 2 for v in row) for row in steps]
    assert all(total <= (radius / grid.step) ** 2 for total in exact)


@given(hnp.arrays(np.float64, 8, elements=st.floats(-1e6, 1e6)), st.integers(-20, 3))
def test_truncation_is_toward_zero(values, exponent):
    grid = Grid(exponent)
    back = grid.values(grid.truncate(values))
    assert np.all(np.abs(back) <= np.abs(values))
    assert np.all(np.abs(back - values) < grid.step)


def test_truncation_does_not_preserve_differences():
    """privacy.md, section 0, hazard 5: squared difference 2.25 against a bound of 2 at g = 1/4."""
    grid = Grid(-2)
    a, b = np.array([0.74, 0.74]), np.array([-0.26, -0.26])
    moved = grid.values(grid.truncate(a)) - grid.values(grid.truncate(b))
    assert np.sum((a - b) ** 2) == pytest.approx(2.0)
    slack = np.sqrt(2.0) + grid.step * np.sqrt(2)
    assert np.linalg.norm(moved) <= slack


def test_rows_inside_are_untouched_and_order_does_not_matter():
    rows = np.array([[0.1, 0.2], [30.0, 40.0]])
    clipped = Ball(radius=1).clip(rows)
    assert np.array_equal(clipped[0], rows[0])
    assert np.array_equal(Ball(radius=1).clip(rows[::-1])[::-1], clipped)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_a_row_that_is_not_finite_is_0_and_moves_no_other(bad):
    rows = np.array([[0.1, 0.2], [bad, 1.0], [30.0, 40.0]])
    clipped = Ball(radius=1).clip(rows)
    assert clipped[1].tolist() == [0, 0]
    assert np.array_equal(clipped[[0, 2]], Ball(radius=1).clip(rows[[0, 2]]))
    assert Ball(radius=1).clip(rows[1]).tolist() == [0, 0]


@pytest.mark.parametrize(
    "bad", [{"low": [0], "high": [0]}, {"low": [0], "high": [np.inf]}, {"low": [0, 1], "high": [2]}]
)
def test_boxes_that_are_none(bad):
    with pytest.raises(BoundsError):
        Box(**bad)


def test_a_box_clips_and_knows_its_radius():
    box = Box(low=[0, 0], high=[6, 8])
    assert box.clip([[9, -1]]).tolist() == [[6, 0]]
    assert box.radius == 5
    assert box.dimension == 2


def test_unknown_labels_are_refused_without_being_shown():
    with pytest.raises(SchemaError) as caught:
        Classes(("ill", "well")).encode(np.array(["ill", "secret-name"]))
    assert "secret" not in str(caught.value)


def test_classes_code_and_decode():
    classes = Classes((3, 1))
    assert classes.encode([1, 3, 1]).tolist() == [1, 0, 1]
    assert classes.decode([1, 0]).tolist() == [1, 3]
    for bad in ((), ("a",), ("a", "a"), ([1], [2])):
        with pytest.raises((BoundsError, TypeError)):
            Classes(bad)


def test_a_value_that_does_not_fit_the_grid():
    for bad in (np.nan, np.inf, 1e300):
        with pytest.raises(BoundsError, match="does not fit the grid"):
            Grid(-10).truncate([bad])
    with pytest.raises(BoundsError):
        Grid(100)


def test_a_factor_too_small_for_a_float_does_not_let_a_row_out():
    rows = np.linspace(1e307, np.finfo(np.float64).max, 2000)[:, None]
    assert (Ball(radius=1e-15).clip(rows) <= 1e-15).all()
