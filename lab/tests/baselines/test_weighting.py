"""Importance weights for a labelled public set, privately."""

import warnings

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from privada.audit import replay
from privada.exceptions import InputError, RehearsalWarning, RelationError
from privada.parties import Rows, Schema
from privada.privacy import ZCDP, Gaussian, PureDP
from privada.privacy.bounds import Ball
from privada_lab.baselines import PrivateWeighting, TargetTrained, WeightingCoefficients
from privada_lab.baselines.private.weighting import TOLERANCE, minimised


@pytest.fixture
def shifted():
    """Public rows around 0; private ones around 0.5; the label's rule changes with the first feature."""
    rng = np.random.default_rng(0)
    public, private = rng.normal(0, 0.4, size=(600, 2)), rng.normal(0.5, 0.2, size=(600, 2))
    label = lambda X: (np.sign(X[:, 0]) * X[:, 1] > 0).astype(int)  # noqa: E731
    return public, label(public), private, label(private)


def fitted(shifted, **more):
    public, y, private, _ = shifted
    model = PrivateWeighting(norm_bound=1.0, insecure_seed=more.pop("seed", 0), **more)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RehearsalWarning)
        return model.fit(public, y, target=private)


def test_weights_make_the_public_rows_look_like_the_private_ones(shifted):
    public, y, private, truth = shifted
    model = fitted(shifted, epsilon=1000, regularisation=1e-3)
    assert np.all(np.average(public, axis=0, weights=model.weights_) > 0.2)
    assert model.score(private, truth) > TargetTrained().fit(public, y).score(private, truth) + 0.05


def test_the_minimiser_is_that_of_scikit_learn(shifted):
    public, _, private, _ = shifted
    weights = np.repeat([0.5 / 600, 0.5 / 600], 600)
    model = LogisticRegression(C=100, fit_intercept=False, tol=1e-10)
    model.fit(np.vstack([public, private]), np.repeat([0, 1], 600), sample_weight=weights)
    assert np.allclose(minimised(public, private, 600, 0.01), model.coef_[0], atol=1e-5)


@pytest.mark.parametrize("seed", [25, 122, 167, 289, 291, 389])
def test_the_minimiser_is_found_where_values_no_longer_tell_a_step_from_rounding(seed):
    """Heavy tails: steps that were shortened for the sake of a last bit never came near enough."""
    rng = np.random.default_rng(seed)
    d = 5 + seed % 20
    ball = Ball(radius=8.0)
    public = ball.clip(rng.standard_t(3, size=(200, d)))
    private = ball.clip(rng.standard_t(3, size=(60, d)) + 0.3 * rng.normal(size=d))
    found = minimised(public, private, 60, 0.01)
    miss = expit(np.r_[public @ found, -private @ found])
    pull = (0.5 / 200 * miss[:200]) @ public - (0.5 / 60 * miss[200:]) @ private
    assert np.linalg.norm(pull + 0.01 * found) <= 1e-9


def test_less_privacy_is_less_noise(shifted):
    public, _, private, _ = shifted
    inside = [rows / np.maximum(1, np.linalg.norm(rows, axis=1))[:, None] for rows in (public, private)]
    exact = minimised(*inside, 600, 0.01)
    off = [
        np.mean([np.linalg.norm(fitted(shifted, epsilon=e, seed=s).coef_ - exact) for s in range(8)])
        for e in (0.1, 1.0, 10.0)
    ]
    assert off[0] > 3 * off[1] > 9 * off[2] > 0


@pytest.mark.parametrize("regularisation", [0.01, 1.0])
def test_the_coefficients_move_no_further_than_the_noise_is_for(shifted, regularisation):
    """Replace one private row by one on the ball's rim: the move stays within the planned reach."""
    public, _, private, _ = shifted
    public, private = (rows / max(1, np.linalg.norm(rows, axis=1).max()) for rows in (public, private[:20]))
    question = WeightingCoefficients(
        public=public,
        size=20,
        norm_bound=1.0,
        regularisation=regularisation,
        guarantee=ZCDP(rho=1, relation="replace-one"),
    )
    draw = question.plan.draws["coef"]
    assert isinstance(draw, Gaussian)
    first, far = minimised(public, private, 20, regularisation), 0.0
    for angle in np.linspace(0, 2 * np.pi, 24):
        other = private.copy()
        other[0] = [np.cos(angle), np.sin(angle)]
        far = max(far, np.linalg.norm(minimised(public, other, 20, regularisation) - first))
    assert 0 < far <= draw.sensitivity


def test_noise_is_secure_unless_it_is_a_rehearsal_and_bad_input_is_named(shifted):
    public, y, private, _ = shifted
    model = PrivateWeighting(epsilon=1, norm_bound=1.0)
    assert not np.array_equal(*(model.fit(public, y, target=private).coef_ for _ in range(2)))
    assert str(model.guarantee_) == "ε = 1 (pure), replace-one row"
    with pytest.raises(InputError, match="Expected target"):
        model.fit(public, y)
    with pytest.raises(InputError, match="norm_bound"):
        PrivateWeighting(epsilon=1).fit(public, y, target=private)
    with pytest.raises(InputError, match="epsilon"):
        PrivateWeighting(norm_bound=1.0).fit(public, y, target=private)
    with pytest.raises(RelationError, match="replace-one"):
        WeightingCoefficients(
            public=public,
            size=9,
            norm_bound=1.0,
            regularisation=1.0,
            guarantee=PureDP(epsilon=1, relation="add/remove"),
        )


@pytest.mark.parametrize("norm_bound", [1e-3, 1.0, 1e3, 1e5])
def test_the_minimum_is_found_whatever_the_rows_are(norm_bound):
    rng = np.random.default_rng(0)
    public, claim = rng.normal(size=(9, 3)) * norm_bound, ZCDP(rho=0.5, relation="replace-one")
    schema = Schema.of_numbers(bounds=(-norm_bound, norm_bound), width=3, size=5)
    X = rng.uniform(-norm_bound, norm_bound, size=(5, 3))
    X[1] = 0.0
    for regularisation in (1e-2, 1.0, 100.0):
        question = WeightingCoefficients(
            public=public, size=5, norm_bound=norm_bound, regularisation=regularisation, guarantee=claim
        )
        other = np.vstack([[[0.0, 0.0, norm_bound]], X[1:]])
        found = replay(question, *(Rows(part, schema=schema) for part in (X, other)))
        assert found.passed, found


def test_objectives_that_floats_cannot_tell_are_refused():
    claim = ZCDP(rho=0.5, relation="replace-one")
    asked = {"public": np.zeros((1, 1)), "size": 5, "guarantee": claim}
    with pytest.raises(InputError, match="regularisation of at least"):
        WeightingCoefficients(norm_bound=1e160, regularisation=1e-2, **asked)
    assert WeightingCoefficients(norm_bound=10.0, regularisation=1e-2, **asked).tolerance == TOLERANCE
