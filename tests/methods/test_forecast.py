"""A forecast: a band around its ratio, and what it advises."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.forecast import ClassLine, Forecast, leading_share, say_size


def made(**more):
    return Forecast(**({"ratio": 0.8, "low": 0.6, "high": 1.05, "beside": "the public model"} | more))


@pytest.mark.parametrize(("ratio", "worthwhile"), [(0.999, True), (1.0, False), (1.04, False)])
def test_spending_is_worthwhile_only_if_a_gain_is_expected(ratio, worthwhile):
    assert made(ratio=ratio).worthwhile is worthwhile


@pytest.mark.parametrize("wrong", [{"low": 0.81}, {"high": 0.79}, {"low": 1.0, "high": 0.5}])
def test_a_band_holds_its_ratio(wrong):
    with pytest.raises(InputError, match="low <= ratio <= high"):
        made(**wrong)


@pytest.mark.parametrize("name", ["ratio", "low", "high"])
@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf"), "1"])
def test_numbers_are_refused_by_name(name, wrong):
    with pytest.raises(InputError, match=name):
        made(**{name: wrong})


def test_a_band_may_begin_at_nothing_but_no_error_is_nothing():
    assert made(low=0.0).low == 0
    with pytest.raises(InputError, match="ratio"):
        made(low=0.0, ratio=0.0)


def test_an_error_is_compared_with_doing_nothing_or_is_one_by_itself():
    itself = made(beside="", measure="the share of rows in a wrong cell")
    assert itself.explanation == "The error is the share of rows in a wrong cell."
    assert made().explanation == "100 % is the error of the public model."
    for wrong in ({"beside": ""}, {"measure": "something"}):
        with pytest.raises(InputError, match="beside or measure"):
            made(**wrong)


def test_a_number_of_rows_is_the_announced_one_or_a_guess_that_is_said():
    assert say_size(40) == (40, "of 40 rows")
    rows, said = say_size(None)
    assert rows == 1000
    assert "no number is announced" in said


def test_it_is_printed_in_words():
    assert str(made(ratio=0.804, beside="doing nothing")) == (
        "about 80 % of the error of doing nothing (60 to 105 % in four cases of five)"
    )


RNG = np.random.default_rng(0)
ONE = RNG.normal(size=(400, 1))
UNRELATED = RNG.normal(size=(400, 6))


def test_the_leading_share_is_one_of_columns_that_are_alike_and_next_to_none_of_unrelated_ones():
    assert leading_share(ONE * np.array([1.0, -50.0, 1e-6])) == pytest.approx(1.0)
    assert leading_share(UNRELATED) < 0.1
    assert leading_share(UNRELATED * 10.0 ** np.arange(6)) == pytest.approx(leading_share(UNRELATED))
    assert leading_share(ONE) == leading_share(np.ones((5, 4))) == 0.0
    constant = np.column_stack([UNRELATED, np.ones(400)])
    assert leading_share(constant) == pytest.approx(leading_share(UNRELATED))


def test_a_line_falls_with_rows_and_with_columns_that_move_together():
    line = ClassLine(start=0.2, by_rows=0.3, by_direction=1.0, below=0.5, above=0.4)
    few, many = (line.expect(UNRELATED, rows=rows, beside="nothing") for rows in (1.0, 1000.0))
    alike = line.expect(ONE + 0.1 * UNRELATED, rows=1000.0, beside="nothing")
    assert few.ratio > many.ratio > alike.ratio
    assert few.high / few.low == pytest.approx(np.exp(0.9))
    assert line.expect(UNRELATED, rows=1e-9, beside="nothing").worthwhile is False
