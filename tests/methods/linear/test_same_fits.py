"""The shared descent fits what the three descents that it replaced fitted, for the same noise and settings.

`separate-descents.npz` holds the weights that were fitted before the descents became one. Softmax scores do
not change if all classes get the same weights added, so such weights are compared without their mean.
"""

from pathlib import Path

import numpy as np
import pytest

from privada.methods.marginals import MarginalClassifier, MarginalRegressor
from privada.methods.reweighting.learner.ladder import plan
from privada.methods.transport import TransportClassifier
from privada.parties import Number, Owner, Schema
from privada.parties.running import run
from privada.privacy import ApproxDP

FITS = Path(__file__).parent / "separate-descents.npz"
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
RNG = np.random.default_rng(7)
PUBLIC, PRIVATE = RNG.normal(size=(300, 4)) * [1, 50, 0.02, 3], RNG.normal(size=(900, 4)) * [1, 50, 0.02, 3]
SCORES = PRIVATE @ [1.0, 0.02, -30.0, 0.1]
BOUNDS = (-200.0, 200.0)
BUDGET = {"epsilon": 2.0, "delta": 1e-5}


def reweighted(base="linear", epsilon=2.0):
    guarantee = ApproxDP(epsilon=epsilon, delta=1e-5, relation="replace-one")
    labels = PUBLIC @ [1.0, 0.0, -20.0, 0.2] + np.sin(PUBLIC[:, 0])
    ladder = plan(PUBLIC, labels, size=900, guarantee=guarantee, label_bounds=(-20.0, 20.0), base=base)
    label = Number(name="y", low=-20.0, high=20.0)
    schema = Schema.of_numbers(bounds=BOUNDS, width=4, size=900, label=label)
    owner = Owner(
        PRIVATE,
        y=SCORES,
        schema=schema,
        dataset="t",
        budget=guarantee,
        accounting="gaussian",
        insecure_seed=0,
    )
    model = run(ladder.inquiry("t"), {"t": owner})
    return np.vstack([model.coef, model.intercept])


def marginal_classes(n_classes, **guarantee):
    codes = np.digitize(SCORES, np.quantile(SCORES, np.linspace(0, 1, n_classes + 1)[1:-1]))
    model = MarginalClassifier(
        classes=tuple(range(n_classes)), bounds=BOUNDS, size=900, insecure_seed=1, **guarantee
    ).fit(PRIVATE, codes, source=PUBLIC)
    return model.model_.weights


def marginal_numbers(**guarantee):
    model = MarginalRegressor(
        bounds=BOUNDS, label_bounds=(-20.0, 20.0), size=900, insecure_seed=2, **guarantee
    ).fit(PRIVATE, SCORES, source=PUBLIC)
    return model.model_.weights


def transported(n_classes, owners=1, **more):
    codes = np.digitize(SCORES, np.quantile(SCORES, np.linspace(0, 1, n_classes + 1)[1:-1]))
    model = TransportClassifier(
        classes=tuple(range(n_classes)), bounds=BOUNDS, insecure_seed=3, **BUDGET, **more
    )
    if owners == 1:
        return model.fit(PRIVATE, codes, Xt=PUBLIC).model_.adapted.weights
    domain = np.repeat([1, 2, -1], [600, 300, 300])
    labels = np.r_[codes, np.full(300, -1)]
    model.fit(np.vstack([PRIVATE, PUBLIC]), labels, sample_domain=domain)
    return model.model_.adapted.weights


FITTED = {
    "reweighting, numbers": reweighted,
    "reweighting, numbers, little noise": lambda: reweighted(epsilon=20.0),
    "marginals, two classes, replace-one": lambda: marginal_classes(2, relation="replace-one", **BUDGET),
    "marginals, three classes, add/remove": lambda: marginal_classes(3, rho=0.5, relation="add/remove"),
    "marginals, numbers, replace-one": lambda: marginal_numbers(relation="replace-one", **BUDGET),
    "marginals, numbers, add/remove": lambda: marginal_numbers(rho=0.5, relation="add/remove"),
    "transport, two classes": lambda: transported(2),
    "transport, three classes, two sources": lambda: transported(3, owners=2),
    "transport, three classes, two components": lambda: transported(3, n_components=2),
}


@pytest.mark.parametrize("name", FITTED)
def test_the_same_noise_gives_the_same_weights(name):
    weights = FITTED[name]()
    if weights.shape[1] > 1:
        weights = weights - weights.mean(axis=1, keepdims=True)
    with np.load(FITS) as fits:
        np.testing.assert_allclose(weights, fits[name], rtol=1e-4, atol=1e-5 * np.abs(fits[name]).max())
