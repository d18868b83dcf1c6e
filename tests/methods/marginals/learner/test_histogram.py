"""Where labels lie, from noisy counts: right where there is little noise, the priors where there is much.

Noise is seeded, so nothing here fails by chance.
"""

import numpy as np
import pytest

from privada import Owner, Schema
from privada.methods.marginals import LabelHistogram
from privada.methods.marginals.learner.histogram import label_spread
from privada.parties import Number
from privada.privacy import ZCDP


def spread_of(y, rho):
    """Middle and spread by a histogram between -50 and 50."""
    guarantee = ZCDP(rho=rho, relation="add/remove")
    schema = Schema.of_numbers(bounds=(0.0, 1.0), width=1, label=Number(name="y", low=-50, high=50))
    with pytest.warns(UserWarning, match="not private"):
        owner = Owner(
            np.zeros((len(y), 1)), y=y, schema=schema, dataset="rows", budget=guarantee, insecure_seed=1
        )
    question = LabelHistogram(low=-50.0, high=50.0, bins=32, guarantee=guarantee)
    return label_spread(question, owner.answer(question), len(y))


@pytest.mark.parametrize(("middle", "spread"), [(0.0, 10.0), (-30.0, 5.0), (20.0, 2.0)])
def test_it_finds_where_labels_lie(middle, spread):
    y = np.clip(np.random.default_rng(0).normal(middle, spread, size=2000), -50, 50)
    found = spread_of(y, 0.05)
    assert found[0] == pytest.approx(middle, abs=0.3 * spread + 1)
    assert 0.7 * spread < found[1] < 2 * spread


def test_a_peak_with_tails_is_not_taken_for_narrow():
    rng = np.random.default_rng(0)
    y = np.where(rng.uniform(size=3000) < 0.6, 10.0, np.clip(rng.normal(10, 20, size=3000), -50, 50))
    assert spread_of(y, 0.5)[1] > 8


def test_of_noise_alone_the_prior_is_left():
    middle, spread = spread_of(np.full(20, 49.0), 1e-8)
    assert abs(middle) < 5
    assert 5 < spread < 50
