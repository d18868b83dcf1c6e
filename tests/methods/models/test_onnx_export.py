"""Fitted estimators as ONNX predict what they predict."""

import json
import warnings

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier

import privada
from privada.exceptions import InputError
from privada.methods.estimating import PrivateEstimator
from tests.methods.every_estimator import CASES, table

EXPORTED = {case.name: case for case in CASES if case.kind._add_to_onnx is not PrivateEstimator._add_to_onnx}
ROWS = np.random.default_rng(5).uniform(-0.5, 1.5, size=(300, 2))
LABELLED = {"epsilon": 50.0, "delta": 1e-6}


def fitted(name, public=None, **more):
    case = EXPORTED[name]
    X, y = case.private(23)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return case.make(**more).fit(X, y, **(case.public if public is None else public))


def run(blob, rows=ROWS):
    onnx.checker.check_model(onnx.load_model_from_string(blob))
    session = ort.InferenceSession(blob, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": rows}), strict=True))


def agree(model):
    found = run(model.to_onnx())
    if hasattr(model, "predict_proba"):
        assert np.allclose(found["probabilities"], model.predict_proba(ROWS), atol=1e-5)
        assert np.mean(model.classes_[found["label"]] == model.predict(ROWS)) > 0.99
    elif "label" in found:
        assert np.mean(found["label"] == model.predict(ROWS)) > 0.99
    else:
        assert np.allclose(found["prediction"][:, 0], model.predict(ROWS), atol=1e-5)


@pytest.mark.parametrize("name", EXPORTED)
def test_every_estimator_is_the_same_as_onnx(name):
    agree(fitted(name))


@pytest.mark.parametrize(
    "classifier",
    [
        LogisticRegression(),
        MLPClassifier((4,), max_iter=10, random_state=0),
        MLPClassifier((4,), activation="tanh", max_iter=10, random_state=0),
    ],
)
def test_classifiers_inside_are_translated(classifier):
    agree(fitted("MarginalClassifier", classifier=classifier))


def test_regressors_inside_are_translated():
    agree(fitted("MarginalRegressor", regressor=LinearRegression(), cells=8, epsilon=1.0, delta=None))


@pytest.mark.parametrize("rescale", ["none", "unit", "root"])
def test_class_statistics_and_rescaled_rows_are_translated(rescale):
    agree(fitted("TransportClassifier", algorithm="statistics", rescale=rescale))


@pytest.mark.parametrize("base", ["auto", "linear"])
def test_trees_and_kernel_machines_are_translated(base):
    rng = np.random.default_rng(3)
    X, y = rng.uniform(size=(400, 2)), rng.uniform(size=400)
    number = np.sin(6 * X[:, 0]) / 2 + 0.5 * (X[:, 1] > 0.5) + 0.1 * y
    agree(fitted("ReweightedRegressor", {"Xs": X, "ys": number / 2}, base=base, **LABELLED))
    words = np.where(number > 0.6, "yes", "no")
    agree(fitted("ReweightedClassifier", {"Xs": X, "ys": words}, base=base, **LABELLED))


def test_three_classes_are_translated():
    X, _, number = table(1, 300)
    y = np.array(["a", "b", "c"])[np.digitize(number, [0.4, 0.6])]
    Xs, _, more = table(2, 300)
    ys = np.array(["a", "b", "c"])[np.digitize(more, [0.4, 0.6])]
    model = privada.ReweightedClassifier(classes=("a", "b", "c"), bounds=(0, 1), epsilon=4.0, delta=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agree(model.fit(X, y, Xs=Xs, ys=ys))


def test_names_and_the_guarantee_are_in_the_metadata():
    model = fitted("CellClassifier")
    notes = {entry.key: entry.value for entry in onnx.load_model_from_string(model.to_onnx()).metadata_props}
    assert json.loads(notes["privada.classes"]) == ["no", "yes"]
    assert notes["privada.guarantee"] == str(model.guarantee_)


@pytest.mark.parametrize("name", ["CellClassifier", "MarginalClassifier", "ReweightedClassifier"])
def test_owners_evaluate_what_was_exported(name):
    """In their locked process, with the classes in another order."""
    X, y, _ = table(41, 400)
    model = fitted(name)
    found = privada.evaluate(model, X, y, classes=("yes", "no"), bounds=(0, 1), epsilon=30.0)
    assert found.accuracy.value == pytest.approx(model.score(X, y), abs=0.03)


def test_what_has_no_form_is_named():
    with pytest.raises(InputError, match="GaussianNB inside the model"):
        fitted("MarginalClassifier", classifier=GaussianNB()).to_onnx()
    with pytest.raises(InputError, match="A PrivateSummarizer has no ONNX form"):
        privada.PrivateSummarizer().to_onnx()
    with pytest.raises(NotFittedError):
        privada.CellClassifier().to_onnx()
