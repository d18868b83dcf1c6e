"""Both sides in one process."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression

from privada import Category, CellClassifier, Number, Owner, PureDP, ReweightedClassifier, Schema
from privada.exceptions import InputError
from privada.methods.evaluation import Classification, PrivateEvaluator, Regression, evaluate
from privada.methods.hypotheses import Constant

RNG = np.random.default_rng(4)
X = RNG.uniform(size=(600, 2))
y = np.array(["no", "yes"])[(X.sum(axis=1) + RNG.normal(0, 0.2, 600) > 1).astype(int)]
MODEL = LogisticRegression().fit(X, y)


def test_a_classifier_is_evaluated_with_words_as_classes():
    found = evaluate(MODEL, X, y, classes=("no", "yes"), bounds=(0, 1), epsilon=20.0)
    assert isinstance(found, Classification)
    assert found.accuracy.value == pytest.approx(MODEL.score(X, y), abs=0.02)
    turned = evaluate(MODEL, X, y, classes=("yes", "no"), bounds=(0, 1), epsilon=20.0)
    assert turned.accuracy.value == pytest.approx(MODEL.score(X, y), abs=0.02)


def test_a_regressor_is_evaluated():
    numbers = X.sum(axis=1)
    judge = PrivateEvaluator(
        LinearRegression().fit(X, numbers), label_bounds=(0, 2), bounds=(0, 1), epsilon=50.0
    )
    found = judge.fit(X, numbers).evaluation_
    assert isinstance(found, Regression)
    assert -0.05 < judge.score() <= 0


def test_the_old_name_of_the_bound_still_works():
    with pytest.warns(DeprecationWarning, match="largest= is now max_squared_error="):
        judge = PrivateEvaluator(MODEL, label_bounds=(0, 2), bounds=(0, 1), largest=1.5, epsilon=1.0)
    assert judge.max_squared_error == 1.5


def test_a_score_is_what_was_paid_for():
    judge = PrivateEvaluator(MODEL, classes=("no", "yes"), bounds=(0, 1), epsilon=1.0)
    with pytest.raises(NotFittedError):
        judge.score()
    judge.fit(X, y)
    assert judge.score() == judge.evaluation_.accuracy.value
    assert clone(judge).get_params()["epsilon"] == 1.0
    assert judge.guarantee_ == judge.release_.guarantee


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bounds": None}, "bounds"),
        ({"classes": None}, "classes of a classifier, or label_bounds"),
        ({"label_bounds": (0, 1)}, "one of both"),
        ({"epsilon": None}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"bins": 0}, "bins"),
        ({"positive": "maybe"}, "positive to be one of"),
        ({"classes": ("no", "never")}, "class 'yes' that is not among"),
        ({"confidence": 2.0}, "confidence"),
        ({"model": None}, "got NoneType"),
        ({"model": Constant(code=5), "bins": 1}, "code below 2"),
    ],
)
def test_wrong_settings_are_named_before_anything_is_charged(change, message):
    settings = {"model": MODEL, "classes": ("no", "yes"), "bounds": (0, 1), "epsilon": 1.0} | change
    with pytest.raises(InputError, match=message):
        PrivateEvaluator(settings.pop("model"), **settings).fit(X, y).evaluation_.accuracy


def test_an_owner_is_asked_in_the_place_of_rows():
    schema = Schema.of_numbers(bounds=(0, 1), width=2, label=Category(name="y", values=("no", "yes")))
    budget = PureDP(epsilon=50.0, relation="add/remove")
    clinic = Owner(X, y=y, schema=schema, dataset="patients", budget=budget)
    found = evaluate(MODEL, owner=clinic, epsilon=20.0)
    assert found.accuracy.value == pytest.approx(MODEL.score(X, y), abs=0.02)
    assert found.classes == ("no", "yes")
    assert clinic.ledger.spent("patients").epsilon == 20.0
    with pytest.raises(InputError, match="beside owner="):
        evaluate(MODEL, X, y, owner=clinic, epsilon=1.0)


def test_rows_that_do_not_fit_are_refused():
    judge = PrivateEvaluator(MODEL, classes=("no", "yes"), bounds=(0, 1), epsilon=1.0)
    for rows, labels in ((X[:, 0], y), (X[:, :1], y), (X, np.append(y[:-1], "maybe")), (X * np.nan, y)):
        with pytest.raises(InputError):
            judge.fit(rows, labels)


def test_columns_of_a_frame_are_those_of_the_model_in_any_order():
    pd = pytest.importorskip("pandas")
    X = np.random.default_rng(5).uniform(size=(900, 2))
    frame, y = pd.DataFrame(X, columns=["a", "b"]), (X[:, 0] > 0.5).astype(int)
    about = {"classes": (0, 1), "bounds": (0, 1), "epsilon": 2}
    model = CellClassifier([[0.2, 0.5], [0.8, 0.5]], **about).fit(frame, y)
    assert evaluate(model, frame[["b", "a"]], y, **about).accuracy.value > 0.95
    with pytest.raises(InputError, match="missing: 'b'"):
        evaluate(model, frame[["a"]], y, **about)
    label = Category(name="label", values=(0, 1))
    columns = [Number(name=name, low=0, high=1) for name in ("b", "a")]
    budget = PureDP(epsilon=9, relation="add/remove")
    owner = Owner(X, y=y, schema=Schema(columns=columns, label=label), dataset="rows", budget=budget)
    with pytest.raises(InputError, match="in the order in which the model was fitted"):
        evaluate(model, owner=owner, epsilon=1)
    assert owner.ledger.spent("rows") is None


def test_text_and_missing_values_by_a_schema():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(6)
    frame = pd.DataFrame({"ward": rng.choice(["a", "b"], 900), "age": rng.uniform(0, 90, 900)})
    frame.loc[::9, "age"] = np.nan
    y = (frame["ward"] == "b").astype(int).to_numpy()
    columns = [Category(name="ward", values=("a", "b")), Number(name="age", low=0, high=90, missing=True)]
    schema = Schema(columns=columns)
    model = ReweightedClassifier(epsilon=2, delta=1e-5, base="linear", schema=schema)
    model.fit(frame[:300], y[:300], frame[300:600], y[300:600])
    found = evaluate(model, frame[600:][["age", "ward"]], y[600:], classes=(0, 1), schema=schema, epsilon=2)
    assert found.accuracy.value > 0.9
