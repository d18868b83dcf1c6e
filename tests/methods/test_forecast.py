"""A forecast: a band around its ratio, and what it advises."""

import pytest

from privada.exceptions import InputError
from privada.methods.forecast import Forecast


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
@pytest.mark.parametrize("wrong", [0, -1.0, float("nan"), float("inf"), "1"])
def test_numbers_are_refused_by_name(name, wrong):
    with pytest.raises(InputError, match=name):
        made(**{name: wrong})


def test_it_is_printed_in_words():
    assert str(made(ratio=0.804, beside="doing nothing")) == (
        "about 80 % of the error of doing nothing (60 to 105 % in four cases of five)"
    )
