"""`MarginalRegressor`: the manners of scikit-learn, and nothing but what two rounds paid for."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.neighbors import KNeighborsRegressor

from privada import MarginalClassifier, MarginalRegressor, Owner, Schema, run
from privada.exceptions import InputError, PrivadaWarning, RehearsalWarning, SchemaError
from privada.methods.marginals import Public, default_regression, learn_regression
from privada.parties import Number
from privada.privacy import ZCDP, ApproxDP, PureDP

SETTINGS = {"bounds": (0.0, 1.0), "label_bounds": (0.0, 30.0), "epsilon": 2.0, "size": 2000}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(4)
    X, source = rng.uniform(size=(2000, 2)), rng.beta(1.0, 1.5, size=(600, 2))
    return X, np.clip(20 * X[:, 0] + 10 * X[:, 1] ** 2 + rng.normal(size=2000), 0, 30), source


@pytest.fixture(scope="module")
def fitted(rows):
    X, y, source = rows
    with pytest.warns(RehearsalWarning):
        return MarginalRegressor(**SETTINGS, insecure_seed=1).fit(X, y, source=source)


def test_it_learns_and_says_what_it_cost(rows, fitted):
    X, y, _ = rows
    assert fitted.score(X, y) > 0.85
    assert fitted.guarantee_ == PureDP(epsilon=2, relation="add/remove")
    assert sum(release.guarantee.epsilon for release in fitted.releases_) == pytest.approx(2)
    assert fitted.release_ is fitted.releases_[-1]
    assert fitted.forecast_.worthwhile
    assert "noisy mean" in str(fitted.forecast_)


def test_the_synthetic_target_stands_for_the_target(rows, fitted):
    X, _, source = rows
    made = fitted.synthetic_target_
    truth = 20 * source[:, 0] + 10 * source[:, 1] ** 2
    assert np.sqrt(np.mean((made.labels - truth) ** 2)) < 0.3 * truth.std()
    assert np.average(source[:, 0], weights=made.weights) == pytest.approx(X[:, 0].mean(), abs=0.06)
    assert made.guarantees == tuple(str(release.guarantee) for release in fitted.releases_)
    assert made.weights.mean() == pytest.approx(1)


def test_it_equals_its_two_sides(rows, fitted):
    X, y, source = rows
    whole = PureDP(epsilon=2, relation="add/remove")
    schema = Schema.of_numbers(
        bounds=(0.0, 1.0), width=2, size=2000, label=Number(name="label", low=0, high=30)
    )
    with pytest.warns(RehearsalWarning):
        owner = Owner(X, y=y, schema=schema, dataset="rows", budget=whole, insecure_seed=1)
    plan = default_regression(source, guarantee=whole, size=2000)
    public = Public(source=source, classes=())
    learner = learn_regression("o", plan.cells, public, bounds=(0.0, 30.0), guarantees=plan.guarantees)
    for ours, theirs in zip(fitted.releases_, run(learner, {"o": owner}).releases, strict=True):
        assert all(np.array_equal(ours[name], theirs[name]) for name in ours.payload)


def test_it_keeps_the_manners_of_scikit_learn():
    model = MarginalRegressor(**SETTINGS, regressor=RandomForestRegressor(5), insecure_seed=3)
    assert clone(model).get_params().keys() == model.get_params().keys()
    assert not [key for key in vars(model) if key.endswith("_")]


@pytest.mark.parametrize("relation", ["add/remove", "replace-one"])
def test_with_delta_it_descends(rows, relation):
    """Over 100 seeds of the noise the score was 0.964 on average, and never below 0.963."""
    X, y, source = rows
    model = MarginalRegressor(**SETTINGS, delta=1e-5, relation=relation).fit(X, y, source=source)
    assert [release.kind for release in model.releases_] == ["marginals.histogram", "marginals.linear"]
    assert model.score(X, y) > 0.9
    assert model.guarantee_ == ApproxDP(epsilon=2, delta=1e-5, relation=relation)
    own = MarginalRegressor(**SETTINGS, delta=1e-5, relation=relation, regressor=Ridge())
    assert own.fit(X, y, source=source).score(X, y) > 0.9


@pytest.mark.filterwarnings("ignore::privada.exceptions.RehearsalWarning")
def test_any_regressor_and_any_guarantee_with_even_shares(rows):
    X, y, source = rows
    forest = RandomForestRegressor(30, random_state=0)
    settings = SETTINGS | {"epsilon": None, "rho": 0.5, "relation": "replace-one", "cells": 50}
    model = MarginalRegressor(**settings, regressor=forest, insecure_seed=2).fit(X, y, source=source)
    assert model.guarantee_ == ZCDP(rho=0.5, relation="replace-one")
    assert model.score(X, y) > 0.8
    assert not hasattr(forest, "estimators_")
    assert model.release_["squares.0"].shape == (50,)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (3, "Expected regressor to be a scikit-learn regressor, got 3"),
        (Ridge, "Expected regressor to be a scikit-learn regressor"),
        (LogisticRegression(), "Expected regressor to be a scikit-learn regressor, got LogisticRegression"),
        (KNeighborsRegressor(), "to take sample_weight in fit, which KNeighborsRegressor does not.*Ridge"),
        (PoissonRegressor(alpha=-1), "Expected a regressor that fits .* PoissonRegressor says: .*alpha"),
    ],
    ids=["a number", "a class", "a classifier", "no weights", "cannot fit"],
)
def test_a_regressor_that_could_not_be_trained_is_refused_before_anything_is_asked(rows, wrong, message):
    _, _, source = rows
    plan = default_regression(source, guarantee=PureDP(epsilon=1, relation="add/remove"), size=2000)
    public = Public(source=source, classes=(), classifier=wrong)
    with pytest.raises(InputError, match=message):
        learn_regression("o", plan.cells, public, bounds=(0.0, 30.0), guarantees=plan.guarantees)


def test_predictions_stay_within_the_public_bounds(fitted):
    far = fitted.predict([[-5.0, -5.0], [9.0, 9.0]])
    assert far.min() >= 0
    assert far.max() <= 30


def test_noise_alone_gives_a_model_and_no_error():
    source = np.random.default_rng(0).uniform(size=(60, 2))
    model = MarginalRegressor(**(SETTINGS | {"epsilon": 0.01, "size": 10}))
    with pytest.warns(PrivadaWarning, match="keep the budget"):
        model.fit(source[:1], [3.0], source=source)
    assert model.forecast_.ratio == 1
    assert np.isfinite(model.predict(source)).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"bounds": None}, "Expected bounds"),
        ({"label_bounds": None}, "Expected label_bounds"),
        ({"label_bounds": 3.0}, "Expected label_bounds to be"),
        ({"label_bounds": (3.0, 1.0)}, "low"),
        ({"size": None}, "Expected size"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"rho": 1.0}, "rho"),
        ({"cells": 1}, "Expected cells"),
        ({"random_state": -1}, "Expected random_state"),
    ],
    ids=str,
)
def test_wrong_settings_are_refused_by_name(rows, wrong, message):
    X, y, source = rows
    with pytest.raises(InputError, match=message):
        MarginalRegressor(**(SETTINGS | wrong)).fit(X, y, source=source)


def test_rows_that_are_no_numbers_are_refused(rows):
    X, y, source = rows
    model = MarginalRegressor(**SETTINGS)
    with pytest.raises(InputError, match="Expected source"):
        model.fit(X, y)
    with pytest.raises(SchemaError, match="missing value"):
        model.fit(X, np.where(y > 20, np.nan, y), source=source)
    with pytest.raises(InputError, match="source"):
        model.fit(X, y, source=np.full((9, 2), np.inf))


@pytest.mark.parametrize("ask", ["predict", "predict_proba"])
def test_a_classifier_that_was_not_fitted_says_so(ask):
    with pytest.raises(NotFittedError):
        getattr(MarginalClassifier(classes=(0, 1), bounds=(0.0, 1.0), epsilon=1.0, size=10), ask)([[0.5]])


def test_a_regressor_that_was_not_fitted_says_so():
    with pytest.raises(NotFittedError):
        MarginalRegressor(**SETTINGS).predict([[0.5, 0.5]])
