"""Models of any kind as hypotheses that an owner runs: our own forms, or ONNX reduced to its scores."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privada import _files
from privada._extras import require
from privada.exceptions import InputError
from privada.methods.hypotheses.forms import Hypothesis, Network, from_plain
from privada.methods.hypotheses.onnx import LARGEST_MODEL, Onnx

CLASSES = "privada.classes"  # the key of a model's metadata that lists its classes, in JSON
_FLOATS = (1, 11)  # ONNX's numbers of float and double
_LABELS = ("classlabels_int64s", "classlabels_ints", "classlabels_strings")


def as_hypothesis(model: Any, *, width: int, classes: Sequence[Any] | None = None) -> Hypothesis:
    """A model as a hypothesis.

    Parameters
    ----------
    model : Hypothesis, bytes, path, or fitted model
        A hypothesis is taken as it is. A path that ends with ``.json`` is a file that `to_plain` wrote;
        bytes and other paths are ONNX. Any other model has a method ``to_onnx()``, as the estimators of
        privada do, or is a fitted model of scikit-learn, which skl2onnx exports.
    width : int
        The number of features.
    classes : sequence, optional
        Public classes, in their order; the model's are put into it. None for a regressor.
    """
    if isinstance(model, Hypothesis):
        return model
    if isinstance(model, (str, os.PathLike)) and Path(model).suffix == ".json":
        return _read_json(Path(model))
    require("onnx", "onnx", "onnxruntime", purpose="A model as ONNX")
    if isinstance(model, bytes):
        blob = model
    elif isinstance(model, (str, os.PathLike)):
        blob = _files.read_bytes(model, largest=LARGEST_MODEL)
    elif hasattr(model, "to_onnx"):
        blob = bytes(model.to_onnx())
    elif hasattr(model, "predict"):
        blob = _export(model, width)
    else:
        raise InputError(f"Expected a hypothesis, ONNX or a fitted model, got {type(model).__name__}.")
    scores = cut_to_scores(blob, classes)
    if scores is None:
        return Onnx(model=np.frombuffer(blob, dtype=np.uint8))
    return Onnx(model=np.frombuffer(scores, dtype=np.uint8), outputs=_count_outputs(scores, width))


def link_of(hypothesis: Hypothesis) -> str:
    """The link to probabilities: scores of our own forms need one, those of exported models do not."""
    return "softmax" if isinstance(hypothesis, Network) else "none"


def _read_json(file: Path) -> Hypothesis:
    """Read one of our own forms, as `to_plain` writes them."""
    text = _files.read_text(file, largest=LARGEST_MODEL)
    try:
        return from_plain(json.loads(text))
    except InputError as error:
        raise InputError(f"{file.name}: {error}") from None
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        raise InputError(f"Expected {file.name} to be a hypothesis as to_plain writes it.") from None


def _export(model: Any, width: int) -> bytes:
    """Export a fitted model of scikit-learn as ONNX."""
    require("onnx", "skl2onnx", purpose="A model of scikit-learn as ONNX")
    from skl2onnx import to_onnx
    from sklearn.base import is_classifier

    if getattr(model, "n_features_in_", width) != width:
        raise InputError(f"Expected a model of {width} features, got one of {model.n_features_in_}.")
    try:
        classes = model.classes_ if is_classifier(model) else None
        options = None if classes is None else {id(model): {"zipmap": False}}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exported = to_onnx(model, np.zeros((1, width), dtype=np.float32), options=options)
    except Exception as error:  # its converters share no class of errors
        reason = str(error).strip().split("\n")[0][:200]
        raise InputError(f"{type(model).__name__} does not export to ONNX: {reason}") from None
    if classes is not None:
        name_classes(exported, classes)
    return bytes(exported.SerializeToString())


def _count_outputs(blob: bytes, width: int) -> int:
    """Count the scores of a model, by running it here: it is the learner's own."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(blob, options, providers=["CPUExecutionProvider"])
        entry = session.get_inputs()[0]
        if isinstance(entry.shape[-1], int) and entry.shape[-1] != width:
            raise ValueError(f"it takes {entry.shape[-1]}")
        kind = np.float32 if entry.type == "tensor(float)" else np.float64
        (scores,) = session.run(None, {entry.name: np.zeros((1, width), dtype=kind)})
    except Exception as error:  # the runtime has no class of errors of its own
        reason = str(error).strip().split("\n")[0][:200]
        raise InputError(f"The ONNX model cannot be run on rows of {width} features: {reason}") from None
    return int(np.size(scores))


def cut_to_scores(blob: bytes, classes: Sequence[Any] | None = None) -> bytes | None:
    """Reduce a model to its scores as the only output, in the order of ``classes``; None if it has none.

    This is a learner's own work, done before anything is sent: exporters add outputs of strings and maps,
    which no owner runs, and order classes as they met them.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load_model_from_string(blob)
    except DecodeError:
        raise InputError("Expected an ONNX model: the file is not one.") from None
    if not model.graph.output or not model.graph.node:
        raise InputError("Expected an ONNX model with nodes and an output.")
    scores = _find_scores(model)
    if scores is None:
        return None
    names = class_names(model)
    _keep_only(model, scores)
    if classes is not None and names is not None:
        _reorder(model, names, list(classes))
        name_classes(model, classes)
    return bytes(model.SerializeToString())


def _find_scores(model: Any) -> str | None:
    """Find the first output of floats, or the input of a map of classes to floats."""
    producers = {name: node for node in model.graph.node for name in node.output}
    for output in model.graph.output:
        if output.type.tensor_type.elem_type in _FLOATS:
            return str(output.name)
        node = producers.get(output.name)
        if node is not None and node.op_type == "ZipMap":
            return str(node.input[0])
    return None


def class_names(model: Any) -> list[Any] | None:
    """The classes that a model names, in its metadata or in the operators that score them."""
    for entry in model.metadata_props:
        if entry.key == CLASSES:
            return list(json.loads(entry.value))
    for node in reversed(model.graph.node):
        for part in node.attribute:
            if part.name in _LABELS and (part.ints or part.strings):
                return list(part.ints) or [text.decode() for text in part.strings]
    # Otherwise, the table in which it looks up the name of the class with the largest score.
    from onnx import numpy_helper

    graph = model.graph
    tables = {tensor.name: tensor for tensor in graph.initializer}
    places = {name for node in graph.node if node.op_type == "ArgMax" for name in node.output}
    for node in graph.node:
        if node.op_type == "ArrayFeatureExtractor" and node.input[1] in places and node.input[0] in tables:
            names = numpy_helper.to_array(tables[node.input[0]]).ravel().tolist()
            return [name.decode() if isinstance(name, bytes) else name for name in names]
    return None


def name_classes(model: Any, classes: Sequence[Any]) -> None:
    """Write the classes into the model's metadata, in the order of its scores."""
    others = [entry for entry in model.metadata_props if entry.key != CLASSES]
    del model.metadata_props[:]
    model.metadata_props.extend(others)
    entry = model.metadata_props.add()
    entry.key, entry.value = CLASSES, json.dumps(np.asarray(classes).tolist())


def _keep_only(model: Any, scores: str) -> None:
    """Drop all nodes, outputs and constants that the scores do not need; name classes by their places."""
    import onnx

    graph = model.graph
    needed, nodes = {scores}, []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            nodes.append(node)
            needed.update(node.input)
    for node in nodes:
        # Names of classes become numbers: an owner runs no strings.
        for part in list(node.attribute):
            if part.name == "classlabels_strings" and part.strings:
                kind = "classlabels_ints" if node.op_type == "LinearClassifier" else "classlabels_int64s"
                node.attribute.remove(part)
                node.attribute.append(onnx.helper.make_attribute(kind, list(range(len(part.strings)))))
    constants = [tensor for tensor in graph.initializer if tensor.name in needed]
    kinds = [
        value.type.tensor_type.elem_type
        for value in (*graph.output, *graph.value_info)
        if value.name == scores and value.type.tensor_type.elem_type in _FLOATS
    ]
    output = onnx.helper.make_tensor_value_info(scores, next(iter(kinds), _FLOATS[0]), [None, None])
    for field, values in (("node", nodes[::-1]), ("initializer", constants), ("output", [output])):
        copies = [type(value).FromString(value.SerializeToString()) for value in values]
        graph.ClearField(field)
        getattr(graph, field).extend(copies)
    graph.ClearField("value_info")


def _reorder(model: Any, names: list[Any], classes: list[Any]) -> None:
    """Put scores into the order of the public classes; a class that the model does not know scores 0."""
    places = []
    for name in names:
        # Classes may have been written as text.
        for candidates, value in ((classes, name), ([str(label) for label in classes], str(name))):
            if value in candidates:
                places.append(candidates.index(value))
                break
        else:
            raise InputError(f"The model knows a class {name!r:.80} that is not among the public classes.")
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


__all__ = ["CLASSES", "as_hypothesis", "class_names", "cut_to_scores", "link_of", "name_classes"]
