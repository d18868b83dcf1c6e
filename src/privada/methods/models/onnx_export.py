"""Fitted estimators as ONNX: features in their own units, class names in the metadata.

The first output, ``label``, is the code of a class; ``probabilities`` are in the order of the metadata's
``privada.classes``. A regressor has one output, ``prediction``. All arithmetic is in double precision. Rows
of a model with a schema are encoded by it before (`Schema.encode`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_clusterer
from sklearn.utils.validation import check_is_fitted

from privada.methods.models.onnx_graph import CLASSES, FEATURES, GUARANTEE, OnnxGraph


def export_onnx(model: Any) -> bytes:
    """The bytes of an ONNX model that predicts as a fitted estimator does.

    Raises
    ------
    InputError
        The estimator, or a model inside it, has no such form.
    """
    check_is_fitted(model, "guarantee_")
    graph = OnnxGraph(int(model.n_features_in_))
    schema = getattr(model, "schema", None)
    names = getattr(model, "feature_names_in_", None) if schema is None else schema.features
    notes: dict[str, Any] = {
        FEATURES: None if names is None else [str(column) for column in names],
        GUARANTEE: str(model.guarantee_),
    }
    output = model._add_to_onnx(graph)
    if not hasattr(model, "classes_"):
        return graph.finish({"label" if is_clusterer(model) else "prediction": output}, notes)
    codes = graph.apply("ArgMax", output, axis=1, keepdims=0)
    notes[CLASSES] = np.asarray(model.classes_).tolist()
    return graph.finish({"label": codes, "probabilities": output}, notes)


__all__ = ["export_onnx"]
