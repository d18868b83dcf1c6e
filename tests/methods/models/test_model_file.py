"""Fitted models leave in one safe file, and predict the same, bit by bit, wherever they are read."""

import json
import struct
import warnings
from datetime import date

import numpy as np
import onnxruntime as ort
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier

import privada
from privada.exceptions import InputError, WireError
from privada.methods.models.model_file import list_estimators, pack_model, unpack_model
from privada.methods.models.predicting import predict_table
from privada.parties.columns import Date
from privada.privacy import wire
from tests.methods.every_estimator import CASES


def run(blob, rows):
    session = ort.InferenceSession(blob, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": rows}), strict=True))


SAVED = [case for case in CASES if case.name in list_estimators()]
ROWS = np.random.default_rng(5).uniform(-0.5, 1.5, size=(60, 2))


def fitted(case, **more):
    X, y = case.private(11)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return case.make(**more).fit(X, y, **case.public)


@pytest.fixture(scope="module")
def cells():
    return fitted(next(case for case in CASES if case.name == "CellClassifier"))


@pytest.mark.parametrize("case", SAVED, ids=lambda case: case.name)
def test_a_loaded_model_predicts_the_same_bits(case, tmp_path):
    model = fitted(case)
    again = privada.load(model.save(tmp_path / "model.privada"))
    assert type(again) is type(model)
    for verb in ("predict", "predict_proba"):
        if hasattr(model, verb):
            mine, other = getattr(model, verb)(ROWS), getattr(again, verb)(ROWS)
            assert mine.dtype == other.dtype
            assert np.array_equal(mine, other)
    assert again.guarantee_ == model.guarantee_
    assert again.release_.signature == model.release_.signature
    assert again.release_.receipt == model.release_.receipt
    assert pack_model(again) == pack_model(model)


@pytest.mark.parametrize("case", SAVED, ids=lambda case: case.name)
def test_what_was_spent_and_who_paid_stay_behind(case, tmp_path):
    model = fitted(case)
    header, _ = wire.unpack(pack_model(model), kind="model")
    assert header["guarantee"] == model.guarantee_.to_dict()
    assert f".{header['method']}." in list_estimators()[case.name].path
    text = json.dumps(header)
    assert not any(word in text for word in ("spent_", "ledger", "rehearsal", "forecast_"))
    assert not hasattr(unpack_model(pack_model(model)), "spent_")


@pytest.mark.parametrize(
    "classifier", [LogisticRegression(), MLPClassifier((5,), max_iter=20, random_state=0)]
)
def test_models_of_scikit_learn_travel_as_numbers(classifier):
    case = next(case for case in CASES if case.name == "MarginalClassifier")
    model = fitted(case, classifier=classifier)
    again = unpack_model(pack_model(model))
    assert np.array_equal(again.predict_proba(ROWS), model.predict_proba(ROWS))


def test_a_schema_with_words_and_dates_travels(tmp_path):
    rng = np.random.default_rng(8)
    days = np.datetime64("2020-01-01") + rng.integers(0, 900, size=200).astype("timedelta64[D]")
    frame = pd.DataFrame({"day": days, "ward": rng.choice(["a", "b"], size=200)})
    schema = privada.Schema(
        columns=[
            Date(name="day", first=date(2020, 1, 1), last=date(2023, 1, 1)),
            privada.Category(name="ward", values=("a", "b")),
        ]
    )
    centers = [[100.0, 1, 0], [800.0, 0, 1]]
    model = privada.CellClassifier(centers, classes=("no", "yes"), schema=schema, epsilon=1.0)
    model.fit(frame, np.where(frame.ward == "a", "no", "yes"))
    again = privada.load(model.save(tmp_path / "model.privada"))
    assert np.array_equal(again.predict(frame), model.predict(frame))
    assert again.schema == schema
    frame.to_csv(tmp_path / "rows.csv", index=False)
    table = predict_table(tmp_path / "model.privada", tmp_path / "rows.csv")
    assert [row[0] for row in table[1:]] == model.predict(frame).tolist()
    found = run(model.to_onnx(), schema.encode(frame))
    assert np.allclose(found["probabilities"], model.predict_proba(frame))
    assert again.feature_names_in_.tolist() == model.feature_names_in_.tolist()


def test_other_classes_are_named_and_not_written():
    case = next(case for case in CASES if case.name == "MarginalClassifier")
    with pytest.raises(InputError, match="holds no GaussianNB; export it with to_onnx"):
        pack_model(fitted(case, classifier=GaussianNB()))


def test_only_fitted_estimators_are_saved(tmp_path):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        privada.CellClassifier().save(tmp_path / "model")
    with pytest.raises(InputError, match="got a PrivateSummarizer"):
        privada.PrivateSummarizer().save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def changed(blob, change):
    """The same file with another header."""
    header, arrays = wire.unpack(blob, kind="model")
    change(header, arrays)
    return wire.pack("model", header, arrays)


def drop(*path):
    def change(header, _):
        for key in path[:-1]:
            header = header[key]
        del header[path[-1]]

    return change


def put(value, *path):
    def change(header, _):
        for key in path[:-1]:
            header = header[key]
        header[path[-1]] = value

    return change


BROKEN = {
    "another estimator": put("Exploit", "estimator"),
    "no estimator": drop("estimator"),
    "a class of the system": put({"made": ["Popen", {"args": "true"}]}, "fitted", "counts_"),
    "a fitted class of the system": put({"fitted": ["Popen", {}, {}]}, "fitted", "counts_"),
    "attributes of its own": put({"fitted": ["Ridge", {}, {"__class__": 3}]}, "fitted", "probabilities_"),
    "two keys": put({"array": "a0", "number": "nan"}, "fitted", "counts_"),
    "an unknown kind": put({"code": "import os"}, "fitted", "counts_"),
    "a method": put(3, "fitted", "predict"),
    "a private attribute": put(3, "fitted", "_schema"),
    "no width": drop("fitted", "n_features_in_"),
    "a huge width": put(10**9, "fitted", "n_features_in_"),
    "another guarantee": put({"kind": "pure"}, "guarantee"),
    "an array that is not there": put({"array": "a99"}, "fitted", "probabilities_"),
    "another shape": put([0.5], "fitted", "probabilities_"),
    "labels beyond their table": put({"labels": ["U", [2], [["no"], "a0"]]}, "fitted", "classes_"),
    "an unknown setting": put(1, "settings", "colour"),
    "settings that are no object": put([1], "settings"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_bad_files_are_refused_by_name(cells, name):
    with pytest.raises(WireError):
        unpack_model(changed(pack_model(cells), BROKEN[name]))


def test_truncated_foreign_and_oversized_files_are_refused(cells, tmp_path):
    blob = pack_model(cells)
    for at in (0, 7, 40, len(blob) // 2, len(blob) - 1):
        with pytest.raises(WireError):
            unpack_model(blob[:at])
    with pytest.raises(WireError, match="Expected a privada model"):
        unpack_model(cells.release_.to_bytes())
    with pytest.raises(WireError):
        unpack_model(struct.pack("<Q", 2**40) + b"{}")
    (tmp_path / "no").write_text("no model")
    with pytest.raises(WireError):
        privada.load(tmp_path / "no")
    with pytest.raises(WireError, match="Cannot read"):
        privada.load(tmp_path)


def test_a_release_that_was_changed_is_found(cells):
    def forge(header, arrays):
        name = header["fitted"]["release_"]["release"]
        blob = bytearray(arrays[name].tobytes())
        blob[-1] ^= 1
        arrays[name] = np.frombuffer(bytes(blob), dtype=np.uint8)

    with pytest.raises(WireError, match="signature|valid release"):
        unpack_model(changed(pack_model(cells), forge))
