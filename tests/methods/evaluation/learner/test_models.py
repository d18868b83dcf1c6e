"""Models of any kind become hypotheses."""

import json
import sys

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from privada.exceptions import InputError
from privada.methods.evaluation import as_hypothesis
from privada.methods.evaluation.learner.models import link_of
from privada.methods.hypotheses import Onnx, linear, to_plain

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 3))
y = (X[:, 0] > 0).astype(int)


def test_a_hypothesis_is_taken_as_it_is():
    model = linear([[1.0]], [0.0])
    assert as_hypothesis(model, width=1) is model
    assert link_of(model) == "softmax"


def test_classifiers_and_pipelines_give_probabilities():
    fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    found = as_hypothesis(fitted, width=3, classes=(0, 1))
    assert isinstance(found, Onnx)
    assert link_of(found) == "none"
    assert np.allclose(found.scores(X[:20]), fitted.predict_proba(X[:20]), atol=1e-5)


@pytest.mark.parametrize("model", [Ridge(), GradientBoostingRegressor(n_estimators=5)])
def test_regressors_give_one_score(model):
    fitted = model.fit(X, X[:, 0])
    found = as_hypothesis(fitted, width=3)
    assert found.outputs == 1
    assert np.allclose(found.scores(X[:20])[:, 0], fitted.predict(X[:20]), atol=1e-4)


def test_files_and_bytes_are_read(tmp_path):
    fitted = LogisticRegression().fit(X, y)
    made = as_hypothesis(fitted, width=3, classes=(0, 1)).model.tobytes()
    (tmp_path / "model.onnx").write_bytes(made)
    for given in (made, tmp_path / "model.onnx", str(tmp_path / "model.onnx")):
        assert as_hypothesis(given, width=3, classes=(0, 1)).outputs == 2


class Exports:
    def to_onnx(self):
        return as_hypothesis(LogisticRegression().fit(X, y), width=3).model.tobytes()


def test_what_exports_itself_is_asked_to():
    assert as_hypothesis(Exports(), width=3, classes=(0, 1)).outputs == 2


class Unknown:
    def predict(self, X):
        return X


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (3, "got int"),
        (Unknown(), "does not export to ONNX"),
        ("nowhere.onnx", "Cannot read"),
        (b"nothing", "Expected an ONNX model"),
    ],
)
def test_what_cannot_be_read_is_named(model, message):
    with pytest.raises(InputError, match=message):
        as_hypothesis(model, width=3, classes=(0, 1))


def test_another_width_is_found_out_before_anything_is_sent():
    with pytest.raises(InputError, match="rows of 5 features"):
        as_hypothesis(as_hypothesis(LogisticRegression().fit(X, y), width=3).model.tobytes(), width=5)


def test_our_own_forms_are_read_from_json_without_onnx(tmp_path, monkeypatch):
    model = linear([[1.0], [0.5], [-1.0]], [0.25])
    (tmp_path / "model.json").write_text(json.dumps(to_plain(model)))
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    for given in (tmp_path / "model.json", str(tmp_path / "model.json")):
        found = as_hypothesis(given, width=3, classes=(0, 1))
        assert np.array_equal(found.scores(X), model.scores(X))
        assert link_of(found) == "softmax"


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "[]",
        "{}",
        '{"form": []}',
        '{"form": "astrology"}',
        '{"form": "network"}',
        '{"form": "network", "activation": "relu", "depth": 2, "weights.0": [[1]], "bias.0": [0]}',
        '{"form": "network", "activation": "relu", "depth": 1, "weights.0": [[1], [2, 3]], "bias.0": [0]}',
        '{"form": "network", "activation": "relu", "depth": 1, "weights.0": [[NaN]], "bias.0": [0]}',
        '{"form": "network", "activation": "relu", "depth": "1", "weights.0": [[1]], "bias.0": [0]}',
        '{"form": "constant", "code": "one"}',
        '{"form": "onnx", "model": 3}',
        pytest.param("[" * 100_000, id="deep"),
    ],
)
def test_a_json_file_that_is_no_model_gets_a_sentence(text, tmp_path):
    (tmp_path / "model.json").write_text(text)
    with pytest.raises(InputError, match=r"model\.json"):
        as_hypothesis(tmp_path / "model.json", width=1, classes=(0, 1))
