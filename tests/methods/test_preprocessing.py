"""Preprocessing that looks at no row, and pipelines of it."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

import privada
from privada import (
    Category,
    Number,
    Owner,
    PublicEncoder,
    PublicScaler,
    PureDP,
    Schema,
    make_private_pipeline,
)
from privada.exceptions import InputError, PrivacyLeakWarning
from privada.methods.preprocessing import unpaid_steps

X = np.random.default_rng(91).uniform(0, 50, size=(400, 2))
SCHEMA = Schema(columns=[Number(name="age", low=0, high=100), Category(name="sex", values=("f", "m"))])


def cells(**more):
    centers = [[0.2, 0.2], [0.8, 0.8]]
    return privada.CellClassifier(centers, classes=("no", "yes"), bounds=(0, 1), epsilon=4.0, **more)


def test_a_scaler_takes_its_bounds_from_nobody_but_its_settings():
    one, other = (PublicScaler(bounds=(0, [50, 100])).fit(rows) for rows in (X, 1000 * X))
    assert np.array_equal(one.transform(X), other.transform(X))
    assert np.allclose(one.inverse_transform(one.transform(X)), X)
    assert one.transform([[-5.0, 500.0]]).tolist() == [[0.0, 1.0]]
    assert clone(one).get_params()["bounds"] == (0, [50, 100])
    assert one.get_feature_names_out(["a", "b"]).tolist() == ["a", "b"]


def test_a_schema_has_bounds_too():
    schema = Schema.of_numbers(bounds=(0, 50), width=2)
    assert np.allclose(PublicScaler(schema=schema).fit_transform(X), X / 50)


@pytest.mark.parametrize(
    ("settings", "rows"),
    [
        ({}, X),
        ({"bounds": (0, 1), "schema": SCHEMA}, X),
        ({"bounds": (1, 0)}, X),
        ({"bounds": (0, [1, 2, 3])}, X),
        ({"bounds": (0, np.inf)}, X),
        ({"bounds": (0, 1)}, X[0]),
    ],
)
def test_wrong_bounds_are_named(settings, rows):
    with pytest.raises(InputError, match="bounds"):
        PublicScaler(**settings).fit(rows)
    with pytest.raises(InputError, match="columns"):
        PublicScaler(bounds=(0, 1)).fit(X).transform(X[:, :1])


def test_an_encoder_knows_the_schema_alone():
    encoder = PublicEncoder(schema=SCHEMA)
    found = encoder.fit_transform({"age": [10.0, 400.0], "sex": ["m", "f"]})
    assert found.tolist() == [[10.0, 0.0, 1.0], [100.0, 1.0, 0.0]]
    assert encoder.get_feature_names_out().tolist() == ["age", "sex = f", "sex = m"]
    with pytest.raises(InputError) as caught:
        encoder.transform({"age": [10.0], "sex": ["secret"]})
    assert "secret" not in str(caught.value)
    with pytest.raises(InputError, match="to be a Schema"):
        PublicEncoder().fit()


def test_a_pipeline_of_public_steps_fits_and_predicts():
    y = np.where(X.sum(axis=1) > 50, "yes", "no")
    pipeline = make_private_pipeline(PublicScaler(bounds=(0, 50)), cells()).fit(X, y)
    assert pipeline.score(X, y) > 0.8
    frozen = FrozenEstimator(StandardScaler().fit(np.random.default_rng(0).normal(size=(50, 2))))
    assert unpaid_steps(make_private_pipeline(frozen, Normalizer(), FunctionTransformer(), cells())) == []


@pytest.mark.parametrize("step", [StandardScaler(), PCA(1), make_pipeline(PublicScaler(), StandardScaler())])
def test_steps_that_would_learn_are_refused(step):
    with pytest.raises(InputError, match="would be fitted to private rows"):
        make_private_pipeline(step, cells())


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_keep_their_names_and_may_come_in_another_order(library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"age": [10.0, 25.0], "sum": [100.0, 50.0]})
    scaler = PublicScaler(bounds=(0, [50, 100])).set_output(transform=library)
    found = scaler.fit_transform(frame)
    assert isinstance(found, frames.DataFrame)
    assert list(found.columns) == ["age", "sum"]
    assert np.array_equal(scaler.transform(frame[["sum", "age"]]), found)
    with pytest.raises(InputError, match="missing: 'sum'"):
        scaler.transform(frame[["age"]])
    schema = Schema(columns=[Number(name="sum", low=0, high=100), Number(name="age", low=0, high=50)])
    by_schema = PublicScaler(schema=schema).set_output(transform=library).fit_transform(frame)
    assert list(by_schema.columns) == ["sum", "age"]
    assert np.array_equal(by_schema[["age", "sum"]], found)
    assert scaler.fit(np.eye(2)).get_feature_names_out().tolist() == ["x0", "x1"]
    encoder = PublicEncoder(schema=schema).set_output(transform=library)
    assert list(encoder.fit_transform(frame).columns) == ["sum", "age"]


# A warning where a fitted step stands before a private estimator, from scikit-learn's own pipelines too.


def rows_of(seed):
    X = np.random.default_rng(seed).uniform(size=(200, 2))
    return X, np.where(X.sum(axis=1) > 1, "yes", "no")


def cell_classifier():
    centers = [[0.2, 0.2], [0.8, 0.8]]
    return privada.CellClassifier(centers, classes=("no", "yes"), bounds=(-3, 3), epsilon=1.0)


def test_a_fitted_scaler_before_a_private_estimator_is_warned_of():
    with pytest.warns(PrivacyLeakWarning, match="standardscaler before CellClassifier was fitted"):
        make_pipeline(StandardScaler(), cell_classifier()).fit(*rows_of(1001))


def test_as_an_error_it_comes_before_the_charge():
    model = cell_classifier()
    with warnings.catch_warnings(), pytest.raises(PrivacyLeakWarning):
        warnings.simplefilter("error")
        make_pipeline(StandardScaler(), model).fit(*rows_of(1002))
    assert not hasattr(model, "release_")


def test_inside_a_search_it_is_found_too():
    with pytest.warns(PrivacyLeakWarning, match="standardscaler before"):
        cross_val_score(make_pipeline(StandardScaler(), cell_classifier()), *rows_of(1003), cv=2)


@pytest.mark.parametrize(
    "step", [PublicScaler(bounds=(0, 1)), FrozenEstimator(StandardScaler().fit(rows_of(5)[0])), "passthrough"]
)
def test_public_steps_are_silent(step):
    make_pipeline(step, cell_classifier()).fit(*rows_of(2000 + len(str(step))))


def test_alone_and_beside_an_owner_it_is_silent():
    X, y = rows_of(1004)
    cell_classifier().fit(X, y)
    schema = Schema.of_numbers(bounds=(-3, 3), width=2, label=Category(name="y", values=("no", "yes")))
    owner = Owner(X, y=y, schema=schema, dataset="rows", budget=PureDP(epsilon=2, relation="add/remove"))
    cell_classifier().fit(owner=owner)
