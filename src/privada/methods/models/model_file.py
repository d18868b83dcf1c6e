"""Fitted models in one safe file: safetensors with a JSON header, never pickle.

The file has what predictions need, and what somebody who is given it wants to know: the estimator and its
public settings, names of features and classes, the guarantee, and the releases with their signed receipts.
It does not have what is nobody else's business: the ledger that paid, and what else the rows were used for
(``spent_``). What the learner brought itself, such as the public rows of a source or target, is part of some
models.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import NotFittedError

from privada import _check
from privada._deprecated import PARAMETERS, RENAMED
from privada.exceptions import InputError, PrivadaError, WireError
from privada.methods.method import find_method, methods
from privada.methods.method import load as load_object
from privada.methods.models.model_tree import TreeReader, TreeWriter
from privada.privacy import wire

KIND = "model"
MOST_FEATURES = 1_000_000
OWN = (
    "ledger",
    "dataset",
    "rehearsal",
    "insecure_seed",
    "question",
)  # settings of whoever fitted, which no prediction needs
KEPT_BACK = ("spent_", "forecast_")  # attributes that do


class SavedAs(NamedTuple):
    """An estimator that can be saved: its method, and where its class is."""

    method: str
    path: str


def list_estimators() -> dict[str, SavedAs]:
    """The estimators of all installed methods, by the name of their class."""
    return {
        path.rpartition(":")[2]: SavedAs(name, path)
        for name, method in methods().items()
        for path in method.estimators.values()
    }


def save_model(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted estimator, whole or not at all.

    Raises
    ------
    InputError
        It is no estimator that can be saved, or holds a part that no file does: use ``to_onnx()`` then.
    """
    return wire.write(path, pack_model(model))


def pack_model(model: Any) -> bytes:
    """The file form of a fitted estimator."""
    from privada import __version__

    name = type(model).__name__
    estimators = list_estimators()
    if name not in estimators or estimators[name].path != f"{type(model).__module__}:{name}":
        raise InputError(f"Expected one of {', '.join(sorted(estimators))}, got a {name}.")
    if not hasattr(model, "guarantee_"):
        raise NotFittedError(f"This {name} is not fitted yet: there is no model to save.")
    writer = TreeWriter()
    attributes = {key: value for key, value in sorted(vars(model).items()) if _is_fitted(key)}
    header = {
        "estimator": name,
        "method": estimators[name].method,
        "version": __version__,
        "guarantee": model.guarantee_.to_dict(),
        "features": _names(model, "feature_names_in_"),
        "classes": _names(model, "classes_"),
        "settings": _settings(model, writer),
        "fitted": {key: writer.write(value) for key, value in attributes.items()},
    }
    return wire.pack(KIND, header, writer.arrays)


def _is_fitted(key: str) -> bool:
    return key.endswith("_") and key not in KEPT_BACK and (key == "bounds_" or not key.startswith("_"))


def _settings(model: Any, writer: TreeWriter) -> dict[str, Any]:
    """Public settings that a file can hold; a model that was to be trained is left out."""
    kept = {}
    for key, value in sorted(model.get_params(deep=False).items()):
        if key not in OWN and not hasattr(value, "fit"):
            kept[key] = writer.write(value)
    return kept


def _names(model: Any, attribute: str) -> list[Any] | None:
    found = getattr(model, attribute, None)
    return None if found is None else np.asarray(found).tolist()


def load(path: str | os.PathLike[str]) -> Any:
    """Read a fitted estimator: its predictions are the same, bit for bit.

    Nothing of the file is executed, its size is bounded, and signatures of its releases are checked.

    Raises
    ------
    WireError
        The file is truncated, forged, or not a model.
    """
    return unpack_model(wire.read(path))


def unpack_model(blob: bytes) -> Any:
    """Make an estimator from its file form."""
    header, arrays = wire.unpack(blob, kind=KIND)
    try:
        return _make(header, TreeReader(arrays))
    except WireError:
        raise
    except PrivadaError as error:
        raise WireError(f"The file is not a valid model: {error}") from None
    except Exception:  # what a class says of values that it never wrote can be anything
        raise WireError("The file is not a valid model: a part is missing or of the wrong kind.") from None


def _make(header: dict[str, Any], reader: TreeReader) -> Any:
    estimators, name = list_estimators(), header["estimator"]
    name = _check.one_of(estimators, estimator=RENAMED.get(name, name))
    kind = load_object(estimators[name].path)
    renamed = {**PARAMETERS, **find_method(estimators[name].method).renamed}
    settings = {renamed.get(key, key): reader.read(tree) for key, tree in header["settings"].items()}
    model = kind(**settings)
    for key, tree in header["fitted"].items():
        if not _is_fitted(key):
            raise WireError("The file is not a valid model: it sets what no fit does.")
        setattr(model, key, reader.read(tree))
    width = _check.count(n_features=model.n_features_in_)
    if width > MOST_FEATURES or model.guarantee_.to_dict() != header["guarantee"]:
        raise WireError("The file is not a valid model: its header does not say what it holds.")
    if hasattr(model, "predict"):
        model.predict(_some_row(model, width))  # a part of another shape is found now
    return model


def _some_row(model: Any, width: int) -> Any:
    """A row as the model takes it."""
    schema = getattr(model, "schema", None)
    return np.zeros((1, width)) if schema is None else schema.decode([schema.box.low])


__all__ = ["list_estimators", "load", "pack_model", "save_model", "unpack_model"]
