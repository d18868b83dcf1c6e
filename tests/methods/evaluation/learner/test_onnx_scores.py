"""ONNX of other exporters is cut down to scores in the public order."""

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper
from skl2onnx import to_onnx
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from privada.exceptions import InputError
from privada.methods.evaluation.learner.onnx_scores import class_names, cut_to_scores
from privada.methods.hypotheses import Onnx

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 2)).astype(np.float32)
NAMES = np.array(["well", "ill", "cured"])
y = NAMES[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)]


def scores(blob, rows=X[:20]):
    session = ort.InferenceSession(blob, providers=["CPUExecutionProvider"])
    (only,) = session.get_outputs()
    assert only.type == "tensor(float)"
    return np.vstack([session.run(None, {session.get_inputs()[0].name: row[None]})[0] for row in rows])


@pytest.mark.parametrize(
    "model", [LogisticRegression(), RandomForestClassifier(5, max_depth=3), GaussianNB()]
)
@pytest.mark.parametrize("zipmap", [True, False])
def test_models_with_words_as_classes_are_run_by_owners(model, zipmap):
    fitted = model.fit(X, y)
    blob = to_onnx(fitted, X[:1], options={id(fitted): {"zipmap": zipmap}}).SerializeToString()
    public = ("well", "ill", "cured", "unknown")
    cut = cut_to_scores(blob, public)
    order = [public.index(name) for name in fitted.classes_]
    found = scores(cut)
    assert found.shape == (20, 4)
    assert np.allclose(found[:, order], fitted.predict_proba(X[:20]), atol=1e-5)
    assert np.all(found[:, 3] == 0)
    hypothesis = Onnx(model=np.frombuffer(cut, dtype=np.uint8), outputs=4)
    hypothesis.fits_scores(2, 4)
    assert np.allclose(hypothesis.scores(X[:20].astype(float)), found, atol=1e-6)


def test_cutting_again_changes_nothing():
    fitted = LogisticRegression().fit(X, y)
    once = cut_to_scores(to_onnx(fitted, X[:1]).SerializeToString(), NAMES.tolist())
    assert np.array_equal(scores(cut_to_scores(once, NAMES.tolist())), scores(once))


def test_a_class_that_is_not_public_is_named():
    fitted = LogisticRegression().fit(X, y)
    blob = to_onnx(fitted, X[:1]).SerializeToString()
    with pytest.raises(InputError, match="class 'cured' that is not among the public classes"):
        cut_to_scores(blob, ("well", "ill"))


def test_numbers_are_classes_too():
    fitted = LogisticRegression().fit(X, np.where(y == "ill", 7, 3))
    made = to_onnx(fitted, X[:1], options={id(fitted): {"zipmap": False}})
    assert class_names(made) == [3, 7]
    found = scores(cut_to_scores(made.SerializeToString(), (7, 3)))
    assert np.allclose(found[:, ::-1], fitted.predict_proba(X[:20]), atol=1e-5)


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
