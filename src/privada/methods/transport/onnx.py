"""The ONNX form of transported classifiers."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from privada.methods.models.onnx_graph import OnnxGraph


def add_classifier(model: Any, graph: OnnxGraph) -> str:
    """Add the class probabilities of a fitted classifier."""
    features, adapted = model.model_.features, model.model_.adapted
    points = _project_rows(features, graph)
    if type(adapted).__name__ == "LinearHead":
        constant = import_module(type(adapted).__module__).CONSTANT
        bias = constant * adapted.radius * adapted.weights[-1]
        opinions = graph.softmax(graph.affine(points, adapted.weights[:-1], bias))
        points = graph.into_ball(points, adapted.radius)
    else:
        inside = graph.into_ball(points, adapted.radius)
        cost = graph.squared_distances(inside, adapted.anchors)
        scaled = graph.apply("Mul", cost, graph.constant([-1 / adapted.regularisation]))
        opinions = graph.softmax(graph.apply("Add", scaled, graph.constant(np.log(adapted.prior))))
    return _add_neighbours(adapted, graph, points, opinions) if adapted.kept else opinions


def _project_rows(features: Any, graph: OnnxGraph) -> str:
    rows = graph.rows
    if features.rescale == "root":
        root = graph.apply("Sqrt", graph.apply("Abs", rows))
        rows = graph.apply("Mul", graph.apply("Sign", rows), root)
    if features.rescale != "none":
        norm = graph.apply("Sqrt", graph.total(graph.apply("Mul", rows, rows)))
        some = graph.apply("Greater", norm, graph.constant([0.0]))
        rows = graph.apply("Div", rows, graph.apply("Where", some, norm, graph.constant([1.0])))
    return graph.apply(
        "MatMul",
        graph.apply("Sub", rows, graph.constant(features.centre)),
        graph.constant(features.projection),
    )


def _add_neighbours(adapted: Any, graph: OnnxGraph, points: str, opinions: str) -> str:
    """A point's own opinion and that of its neighbours among the target's points."""
    near = adapted.graph
    if not near.neighbours:
        return graph.rows_to_one(opinions)
    distances = graph.apply("Sqrt", graph.squared_distances(points, near.points))
    count = graph.constant([near.neighbours], np.int64)
    least = graph.apply("TopK", distances, count, outputs=2, axis=1, largest=0, sorted=1)
    places = f"{least}.1"
    last = graph.apply("Gather", least, graph.constant([near.neighbours - 1], np.int64), axis=1)
    own = graph.apply("Max", last, graph.constant([1e-300]))
    reach = graph.apply("Gather", graph.constant(near.reach), places, axis=0)
    ratio = graph.apply("Div", graph.apply("Mul", least, least), graph.apply("Mul", own, reach))
    bumps = graph.apply("Add", graph.apply("Exp", graph.apply("Neg", ratio)), graph.constant([1e-12]))
    weights = graph.apply("Div", bumps, graph.total(bumps))
    others = graph.apply("Gather", graph.constant(adapted.probabilities), places, axis=0)
    wide = graph.apply("Unsqueeze", weights, graph.constant([2], np.int64))
    axes = graph.constant([1], np.int64)
    theirs = graph.apply("ReduceSum", graph.apply("Mul", wide, others), axes, keepdims=0)
    mine = graph.apply("Mul", opinions, graph.constant([1 - adapted.kept]))
    both = graph.apply("Add", mine, graph.apply("Mul", theirs, graph.constant([adapted.kept])))
    return graph.rows_to_one(both)


__all__ = ["add_classifier"]
