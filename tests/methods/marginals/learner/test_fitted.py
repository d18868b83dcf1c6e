"""What a fit says of itself: enough to use it elsewhere."""

import json

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from privada.methods.marginals import MarginalFit, SyntheticTarget, from_plain

SOURCE = np.random.default_rng(0).normal(3.0, 2.0, size=(60, 2))
CODES = (SOURCE[:, 0] > 3).astype(int) * 2  # of three classes, the second does not occur


def fit_of(model, codes=CODES):
    mean, scale = SOURCE.mean(axis=0), SOURCE.std(axis=0)
    shares = np.eye(3)[codes] * 0.8 + 0.2 / 3
    made = SyntheticTarget(
        X=SOURCE, probabilities=shares, weights=np.linspace(0.5, 1.5, 60), guarantees=("ε = 1",)
    )
    fitted = model.fit((SOURCE - mean) / scale, codes)
    return MarginalFit(
        model=fitted, mean=mean, scale=scale, synthetic=made, releases=(), classes=("no", "maybe", "yes")
    )


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        MLPClassifier((4,), max_iter=400, random_state=0, tol=1e-2),
        RandomForestClassifier(3, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_plain_form_is_a_model_again(model):
    fit = fit_of(model)
    plain = json.loads(json.dumps(fit.to_dict()))
    again = from_plain(plain["hypothesis"])
    again.fits(2, 3)
    rows = np.random.default_rng(1).normal(3.0, 2.0, size=(40, 2))
    assert np.mean(again.codes(rows) == fit.codes(rows)) > 0.97


def test_a_model_of_one_class_is_written_too():
    fit = fit_of(DummyClassifier(), np.full(60, 1))
    assert from_plain(fit.to_dict()["hypothesis"]).codes(SOURCE).tolist() == [1] * 60


def test_the_plain_form_has_the_synthetic_target_with_its_guarantee():
    fit = fit_of(LogisticRegression())
    found = json.loads(json.dumps(fit.to_dict()))["synthetic_target"]
    assert found["guarantees"] == ["ε = 1"]
    assert found["weights"] == pytest.approx(fit.synthetic.weights)
    assert list(found["probabilities"]) == ["no", "maybe", "yes"]
    assert found["probabilities"]["yes"] == pytest.approx(fit.synthetic.probabilities[:, 2])
