"""A histogram of labels needs a number to predict and bins between bounds."""

import numpy as np
import pytest

from privada import Schema
from privada.exceptions import InputError
from privada.methods.marginals import LabelHistogram
from privada.privacy import ZCDP

RHO = ZCDP(rho=0.5, relation="add/remove")


def test_a_schema_without_a_number_is_refused():
    question = LabelHistogram(low=0.0, high=9.0, bins=4, guarantee=RHO)
    with pytest.raises(InputError, match="numeric label"):
        question.fits(Schema.of_numbers(bounds=(0.0, 1.0), width=2, label=None))


@pytest.mark.parametrize("wrong", [{"low": 9.0}, {"bins": 1}, {"high": np.inf}], ids=str)
def test_a_histogram_needs_bins_between_bounds(wrong):
    with pytest.raises(InputError):
        LabelHistogram(**{"low": 0.0, "high": 9.0, "bins": 4, "guarantee": RHO} | wrong)
