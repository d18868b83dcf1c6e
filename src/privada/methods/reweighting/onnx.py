"""The ONNX form of models that are linear in public features."""

from __future__ import annotations

from typing import Any

import numpy as np

from privada.methods.models.onnx_graph import OnnxGraph, add_trees
from privada.methods.reweighting.learner.adaptation import AdaptedPredictor


def _add_scores(model: Any, graph: OnnxGraph) -> str:
    """Scores of public features, extended by the predictions of public models; or of rows in a ball."""
    rows = graph.clip(graph.rows, *(np.broadcast_to(side, graph.width) for side in model.bounds_))
    if isinstance(model.model_, AdaptedPredictor):
        return graph.affine(graph.into_ball(rows, model.model_.question.r), *model.model_.linear_form())
    features = model.model_.features
    standard = graph.standardise(rows, features.mean, features.spread)
    standard = graph.clip(standard, [-features.limit], [features.limit])
    predictions = _add_public_predictions(
        features, graph, _add_public_scores(features, graph, rows, standard)
    )
    wide = graph.apply("Concat", standard, predictions, axis=1)
    return graph.affine(wide, model.model_.coef, model.model_.intercept)


def _add_public_scores(features: Any, graph: OnnxGraph, rows: str, standard: str) -> str:
    """The linear model's score, every tree's and the kernel machine's."""
    scores, outputs = len(features.starts), features.outputs
    linear = np.zeros((graph.width, scores))
    linear[:, :outputs] = features.weights
    total = graph.affine(rows, linear, features.starts)
    if len(features.trees):
        trees = {"splits": features.splits, "cuts": features.cuts, "trees": features.trees}
        total = graph.apply("Add", total, add_trees(graph, rows, scores=scores, **trees))
    if len(features.landmarks):
        far = graph.squared_distances(standard, features.landmarks)
        bumps = graph.apply("Exp", graph.apply("Mul", far, graph.constant([-float(features.bandwidth)])))
        loads = np.zeros((len(features.landmarks), scores))
        loads[:, scores - outputs :] = features.loads
        total = graph.apply("Add", total, graph.apply("MatMul", bumps, graph.constant(loads)))
    return total


def _add_public_predictions(features: Any, graph: OnnxGraph, scores: str) -> str:
    """Numbers near the linear model's, or probabilities."""
    outputs, models = features.outputs, features.models
    if features.link == "identity":
        inside = graph.clip(scores, [features.low], [features.high])
        first = np.tile(np.eye(outputs), (1, models))
        spread = np.vstack([first, np.zeros((outputs * (models - 1), outputs * models))])
        base = graph.apply("MatMul", inside, graph.constant(spread))
        reach = np.repeat(features.reach, outputs)
        return graph.apply("Add", base, graph.clip(graph.apply("Sub", inside, base), -reach, reach))
    if outputs == 1:
        return graph.apply("Sigmoid", scores)
    apart = graph.apply("Reshape", scores, graph.constant([-1, models, outputs], np.int64))
    joined = graph.constant([-1, models * outputs], np.int64)
    return graph.apply("Reshape", graph.softmax(apart, axis=2), joined)


def add_classifier(model: Any, graph: OnnxGraph) -> str:
    """Add the class probabilities of a fitted classifier."""
    scores = _add_scores(model, graph)
    if isinstance(model.model_, AdaptedPredictor):
        logistic = model.model_.coef.ndim == 1
        return graph.of_two(graph.apply("Sigmoid", scores)) if logistic else graph.softmax(scores)
    probabilities = graph.clip(scores, [0.0], [1.0])
    two = len(model.model_.intercept) == 1
    return graph.of_two(probabilities) if two else graph.rows_to_one(probabilities)


def add_regressor(model: Any, graph: OnnxGraph) -> str:
    """Add the predictions of a fitted regressor."""
    low, high = model.label_bounds_
    return graph.clip(_add_scores(model, graph), [low], [high])


__all__ = ["add_classifier", "add_regressor"]
