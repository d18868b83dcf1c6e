"""Models of any kind as hypotheses that an owner runs."""

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
from privada.methods.evaluation.learner.onnx_scores import cut_to_scores, name_classes
from privada.methods.hypotheses.forms import Hypothesis, Network, from_plain
from privada.methods.hypotheses.onnx import LARGEST_MODEL, Onnx


def as_hypothesis(model: Any, *, width: int, classes: Sequence[Any] | None = None) -> Hypothesis:
    """A model as a hypothesis.

    Parameters
    ----------
    model : Hypothesis, bytes, path, or fitted model
        A hypothesis is taken as it is. A path that ends with ``.json`` is one that `to_plain` wrote; bytes,
        or any other path, are ONNX. Anything else has a method ``to_onnx()``, as the estimators of privada
        do, or is a fitted model of scikit-learn, which skl2onnx exports.
    width : int
        The number of features.
    classes : sequence, optional
        Public classes, in their order; the model's are put into it. None for a regressor.
    """
    if isinstance(model, Hypothesis):
        return model
    if isinstance(model, (str, os.PathLike)) and Path(model).suffix == ".json":
        return _read_form(Path(model))
    require("onnx", "onnx", "onnxruntime", purpose="A model as ONNX")
    blob = _as_bytes(model, width)
    scores = cut_to_scores(blob, classes)
    if scores is None:
        return Onnx(model=np.frombuffer(blob, dtype=np.uint8))
    return Onnx(model=np.frombuffer(scores, dtype=np.uint8), outputs=_count_outputs(scores, width))


def link_of(hypothesis: Hypothesis) -> str:
    """How scores become probabilities: ours are not, those of exported models are taken as such."""
    return "softmax" if isinstance(hypothesis, Network) else "none"


def _read_form(file: Path) -> Hypothesis:
    """One of our own forms, as `to_plain` writes them."""
    text = _files.read_text(file, largest=LARGEST_MODEL)
    try:
        return from_plain(json.loads(text))
    except InputError as error:
        raise InputError(f"{file.name}: {error}") from None
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        raise InputError(f"Expected {file.name} to be a hypothesis as to_plain writes it.") from None


def _as_bytes(model: Any, width: int) -> bytes:
    if isinstance(model, bytes):
        return model
    if isinstance(model, (str, os.PathLike)):
        return _files.read_bytes(model, largest=LARGEST_MODEL)
    if hasattr(model, "to_onnx"):
        return bytes(model.to_onnx())
    if not hasattr(model, "predict"):
        raise InputError(f"Expected a hypothesis, ONNX or a fitted model, got {type(model).__name__}.")
    return _export(model, width)


def _export(model: Any, width: int) -> bytes:
    """A fitted model of scikit-learn as ONNX."""
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
            made = to_onnx(model, np.zeros((1, width), dtype=np.float32), options=options)
    except Exception as error:  # its converters share no class of errors
        reason = str(error).strip().split("\n")[0][:200]
        raise InputError(f"{type(model).__name__} does not export to ONNX: {reason}") from None
    if classes is not None:
        name_classes(made, classes)
    return bytes(made.SerializeToString())


def _count_outputs(blob: bytes, width: int) -> int:
    """How many scores a model gives; it runs here, as it is the learner's own."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(blob, options, providers=["CPUExecutionProvider"])
        entry = session.get_inputs()[0]
        if isinstance(entry.shape[-1], int) and entry.shape[-1] != width:
            raise ValueError(f"it takes {entry.shape[-1]}")
        kind = np.float32 if entry.type == "tensor(float)" else np.float64
        (found,) = session.run(None, {entry.name: np.zeros((1, width), dtype=kind)})
    except Exception as error:  # the runtime has no class of errors of its own
        reason = str(error).strip().split("\n")[0][:200]
        raise InputError(f"The ONNX model cannot be run on rows of {width} features: {reason}") from None
    return int(np.size(found))


__all__ = ["as_hypothesis", "link_of"]
