"""Public features: what scikit-learn says, as numbers, one record at a time."""

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

from privada.methods.reweighting.example import example
from privada.methods.reweighting.learner import public_models
from privada.methods.reweighting.learner.public_models import fit_source
from privada.privacy.release import Question

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, -3.0]


def labels(kinds):
    score = np.sin(X[:, 0]) + X[:, 1] / 10 + 0.1 * RNG.normal(size=len(X))
    return score if not kinds else np.digitize(score, np.quantile(score, np.arange(1, kinds) / kinds))


def test_numbers_are_those_of_scikit_learn():
    y = labels(0)
    features = fit_source(X, y, n_classes=0, limits=(-99.0, 99.0)).features
    found = features.extend(X)[:, features.columns :]
    boosted = HistGradientBoostingRegressor(
        max_iter=100, min_samples_leaf=15, early_stopping=False, random_state=0, **public_models.BOOSTED
    ).fit(X, y)
    forest = ExtraTreesRegressor(random_state=0, **public_models.FOREST).fit(X, y)
    reach = features.reach
    for at, model in ((1, boosted), (2, forest)):
        gap = np.clip(model.predict(X) - found[:, 0], -reach[at], reach[at])
        assert found[:, at] == pytest.approx(found[:, 0] + gap, abs=1e-5)
    assert np.mean((found.mean(axis=1) - y) ** 2) < 0.1 * np.var(y)


@pytest.mark.parametrize("kinds", [2, 4])
def test_probabilities_are_those_of_scikit_learn(kinds):
    y = labels(kinds)
    features = fit_source(X, y, n_classes=kinds, limits=None).features
    found = features.extend(X)[:, features.columns :].reshape(len(X), 3, -1)
    rounds = 100 if kinds == 2 else 50
    model = HistGradientBoostingClassifier(
        max_iter=rounds, min_samples_leaf=15, early_stopping=False, random_state=0, **public_models.BOOSTED
    ).fit(X, y)
    wanted = model.predict_proba(X)
    assert found[:, 1] == pytest.approx(wanted[:, 1:] if kinds == 2 else wanted, abs=1e-5)
    if kinds > 2:
        assert found.sum(axis=2) == pytest.approx(1.0)


@pytest.mark.parametrize("present", [(0, 2), (1,), (0, 1, 3)])
def test_classes_that_no_public_row_has_are_unlikely(present):
    y = np.array(present)[RNG.integers(len(present), size=len(X))]
    features = fit_source(X, y, n_classes=4, limits=None).features
    found = features.extend(X)[:, features.columns :].reshape(len(X), -1, 4)
    absent = np.setdiff1d(np.arange(4), present)
    assert found[:, :, absent].max() < 0.1
    assert found.sum(axis=2) == pytest.approx(1.0)


def test_a_record_decides_its_own_features_alone():
    features = fit_source(X, labels(0), n_classes=0, limits=None).features
    whole = features.extend(X)
    alone = np.vstack([features.extend(X[i : i + 1]) for i in range(20)])
    assert np.array_equal(whole[:20], alone)


def test_questions_with_features_travel():
    for question in example().questions:
        assert Question.from_bytes(question.to_bytes()) == question
