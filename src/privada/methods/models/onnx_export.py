"""Fitted estimators as ONNX: features in their own units, class names in the metadata.

The first output, ``label``, is the code of a class; ``probabilities`` are in the order of the metadata's
``privada.classes``. A regressor has one output, ``prediction``. All arithmetic is in double precision. Rows
of a model with a schema are encoded by it before (`Schema.encode`).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from privada.exceptions import InputError
from privada.methods.models.onnx_graph import CLASSES, FEATURES, GUARANTEE, OnnxGraph, add_trees


def export_onnx(model: Any) -> bytes:
    """The bytes of an ONNX model that predicts as a fitted estimator does.

    Raises
    ------
    InputError
        The estimator, or a model inside it, has no such form.
    """
    name = type(model).__name__
    if name not in EXPORTS:
        raise InputError(f"A {name} has no ONNX form; those of {', '.join(sorted(EXPORTS))} have.")
    check_is_fitted(model, "guarantee_")
    graph = OnnxGraph(int(model.n_features_in_))
    schema = getattr(model, "schema", None)
    names = getattr(model, "feature_names_in_", None) if schema is None else schema.features
    notes: dict[str, Any] = {
        FEATURES: None if names is None else [str(each) for each in names],
        GUARANTEE: str(model.guarantee_),
    }
    found = EXPORTS[name](model, graph)
    if not hasattr(model, "classes_"):
        return graph.finish({"label" if name == "SourceTargetMedoids" else "prediction": found}, notes)
    codes = graph.apply("ArgMax", found, axis=1, keepdims=0)
    notes[CLASSES] = np.asarray(model.classes_).tolist()
    return graph.finish({"label": codes, "probabilities": found}, notes)


def _cells(model: Any, graph: OnnxGraph) -> str:
    at = graph.nearest(graph.rows, model.centers)
    return graph.apply("Gather", graph.constant(model.probabilities_), at, axis=0)


def _medoids(model: Any, graph: OnnxGraph) -> str:
    return graph.nearest(graph.rows, model.cluster_centers_)


def _standard(model: Any, graph: OnnxGraph) -> str:
    """Rows as the models of hidden targets see them."""
    low, high = (np.broadcast_to(np.asarray(side, float), graph.width) for side in model._bounds())
    return graph.standardise(graph.clip(graph.rows, low, high), model.fit_.mean, model.fit_.scale)


def _hidden_classes(model: Any, graph: OnnxGraph) -> str:
    inner = model.fit_.model
    found = _probabilities(inner, graph, _standard(model, graph))
    known = np.asarray(inner.classes_, dtype=np.int64)
    if len(known) == len(model.classes_):
        return found
    return graph.apply("MatMul", found, graph.constant(np.eye(len(model.classes_))[known]))


def _probabilities(inner: Any, graph: OnnxGraph, x: str) -> str:
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


def _hidden_number(model: Any, graph: OnnxGraph) -> str:
    inner, x = model.fit_.model, _standard(model, graph)
    if hasattr(inner, "coefs_"):
        found = graph.layers(x, inner.coefs_, inner.intercepts_, inner.activation)
    elif hasattr(inner, "coef_"):
        found = graph.affine(x, np.reshape(inner.coef_, (-1, 1)), np.reshape(inner.intercept_, (1,)))
    else:
        raise InputError(f"A {type(inner).__name__} inside the model has no ONNX form here.")
    unit, middle = getattr(inner, "unit", 1.0), getattr(inner, "middle", 0.0)
    scaled = graph.affine(found, [[unit]], [middle])
    return graph.clip(scaled, [model.label_bounds[0]], [model.label_bounds[1]])


def _transported(model: Any, graph: OnnxGraph) -> str:
    features, adapted = model.model_.features, model.model_.adapted
    points = _spread(features, graph)
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
    return _extend(adapted, graph, points, opinions) if adapted.kept else opinions


def _spread(features: Any, graph: OnnxGraph) -> str:
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


def _extend(adapted: Any, graph: OnnxGraph, points: str, opinions: str) -> str:
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


def _reweighted(model: Any, graph: OnnxGraph) -> str:
    """Scores of public features, extended by the predictions of public models."""
    features = model.model_.features
    rows = graph.clip(graph.rows, *(np.broadcast_to(side, graph.width) for side in model.bounds_))
    standard = graph.standardise(rows, features.mean, features.spread)
    standard = graph.clip(standard, [-features.limit], [features.limit])
    predictions = _public_predictions(features, graph, _public_scores(features, graph, rows, standard))
    wide = graph.apply("Concat", standard, predictions, axis=1)
    return graph.affine(wide, model.model_.coef, model.model_.intercept)


def _public_scores(features: Any, graph: OnnxGraph, rows: str, standard: str) -> str:
    """The linear model's score, every tree's and the kernel machine's."""
    scores, outputs = len(features.starts), features.outputs
    linear = np.zeros((graph.width, scores))
    linear[:, :outputs] = features.weights
    found = graph.affine(rows, linear, features.starts)
    if len(features.trees):
        trees = {"splits": features.splits, "cuts": features.cuts, "trees": features.trees}
        found = graph.apply("Add", found, add_trees(graph, rows, scores=scores, **trees))
    if len(features.landmarks):
        far = graph.squared_distances(standard, features.landmarks)
        bumps = graph.apply("Exp", graph.apply("Mul", far, graph.constant([-float(features.bandwidth)])))
        loads = np.zeros((len(features.landmarks), scores))
        loads[:, scores - outputs :] = features.loads
        found = graph.apply("Add", found, graph.apply("MatMul", bumps, graph.constant(loads)))
    return found


def _public_predictions(features: Any, graph: OnnxGraph, scores: str) -> str:
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


def _reweighted_classes(model: Any, graph: OnnxGraph) -> str:
    found = graph.clip(_reweighted(model, graph), [0.0], [1.0])
    return graph.of_two(found) if len(model.model_.intercept) == 1 else graph.rows_to_one(found)


def _reweighted_number(model: Any, graph: OnnxGraph) -> str:
    low, high = model.label_bounds_
    return graph.clip(_reweighted(model, graph), [low], [high])


EXPORTS: dict[str, Callable[[Any, OnnxGraph], str]] = {
    "CellClassifier": _cells,
    "SourceTargetMedoids": _medoids,
    "MarginalClassifier": _hidden_classes,
    "MarginalRegressor": _hidden_number,
    "TransportClassifier": _transported,
    "ReweightedClassifier": _reweighted_classes,
    "ReweightedRegressor": _reweighted_number,
}

__all__ = ["EXPORTS", "export_onnx"]
