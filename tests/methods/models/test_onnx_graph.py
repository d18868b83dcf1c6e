"""Steps of graphs, each beside NumPy."""

import numpy as np
import onnxruntime as ort
import pytest

from privada.exceptions import InputError
from privada.methods.models.onnx_graph import OnnxGraph, add_trees

X = np.random.default_rng(0).normal(size=(30, 3))


def value(build, rows=X):
    graph = OnnxGraph(rows.shape[1])
    blob = graph.finish({"found": build(graph, graph.rows)}, {})
    session = ort.InferenceSession(blob, providers=["CPUExecutionProvider"])
    return session.run(None, {"X": rows})[0]


def test_rows_are_shortened_to_a_ball():
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    assert np.allclose(value(lambda g, x: g.into_ball(x, 1.0)), X * np.minimum(1, 1 / norms))
    assert np.allclose(value(lambda g, x: g.into_ball(x, 1.0), 0 * X), 0)


def test_shares_of_nothing_are_equal():
    rows = np.array([[1.0, 3.0, 0.0], [0.0, 0.0, 0.0]])
    assert np.allclose(value(lambda g, x: g.rows_to_one(x), rows), [[0.25, 0.75, 0], [1 / 3] * 3])


def test_distances_are_squared():
    points = X[:4]
    wanted = ((X[:, None] - points[None]) ** 2).sum(axis=2)
    assert np.allclose(value(lambda g, x: g.squared_distances(x, points)), wanted)


def test_trees_add_what_their_leaves_say():
    splits = np.array([[0, 1, 2], [-1, 0, 0], [-1, 0, 0], [2, 4, 5], [-1, 0, 0], [-1, 0, 0]])
    cuts = np.array([0.1, 1.0, 2.0, -0.2, 5.0, 7.0])
    trees = np.array([[0, 0], [3, 1]])
    found = value(lambda g, x: add_trees(g, x, splits=splits, cuts=cuts, trees=trees, scores=2))
    wanted = np.column_stack([np.where(X[:, 0] <= 0.1, 1.0, 2.0), np.where(X[:, 2] <= -0.2, 5.0, 7.0)])
    assert np.allclose(found, wanted)
    with pytest.raises(InputError, match="at least one tree"):
        add_trees(OnnxGraph(3), "X", splits=splits[:0], cuts=cuts[:0], trees=trees[:0], scores=1)
