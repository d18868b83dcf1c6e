"""Classifiers on the wire: the same decisions, or a refusal before anything is charged."""

import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC

from privada import Owner, Schema, run
from privada.exceptions import InputError
from privada.methods.marginals import CellCounts, ErrorTables, Network, Onnx, Public, of_classifier
from privada.methods.marginals.learner import classifiers
from privada.parties import Category
from privada.privacy import PureDP

PURE = PureDP(epsilon=4, relation="add/remove")
WIDTH = 3
MEAN, SCALE = np.array([0.1, 0.0, -0.2]), np.array([1.0, 2.0, 0.5])
LINEAR = [
    LogisticRegression(),
    LinearSVC(),
    RidgeClassifier(),
    SGDClassifier(random_state=0),
    Perceptron(random_state=0),
    MLPClassifier((6,), max_iter=60, random_state=0),
]
VOTES = [SVC(kernel="linear"), NuSVC(kernel="linear", nu=0.2), SVC()]


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(3).normal(MEAN, SCALE, size=(400, WIDTH))


def labelled(rows, codes):
    """Labels that are some of the class codes, by a slanted direction."""
    side = ((rows - MEAN) / SCALE) @ [1.0, -0.7, 0.4]
    return np.array(codes)[np.searchsorted(np.quantile(side, np.arange(1, len(codes)) / len(codes)), side)]


def fitted(model, rows, codes):
    return model.fit((rows - MEAN) / SCALE, labelled(rows, codes))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("codes", [(0, 1), (0, 1, 2), (0, 2), (1, 2)], ids=str)
@pytest.mark.parametrize("model", LINEAR, ids=lambda model: type(model).__name__)
def test_linear_classifiers_and_networks_keep_their_decisions(rows, model, codes):
    made = of_classifier(fitted(model, rows, codes), mean=MEAN, scale=SCALE, n_classes=max(codes) + 1)
    assert isinstance(made, Network)
    made.fits(WIDTH, max(codes) + 1)
    assert np.array_equal(made.codes(rows), model.predict((rows - MEAN) / SCALE))


@pytest.mark.parametrize("codes", [(0, 1), (0, 1, 2), (0, 2)], ids=str)
def test_classes_that_were_not_met_are_never_said(rows, codes):
    made = of_classifier(fitted(LogisticRegression(), rows, codes), mean=MEAN, scale=SCALE, n_classes=5)
    made.fits(WIDTH, 5)
    assert set(made.codes(10 * rows)) == set(codes)


def test_codes_beyond_the_classes_are_refused(rows):
    with pytest.raises(InputError, match=r"class codes below 2, got a classifier of \[0, 2\]"):
        of_classifier(fitted(LogisticRegression(), rows, (0, 2)), mean=MEAN, scale=SCALE, n_classes=2)


@pytest.mark.parametrize("model", VOTES, ids=str)
def test_votes_of_pairs_of_classes_are_not_read_as_scores(rows, model):
    made = of_classifier(fitted(model, rows, (0, 1, 2)), mean=MEAN, scale=SCALE, n_classes=3)
    assert isinstance(made, Onnx)
    assert np.mean(made.codes(rows) == model.predict((rows - MEAN) / SCALE)) > 0.98


@pytest.mark.parametrize("codes", [(0, 2), (1, 2)], ids=str)
def test_onnx_says_codes_although_a_class_was_not_met(rows, codes):
    forest = fitted(RandomForestClassifier(5, random_state=0), rows, codes)
    made = of_classifier(forest, mean=MEAN, scale=SCALE, n_classes=3, rows=rows)
    made.fits(WIDTH, 3)
    assert np.mean(made.codes(rows) == forest.predict((rows - MEAN) / SCALE)) > 0.98


class Contrary(LogisticRegression):
    """Looks linear, and says the other class."""

    def predict(self, X):
        return 1 - super().predict(X)


def test_a_classifier_that_is_not_what_its_parameters_say_is_refused(rows):
    model = fitted(Contrary(), rows, (0, 1))
    with pytest.raises(InputError, match="Contrary cannot travel to an owner"):
        of_classifier(model, mean=MEAN, scale=SCALE)


def test_onnx_that_says_something_else_is_refused(rows, monkeypatch):
    model = fitted(GradientBoostingClassifier(n_estimators=2), rows, (0, 1))
    monkeypatch.setattr(Onnx, "codes", lambda self, X: np.zeros(len(X), dtype=np.int64))
    with pytest.raises(InputError, match="as ONNX it agrees with itself on .*% of public rows"):
        of_classifier(model, mean=MEAN, scale=SCALE)


def heard(model, rounds, classes=(0, 1)):
    """What came of asking with this classifier, and what the owner has charged."""
    rng = np.random.default_rng(0)
    X, source = rng.uniform(size=(300, 2)), rng.uniform(size=(120, 2))
    label = Category(name="label", values=classes)
    schema = Schema.of_numbers(bounds=(0.0, 1.0), width=2, size=300, label=label)
    owner = Owner(X, y=(X[:, 0] > 0.5).astype(int), schema=schema, dataset="rows", budget=PURE)
    public = Public(source=source, classes=classes, classifier=model)
    question = ErrorTables(rounds=rounds) if rounds > 1 else CellCounts()
    try:
        return run(question.inquiry("o", public, guarantee=PURE, size=300), {"o": owner}), len(
            list(owner.ledger.lines("rows"))
        ) - 1
    except InputError as error:
        return str(error), len(list(owner.ledger.lines("rows"))) - 1


@pytest.mark.parametrize("model", [None, LogisticRegression()], ids=str)
def test_rounds_go_on_when_a_class_does_not_occur(model):
    """The third class is announced and absent, so the model of the first round may lack it."""
    fit, charged = heard(model, 2, classes=(0, 1, 2))
    assert charged == 2
    assert len(fit.hypotheses) == 2


@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("mlp", "scikit-learn classifier, got 'mlp'"),
        (LogisticRegression, "scikit-learn classifier, got <class"),
        (StandardScaler(), "scikit-learn classifier, got StandardScaler"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "sample_weight.* Pipeline .*last step"),
        (KNeighborsClassifier(), "sample_weight.* KNeighborsClassifier"),
        (MultinomialNB(), "made-up labels; MultinomialNB says: Negative values"),
    ],
    ids=str,
)
def test_what_cannot_be_trained_is_refused_before_anything_is_charged(model, message, rounds):
    said, charged = heard(model, rounds)
    assert charged == 0
    assert re.search(message, said)


@pytest.mark.parametrize("model", [GaussianNB(), BernoulliNB()], ids=str)
def test_naive_bayes_travels(model):
    fit, charged = heard(model, 2)
    assert charged == 2
    assert len(fit.hypotheses) == 2


@pytest.mark.parametrize(
    "model",
    [AdaBoostClassifier(n_estimators=3), HistGradientBoostingClassifier(max_iter=3)],
    ids=lambda model: type(model).__name__,
)
def test_what_cannot_travel_is_refused_before_anything_is_charged(model):
    said, charged = heard(model, 2)
    assert charged == 0
    assert f"{type(model).__name__} cannot travel to an owner" in said
    fit, charged = heard(model, 1)  # one round submits nothing
    assert charged == 1
    assert fit.to_dict()["hypothesis"]["form"] == "none"


SEEN = []


class Recorder(ClassifierMixin, BaseEstimator):
    """Remembers what it was fitted to."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        self.classes_, self.draw_ = np.unique(y), np.random.default_rng(self.random_state).normal()
        SEEN.append((len(X), set(y), self.random_state))
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=np.int64)


def test_a_trial_has_all_classes_few_rows_and_a_seed_of_its_own():
    source = np.random.default_rng(0).normal(size=(5000, 2))
    SEEN.clear()
    about = {"mean": source.mean(axis=0), "scale": source.std(axis=0), "travels": False}
    classifiers.check_classifier(Recorder(), source, n_classes=3, **about)
    classifiers.check_classifier(Recorder(), source[:1], n_classes=3, **about)
    assert len(SEEN) == 1
    assert SEEN[0] == (100, {0, 1, 2}, 0)
