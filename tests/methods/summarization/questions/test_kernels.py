"""Compiled loops: each record's result is a function of that record, summed in one order."""

import numpy as np

from privada.methods.summarization.questions import kernels

RNG = np.random.default_rng(0)
X, FREQUENCIES = RNG.normal(size=(50, 3)), RNG.normal(size=(7, 3))


def embedded(rows):
    features = np.empty((len(rows), 14))
    kernels.embed(np.ascontiguousarray(rows), FREQUENCIES, features)
    return features


def test_rows_are_cosines_and_sines_just_inside_the_unit_ball():
    phases = X @ FREQUENCIES.T
    expected = np.hstack([np.cos(phases), np.sin(phases)]) / np.sqrt(7)
    assert np.allclose(embedded(X), expected, atol=1e-11)
    assert np.linalg.norm(embedded(X), axis=1).max() <= 1
    assert np.array_equal(embedded(X)[::-1], embedded(X[::-1])), "wherever it stands"


def test_a_row_beyond_floats_has_phases_of_zero():
    far = embedded(np.array([[1e308, 1e308, 1e308]]))
    assert np.allclose(far[0, :7], 1 / np.sqrt(7))
    assert np.all(far[0, 7:] == 0)


def test_sums_are_whole_steps_truncated_row_by_row():
    features, sums = embedded(X), np.zeros(14, dtype=np.int64)
    kernels.add_truncated(sums, features, 1000.0)
    assert np.array_equal(sums, np.trunc(features * 1000.0).astype(np.int64).sum(axis=0))


def test_counts_and_scores_agree():
    features, direction, scores = embedded(X), RNG.normal(size=14), np.empty(50)
    kernels.score(features, direction, scores)
    assert np.allclose(scores, features @ direction)
    threshold = float(scores[3])
    assert kernels.count_beyond(features, direction, threshold) == np.sum(scores > threshold)
