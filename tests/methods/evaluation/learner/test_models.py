"""Models of any kind become hypotheses; ONNX is reduced to scores in the public order."""

import json
import sys

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper
from skl2onnx import to_onnx
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from privada.exceptions import InputError
from privada.methods.evaluation import as_hypothesis
from privada.methods.evaluation.learner.models import class_names, cut_to_scores, link_of
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


RNG = np.random.default_rng(0)
X_ONNX_SCORES = RNG.normal(size=(150, 2)).astype(np.float32)
NAMES = np.array(["well", "ill", "cured"])
y_onnx_scores = NAMES[(X_ONNX_SCORES[:, 0] > 0).astype(int) + (X_ONNX_SCORES[:, 1] > 0.5)]


def scores(blob, rows=X_ONNX_SCORES[:20]):
    session = ort.InferenceSession(blob, providers=["CPUExecutionProvider"])
    (only,) = session.get_outputs()
    assert only.type == "tensor(float)"
    return np.vstack([session.run(None, {session.get_inputs()[0].name: row[None]})[0] for row in rows])


@pytest.mark.parametrize(
    "model", [LogisticRegression(), RandomForestClassifier(5, max_depth=3), GaussianNB()]
)
@pytest.mark.parametrize("zipmap", [True, False])
def test_models_with_words_as_classes_are_run_by_owners(model, zipmap):
    fitted = model.fit(X_ONNX_SCORES, y_onnx_scores)
    blob = to_onnx(fitted, X_ONNX_SCORES[:1], options={id(fitted): {"zipmap": zipmap}}).SerializeToString()
    public = ("well", "ill", "cured", "unknown")
    cut = cut_to_scores(blob, public)
    order = [public.index(name) for name in fitted.classes_]
    found = scores(cut)
    assert found.shape == (20, 4)
    assert np.allclose(found[:, order], fitted.predict_proba(X_ONNX_SCORES[:20]), atol=1e-5)
    assert np.all(found[:, 3] == 0)
    hypothesis = Onnx(model=np.frombuffer(cut, dtype=np.uint8), outputs=4)
    hypothesis.fits_scores(2, 4)
    assert np.allclose(hypothesis.scores(X_ONNX_SCORES[:20].astype(float)), found, atol=1e-6)


def test_cutting_again_changes_nothing():
    fitted = LogisticRegression().fit(X_ONNX_SCORES, y_onnx_scores)
    once = cut_to_scores(to_onnx(fitted, X_ONNX_SCORES[:1]).SerializeToString(), NAMES.tolist())
    assert np.array_equal(scores(cut_to_scores(once, NAMES.tolist())), scores(once))


def test_a_class_that_is_not_public_is_named():
    fitted = LogisticRegression().fit(X_ONNX_SCORES, y_onnx_scores)
    blob = to_onnx(fitted, X_ONNX_SCORES[:1]).SerializeToString()
    with pytest.raises(InputError, match="class 'cured' that is not among the public classes"):
        cut_to_scores(blob, ("well", "ill"))


def test_numbers_are_classes_too():
    fitted = LogisticRegression().fit(X_ONNX_SCORES, np.where(y_onnx_scores == "ill", 7, 3))
    made = to_onnx(fitted, X_ONNX_SCORES[:1], options={id(fitted): {"zipmap": False}})
    assert class_names(made) == [3, 7]
    found = scores(cut_to_scores(made.SerializeToString(), (7, 3)))
    assert np.allclose(found[:, ::-1], fitted.predict_proba(X_ONNX_SCORES[:20]), atol=1e-5)


def test_a_model_of_codes_alone_has_no_scores():
    nodes = [helper.make_node("ArgMax", ["x"], ["y"], axis=1, keepdims=0)]
    rows = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])
    codes = helper.make_tensor_value_info("y", TensorProto.INT64, ["n"])
    made = helper.make_model(helper.make_graph(nodes, "g", [rows], [codes]))
    assert cut_to_scores(made.SerializeToString()) is None


@pytest.mark.parametrize("blob", [b"no model", onnx.ModelProto().SerializeToString() + b"\x08\x08"])
def test_what_is_no_model_is_refused(blob):
    with pytest.raises(InputError, match="Expected an ONNX model"):
        cut_to_scores(blob)
