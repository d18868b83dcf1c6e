"""The forecast: public facts alone, more rows for a smaller ratio, and nothing expected of next to none."""

import numpy as np
import pytest

from privada.methods.marginals import Public, forecast_error
from privada.privacy import ApproxDP, PureDP

SOURCE = np.random.default_rng(0).normal(size=(300, 6))
LOOSE = ApproxDP(epsilon=1, delta=1e-5, relation="replace-one")


def together(classes=(0, 1)):
    """A source whose columns nearly say the same."""
    return Public(source=SOURCE[:, :1] + 0.1 * SOURCE, classes=classes)


@pytest.mark.parametrize("classes", [(0, 1), ()], ids=["classes", "a number"])
@pytest.mark.parametrize("guarantee", [LOOSE, PureDP(epsilon=1, relation="add/remove")], ids=str)
def test_more_rows_are_expected_to_help(classes, guarantee):
    few, many = (forecast_error(together(classes), guarantee=guarantee, size=n) for n in (100, 10_000))
    assert many.ratio < few.ratio < 1
    assert all(each.low < each.ratio < each.high for each in (few, many))


def test_nothing_is_expected_of_next_to_no_rows():
    for classes in ((0, 1), ()):
        public = Public(source=SOURCE, classes=classes)
        assert not forecast_error(public, guarantee=LOOSE, size=10).worthwhile


def test_classes_are_easier_where_columns_move_together():
    even = Public(source=SOURCE, classes=(0, 1))
    one, other = (forecast_error(public, guarantee=LOOSE, size=500).ratio for public in (together(), even))
    assert one < other


def test_a_source_without_variation_promises_as_little_as_an_even_one():
    flat, even = (Public(source=rows, classes=(0, 1)) for rows in (np.ones((5, 3)), SOURCE))
    one, other = (forecast_error(public, guarantee=LOOSE, size=500).ratio for public in (flat, even))
    assert one >= other
