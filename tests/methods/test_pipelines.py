"""A warning where a fitted step stands before a private estimator, from scikit-learn's own pipelines too."""

import warnings

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import privada
from privada import Category, Owner, PublicScaler, PureDP, Schema
from privada.exceptions import PrivacyLeakWarning


def rows(seed):
    X = np.random.default_rng(seed).uniform(size=(200, 2))
    return X, np.where(X.sum(axis=1) > 1, "yes", "no")


def cells():
    centers = [[0.2, 0.2], [0.8, 0.8]]
    return privada.CellClassifier(centers, classes=("no", "yes"), bounds=(-3, 3), epsilon=1.0)


def test_a_fitted_scaler_before_a_private_estimator_is_warned_of():
    with pytest.warns(PrivacyLeakWarning, match="standardscaler before CellClassifier was fitted"):
        make_pipeline(StandardScaler(), cells()).fit(*rows(1001))


def test_as_an_error_it_comes_before_the_charge():
    model = cells()
    with warnings.catch_warnings(), pytest.raises(PrivacyLeakWarning):
        warnings.simplefilter("error")
        make_pipeline(StandardScaler(), model).fit(*rows(1002))
    assert not hasattr(model, "release_")


def test_inside_a_search_it_is_found_too():
    with pytest.warns(PrivacyLeakWarning, match="standardscaler before"):
        cross_val_score(make_pipeline(StandardScaler(), cells()), *rows(1003), cv=2)


@pytest.mark.parametrize(
    "step", [PublicScaler(bounds=(0, 1)), FrozenEstimator(StandardScaler().fit(rows(5)[0])), "passthrough"]
)
def test_public_steps_are_silent(step):
    make_pipeline(step, cells()).fit(*rows(2000 + len(str(step))))


def test_alone_and_beside_an_owner_it_is_silent():
    X, y = rows(1004)
    cells().fit(X, y)
    schema = Schema.of_numbers(bounds=(-3, 3), width=2, label=Category(name="y", values=("no", "yes")))
    owner = Owner(X, y=y, schema=schema, dataset="rows", budget=PureDP(epsilon=2, relation="add/remove"))
    cells().fit(owner=owner)
