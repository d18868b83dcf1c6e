"""Evaluation in studies: the model of a file, asked for at an owner."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from privada import Category, CellClassifier, Number, PureDP, Schema
from privada._toml import Section
from privada.exceptions import StudyError
from privada.methods.evaluation import as_hypothesis
from privada.methods.evaluation.method import Evaluation

RNG = np.random.default_rng(1)
X = RNG.uniform(size=(200, 2))
CLASSES = ("well", "ill", "cured")
SCHEMA = Schema.of_numbers(bounds=(0, 1), width=2, label=Category(name="outcome", values=CLASSES))
PURE = PureDP(epsilon=1.0, relation="add/remove")


@pytest.fixture
def home(tmp_path):
    y = np.array(CLASSES)[(X[:, 0] > 0.3).astype(int) + (X[:, 1] > 0.6)]
    classifier = as_hypothesis(LogisticRegression().fit(X, y), width=2, classes=CLASSES)
    (tmp_path / "model.onnx").write_bytes(classifier.model.tobytes())
    regressor = as_hypothesis(LinearRegression().fit(X, X[:, 0]), width=2)
    (tmp_path / "regressor.onnx").write_bytes(regressor.model.tobytes())
    return tmp_path


def read(text, home, schema=SCHEMA, seed=0):
    section = Section.parse(f"[method]\nname = 'evaluation'\n{text}", name="study.toml").section("method")
    section.string("name")
    return Evaluation.inquire(section, schemas={"clinic": schema}, guarantee=PURE, home=home, seed=seed)


def test_a_model_is_asked_about_with_the_settings_of_the_table(home):
    (asked,) = read("model = 'model.onnx'\nbins = 4\npositive = 'ill'\nconfidence = 0.9", home).asks
    assert asked.owner == "clinic"
    assert asked.question.positive == 1
    assert asked.question.edges.tolist() == [0.25, 0.5, 0.75]
    assert asked.question.hypothesis.outputs == 3


def test_a_seed_has_nothing_to_draw(home):
    first, second = (read("model = 'model.onnx'", home, seed=seed).asks[0] for seed in (0, 1))
    assert first.question == second.question


def test_a_number_is_predicted_by_a_regressor(home):
    schema = Schema.of_numbers(bounds=(0, 1), width=2, label=Number(name="y", low=0, high=2))
    (asked,) = read("model = 'regressor.onnx'", home, schema=schema).asks
    assert asked.question.largest == 4.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"line 1, method.model: expected a string"),
        ("model = 'none.onnx'", r"line 3, method.model: Cannot read none.onnx"),
        ("model = 'model.onnx'\nbins = 0", r"line 4, method.bins: Expected bins"),
        ("model = 'model.onnx'\npositive = 'maybe'", r"line 4, method.positive: Expected positive"),
        ("model = 'model.onnx'\npositive = 2.5", r"line 4, method.positive: expected a class"),
        ("model = 'model.onnx'\nconfidence = 2", r"line 4, method.confidence: Expected confidence"),
        ("model = 'model.onnx'\nowner = 'shop'", r"line 4, method.owner: no owner named 'shop'"),
        ("model = 'model.onnx'\ncolour = 1", r"line 4, method.colour: nobody knows this key"),
    ],
)
def test_wrong_keys_are_named_with_their_line(home, text, message):
    with pytest.raises(StudyError, match=message):
        read(text, home)


def test_a_model_that_an_estimator_was_saved_to_is_asked_about(home):
    y = np.array(CLASSES)[(X[:, 0] > 0.3).astype(int) + (X[:, 1] > 0.6)]
    model = CellClassifier([[0.1, 0.5], [0.5, 0.5]], classes=CLASSES[::-1], bounds=(0, 1), epsilon=1)
    model.fit(X, y).save(home / "model.privada")
    (asked,) = read("model = 'model.privada'", home).asks
    names = np.array(CLASSES)[asked.question.hypothesis.scores(X).argmax(axis=1)]
    assert np.array_equal(names, model.predict(X))
    (home / "model.privada").write_bytes(b"nothing")
    with pytest.raises(StudyError, match=r"line 3, method.model: Cannot read the model model.privada"):
        read("model = 'model.privada'", home)


def test_the_old_name_of_the_bound_still_works(home):
    schema = Schema.of_numbers(bounds=(0, 1), width=2, label=Number(name="y", low=0, high=2))
    with pytest.warns(DeprecationWarning, match="largest= is now max_squared_error="):
        inquiry = read("model = 'regressor.onnx'\nlargest = 1.5", home, schema=schema)
    assert inquiry.asks[0].question.largest == 1.5
    assert inquiry.forecast.measure.startswith("half the width of the squared error's interval")
    with pytest.raises(StudyError, match=r"line 4, method.max_squared_error: Expected max_squared_error > 0"):
        read("model = 'regressor.onnx'\nmax_squared_error = 0", home, schema=schema)


def test_an_owner_without_a_label_is_named(home):
    with pytest.raises(StudyError, match="schema has a label"):
        read("model = 'model.onnx'", home, schema=Schema.of_numbers(bounds=(0, 1), width=2))
