"""Models of public rows alone."""

import numpy as np
import pytest

from privada_lab.baselines.public import PublicLogistic, PublicRidge, PublicScale, whiten


def test_ridge_is_in_the_features_own_units():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)) * [1, 100, 0.01] + [5, 0, 1]
    y = X @ [1.0, 0.02, 300.0] + 2 + 0.1 * rng.normal(size=400)
    model = PublicRidge.fit(X, y)
    assert model.coef == pytest.approx([1.0, 0.02, 300.0], rel=0.05)
    assert model.residual == pytest.approx(0.1, rel=0.15)
    assert np.mean((model.predict(X) - y) ** 2) == pytest.approx(model.residual**2)


def test_scaled_rows_lie_in_a_ball_and_constants_do_no_harm():
    X = np.column_stack([np.arange(10.0), np.ones(10), np.full(10, 3.0)])
    scale = PublicScale.of(X)
    rows = scale.rows(np.vstack([X, [[1e9, 1e9, 0.0]]]))
    assert np.linalg.norm(rows, axis=1).max() <= scale.radius == np.sqrt(3)
    assert np.isfinite(whiten(X)[1]).all()


def test_logistic_knows_classes_in_any_order_and_ones_that_it_never_saw():
    rng = np.random.default_rng(0)
    y = np.repeat(["b", "a"], 100)
    X = rng.normal(size=(200, 2)) + np.where(y == "b", 2, -2)[:, None]
    model = PublicLogistic(classes=("c", "b", "a")).fit(X, y)
    chances = model.predict_proba([[2.0, 2.0], [-2.0, -2.0]])
    assert chances[:, 0].tolist() == [0, 0]
    assert chances[0, 1] > 0.9 < chances[1, 2]
    assert model.predict([[2.0, 2.0], [-2.0, -2.0]]).tolist() == ["b", "a"]
    alone = PublicLogistic(classes=("a", "b")).fit(X[:3], ["b"] * 3)
    assert alone.predict(X[:2]).tolist() == ["b", "b"]
