"""Smoothing over a graph: what it must keep, and what it is for."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from privada.exceptions import InputError
from privada_lab.baselines import LabelPropagation, propagate


def moons():
    X, y = make_moons(400, noise=0.06, random_state=0)
    return X, y


def test_two_labels_reach_two_moons():
    X, y = moons()
    known = np.zeros((400, 2))
    for label in (0, 1):
        known[np.flatnonzero(y == label)[0], label] = 1
    found = propagate(X, known, alpha=0.99)
    assert (found.argmax(axis=1) == y).mean() > 0.97


def test_noisy_probabilities_get_better():
    X, y = moons()
    flipped = np.where(np.random.default_rng(0).uniform(size=400) < 0.3, 1 - y, y)
    found = propagate(X, np.eye(2)[flipped])
    assert (found.argmax(axis=1) == y).mean() > 0.95 > (flipped == y).mean()


def test_it_solves_the_system():
    from privada_lab.baselines.propagation import _factored, _similarity

    X, _ = moons()
    P = np.random.default_rng(1).uniform(size=(400, 3))
    S = _similarity(X, 10)
    F = _factored(S, 0.8).solve(0.2 * P)
    assert pytest.approx(0.2 * P, abs=1e-12) == F - 0.8 * (S @ F)
    assert np.abs(np.linalg.eigvalsh(S.toarray())).max() <= 1 + 1e-9
    assert (F >= 0).all()


def test_alpha_zero_one_point_duplicates_and_ignorance():
    P = np.array([[0.2, 0.8], [0.9, 0.1]])
    assert propagate([[0.0], [1.0]], P, alpha=0) == pytest.approx(P)
    assert propagate([[0.0]], [[0.0, 2.0]]) == pytest.approx(np.array([[0.0, 1.0]]))
    same = propagate(np.zeros((5, 2)), np.eye(2)[[0, 0, 0, 1, 1]], n_neighbors=4)
    assert np.isfinite(same).all()
    assert propagate([[0.0], [1.0]], np.zeros((2, 4))) == pytest.approx(np.full((2, 4), 0.25))


def test_the_face_keeps_the_order_and_repeats():
    X, y = moons()
    model = LabelPropagation(classes=("up", "down")).fit(X, np.eye(2)[y])
    assert np.array_equal(model.predict(X), np.array(["up", "down"])[y])
    assert np.array_equal(model.probabilities_, LabelPropagation().fit(X, np.eye(2)[y]).probabilities_)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": 1.0}, "alpha"),
        ({"alpha": -0.1}, "alpha"),
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"probabilities": np.ones((3, 2))}, "one row of probabilities"),
        ({"probabilities": -np.ones((2, 2))}, "none negative"),
        ({"points": [[np.nan], [0.0]]}, "finite"),
    ],
)
def test_bad_input_is_named(change, message):
    good = {"points": [[0.0], [1.0]], "probabilities": np.ones((2, 2))}
    with pytest.raises(InputError, match=message):
        propagate(**(good | change))
