"""A mechanism on a sample that shows: what the table in the module says of it."""

import math

import pytest
from dp_accounting import (
    GaussianDpEvent,
    LaplaceDpEvent,
)

from privada.exceptions import InputError
from privada.privacy.accounting import accountant, curves
from privada.privacy.accounting.events import VisiblySampledDpEvent


def test_a_sample_that_shows_loses_at_the_same_epsilon():
    """γ δ(ε), and below 0 what symmetry says; attained where the other rows are far apart."""
    event = VisiblySampledDpEvent(10, 3, GaussianDpEvent(0.8))
    for epsilon in (0.0, 0.5, 2.0, 6.0):
        wanted = 0.3 * curves.gaussian_delta(epsilon, 1.25)
        assert accountant.delta(event, epsilon) == pytest.approx(wanted, rel=1e-12)
        certified = accountant.privacy_loss_distribution(event, step=1e-3).get_delta_for_epsilon(epsilon)
        assert wanted <= certified * (1 + 1e-9)
        assert certified == pytest.approx(wanted, rel=1e-3)


@pytest.mark.parametrize("order", [1.2, 3.0, 17.8])
def test_its_divergence_is_that_of_a_mixture(order):
    rate, mu = 0.2, 1.1
    event = VisiblySampledDpEvent(5, 1, GaussianDpEvent(1 / mu))
    moment = 1 - rate + rate * math.exp((order - 1) * order * mu**2 / 2)
    assert accountant.renyi(event, order) == pytest.approx(math.log(moment) / (order - 1))
    assert accountant.zcdp(event) == pytest.approx(mu**2 / 2)
    assert accountant.gaussian_mu(event) == pytest.approx(mu)
    laplace = VisiblySampledDpEvent(5, 1, LaplaceDpEvent(2.0))
    assert accountant.pure_epsilon(laplace) == 0.5


def test_a_whole_sample_is_the_mechanism():
    whole = VisiblySampledDpEvent(7, 7, GaussianDpEvent(2.0))
    assert accountant.delta(whole, 1.0) == accountant.delta(whole.event, 1.0)
    assert accountant.renyi(whole, 5.0) == pytest.approx(accountant.renyi(whole.event, 5.0))


def test_it_reads_back_from_its_plain_form_and_cannot_be_changed():
    event = VisiblySampledDpEvent(10, 3, GaussianDpEvent(0.8))
    assert accountant.from_dict(accountant.to_dict(event)) == event
    assert event != VisiblySampledDpEvent(10, 4, GaussianDpEvent(0.8))
    with pytest.raises(AttributeError):
        event.sample_size = 1


@pytest.mark.parametrize(("size", "drawn"), [(5, 6), (5, -1), (0, 0), (5, 2.5)])
def test_a_sample_that_is_no_part_of_its_rows_is_refused(size, drawn):
    with pytest.raises(InputError):
        accountant.renyi(VisiblySampledDpEvent(size, drawn, GaussianDpEvent(1.0)), 2.0)
