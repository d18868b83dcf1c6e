"""The ONNX form of models of hidden targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from privada.exceptions import InputError
from privada.methods.models.onnx_graph import OnnxGraph


def _standardise_rows(model: Any, graph: OnnxGraph) -> str:
    """Rows as the models of hidden targets see them."""
    low, high = (np.broadcast_to(np.asarray(side, float), graph.width) for side in model._bounds())
    return graph.standardise(graph.clip(graph.rows, low, high), model.fit_.mean, model.fit_.scale)


def add_classifier(model: Any, graph: OnnxGraph) -> str:
    """Add the class probabilities of a fitted classifier."""
    inner = model.fit_.model
    probabilities = _add_probabilities(inner, graph, _standardise_rows(model, graph))
    codes = np.asarray(inner.classes_, dtype=np.int64)
    if len(codes) == len(model.classes_):
        return probabilities
    # a class that no synthetic label has is never predicted: its column is zero
    return graph.apply("MatMul", probabilities, graph.constant(np.eye(len(model.classes_))[codes]))


def _add_probabilities(inner: Any, graph: OnnxGraph, x: str) -> str:
    """Class probabilities of a network or of a logistic regression."""
    name = type(inner).__name__
    if name in ("DescentModel", "MLPClassifier"):
        scores = graph.layers(x, inner.coefs_, inner.intercepts_, inner.activation)
        sigmoid = getattr(inner, "out_activation_", "softmax") == "logistic"
    elif name == "LogisticRegression":
        scores = graph.affine(x, inner.coef_.T, inner.intercept_)
        sigmoid = inner.coef_.shape[0] == 1
    else:
        raise InputError(f"A {name} inside the model has no ONNX form here.")
    return graph.of_two(graph.apply("Sigmoid", scores)) if sigmoid else graph.softmax(scores)


def add_regressor(model: Any, graph: OnnxGraph) -> str:
    """Add the predictions of a fitted regressor."""
    inner, x = model.fit_.model, _standardise_rows(model, graph)
    if hasattr(inner, "coefs_"):
        numbers = graph.layers(x, inner.coefs_, inner.intercepts_, inner.activation)
    elif hasattr(inner, "coef_"):
        numbers = graph.affine(x, np.reshape(inner.coef_, (-1, 1)), np.reshape(inner.intercept_, (1,)))
    else:
        raise InputError(f"A {type(inner).__name__} inside the model has no ONNX form here.")
    unit, middle = getattr(inner, "unit", 1.0), getattr(inner, "middle", 0.0)
    scaled = graph.affine(numbers, [[unit]], [middle])
    return graph.clip(scaled, [model.label_bounds[0]], [model.label_bounds[1]])


__all__ = ["add_classifier", "add_regressor"]
