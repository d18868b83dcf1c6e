"""ONNX files of any origin, cut down to the scores that an owner is asked to compute.

A learner's own work, done before anything is sent: exporters add outputs of strings and maps, which no owner
runs, and order classes as they were met. What is left has one output of floats, one for each public class in
the public order.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from privada.exceptions import InputError

CLASSES = "privada.classes"  # the key of a model's metadata that lists its classes, in JSON
_FLOATS = (1, 11)  # ONNX's numbers of float and double
_LABELS = ("classlabels_int64s", "classlabels_ints", "classlabels_strings")


def cut_to_scores(blob: bytes, classes: Sequence[Any] | None = None) -> bytes | None:
    """The same model with its scores as the only output, in the order of ``classes``; None if it has none."""
    model = _parse(blob)
    scores = _score_output(model)
    if scores is None:
        return None
    names = class_names(model)
    _keep_only(model, scores)
    if classes is not None and names is not None:
        _reorder(model, names, list(classes))
        name_classes(model, classes)
    return bytes(model.SerializeToString())


def _parse(blob: bytes) -> Any:
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load_model_from_string(blob)
    except DecodeError:
        raise InputError("Expected an ONNX model: the file is not one.") from None
    if not model.graph.output or not model.graph.node:
        raise InputError("Expected an ONNX model with nodes and an output.")
    return model


def _score_output(model: Any) -> str | None:
    """The first output of floats, or what goes into a map of classes to floats."""
    made_by = {name: node for node in model.graph.node for name in node.output}
    for output in model.graph.output:
        if output.type.tensor_type.elem_type in _FLOATS:
            return str(output.name)
        node = made_by.get(output.name)
        if node is not None and node.op_type == "ZipMap":
            return str(node.input[0])
    return None


def class_names(model: Any) -> list[Any] | None:
    """The classes that a model names: in its metadata, or in the operators that score them."""
    for entry in model.metadata_props:
        if entry.key == CLASSES:
            return list(json.loads(entry.value))
    for node in reversed(model.graph.node):
        for part in node.attribute:
            if part.name in _LABELS and (part.ints or part.strings):
                return list(part.ints) or [text.decode() for text in part.strings]
    return _looked_up(model.graph)


def name_classes(model: Any, classes: Sequence[Any]) -> None:
    """Write the classes into the model's metadata, in the order of its scores."""
    others = [entry for entry in model.metadata_props if entry.key != CLASSES]
    del model.metadata_props[:]
    model.metadata_props.extend(others)
    entry = model.metadata_props.add()
    entry.key, entry.value = CLASSES, json.dumps(np.asarray(classes).tolist())


def _looked_up(graph: Any) -> list[Any] | None:
    """The table in which a model looks up the name of the class with the largest score."""
    from onnx import numpy_helper

    tables = {tensor.name: tensor for tensor in graph.initializer}
    places = {name for node in graph.node if node.op_type == "ArgMax" for name in node.output}
    for node in graph.node:
        if node.op_type == "ArrayFeatureExtractor" and node.input[1] in places and node.input[0] in tables:
            names = numpy_helper.to_array(tables[node.input[0]]).ravel().tolist()
            return [name.decode() if isinstance(name, bytes) else name for name in names]
    return None


def _keep_only(model: Any, scores: str) -> None:
    """Drop all nodes, outputs and constants that the scores do not need; name classes by their places."""
    import onnx

    graph = model.graph
    needed, kept = {scores}, []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(node.input)
    for node in kept:
        _number_classes(node)
    constants = [tensor for tensor in graph.initializer if tensor.name in needed]
    output = onnx.helper.make_tensor_value_info(scores, _kind(graph, scores), [None, None])
    for field, values in (("node", kept[::-1]), ("initializer", constants), ("output", [output])):
        copies = [type(value).FromString(value.SerializeToString()) for value in values]
        graph.ClearField(field)
        getattr(graph, field).extend(copies)
    graph.ClearField("value_info")


def _kind(graph: Any, name: str) -> int:
    for output in (*graph.output, *graph.value_info):
        if output.name == name and output.type.tensor_type.elem_type in _FLOATS:
            return int(output.type.tensor_type.elem_type)
    return _FLOATS[0]


def _number_classes(node: Any) -> None:
    """Classes as numbers: an owner runs no strings."""
    import onnx

    for part in list(node.attribute):
        if part.name == "classlabels_strings" and part.strings:
            numbers = onnx.helper.make_attribute("classlabels_int64s", list(range(len(part.strings))))
            if node.op_type in ("LinearClassifier",):
                numbers = onnx.helper.make_attribute("classlabels_ints", list(range(len(part.strings))))
            node.attribute.remove(part)
            node.attribute.append(numbers)


def _reorder(model: Any, names: list[Any], classes: list[Any]) -> None:
    """Put scores into the order of the public classes; a class that the model does not know scores 0."""
    places = [_place(name, classes) for name in names]
    if places == list(range(len(classes))) or len(names) == 1:
        return
    from onnx import helper, numpy_helper

    graph = model.graph
    output = graph.output[0]
    kind = np.float32 if output.type.tensor_type.elem_type == _FLOATS[0] else np.float64
    matrix = np.zeros((len(names), len(classes)), dtype=kind)
    matrix[np.arange(len(names)), places] = 1.0
    graph.initializer.append(numpy_helper.from_array(matrix, "privada_order"))
    graph.node.append(helper.make_node("MatMul", [output.name, "privada_order"], ["privada_scores"]))
    output.name = "privada_scores"


def _place(name: Any, classes: list[Any]) -> int:
    """Where a model's class is among the public ones."""
    for known in (classes, [str(each) for each in classes]):
        wanted = name if known is classes else str(name)
        if wanted in known:
            return known.index(wanted)
    raise InputError(f"The model knows a class {name!r:.80} that is not among the public classes.")


__all__ = ["CLASSES", "class_names", "cut_to_scores", "name_classes"]
