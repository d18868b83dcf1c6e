"""Numeric labels: from squared errors, and their spread from a histogram."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from privada import Owner, Schema, run
from privada.exceptions import InputError
from privada.methods.marginals import LabelHistogram, Public, cells, learn_regression
from privada.methods.marginals.learner.regression import label_spread
from privada.parties import Number
from privada.privacy import ZCDP, PureDP

HALF = PureDP(epsilon=1, relation="add/remove")
WHOLE = PureDP(epsilon=2, relation="add/remove")


def learnt(noise_seed, **more):
    rng = np.random.default_rng(4)
    X, source = rng.uniform(size=(2000, 2)), rng.uniform(size=(600, 2))
    y = np.clip(20 * X[:, 0] + 10 * X[:, 1] ** 2 + rng.normal(size=2000), 0, 30)
    schema = Schema.of_numbers(bounds=(0.0, 1.0), width=2, label=Number(name="y", low=0, high=30))
    with pytest.warns(UserWarning, match="not private"):
        owner = Owner(X, y=y, schema=schema, dataset="rows", budget=WHOLE, insecure_seed=noise_seed)
    public = Public(source=source, classes=(), **more)
    learner = learn_regression("o", cells(source, 40, 0), public, bounds=(0.0, 30.0), guarantees=(HALF, HALF))
    return run(learner, {"o": owner}), X, y


def test_a_number_is_learnt_from_squared_errors_of_two_constants():
    fit, X, y = learnt(1, classifier=RandomForestRegressor(50, random_state=0))
    assert np.mean((fit.predict(X) - y) ** 2) < 0.12 * y.var()
    assert len(fit.releases) == 2
    assert fit.synthetic.labels.min() >= 0
    assert fit.synthetic.labels.max() <= 30


def test_ridge_regression_by_default():
    fit, X, y = learnt(2)
    assert np.mean((fit.predict(X) - y) ** 2) < 0.15 * y.var()


def test_bounds_in_the_wrong_order_are_refused():
    public = Public(source=np.zeros((4, 1)), classes=())
    with pytest.raises(InputError, match="bounds"):
        next(learn_regression("o", None, public, bounds=(1.0, 0.0), guarantees=(HALF, HALF)))


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
