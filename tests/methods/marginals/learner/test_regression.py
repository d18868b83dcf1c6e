import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from privada import Owner, Schema, run
from privada.exceptions import InputError
from privada.methods.marginals import Public, cells, learn_regression
from privada.parties import Number
from privada.privacy import PureDP

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
