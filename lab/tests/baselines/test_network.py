"""The three-layer target model."""

import numpy as np
import pytest

pytest.importorskip("torch")

from privada_lab.baselines.network import NetworkClassifier


def test_it_learns_what_no_line_separates_and_repeats_itself():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(200, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    models = [NetworkClassifier(steps=200).fit(X, y) for _ in range(2)]
    assert models[0].score(X, y) > 0.9
    assert np.array_equal(models[0].predict_proba(X), models[1].predict_proba(X))
    assert np.allclose(models[0].predict_proba(X).sum(axis=1), 1)
