"""Fitted models in one safe file: safetensors with a JSON header; no pickle, no code.

The file has what predictions need, and what somebody who is given it wants to know: the estimator and its
public settings, names of features and classes, the guarantee, and the releases with their signed receipts.
It does not have what is nobody else's business: the ledger that paid, and what else the rows were used for
(``spent_``). What the learner brought itself, such as the public rows of a source or target, is part of some
models.

A value is written by what it is. Plain values are themselves; everything else is an object with one key that
says its kind. Arrays stand beside the tree and are written once, however often they occur. Classes are those
of `list_parts`: they are made by their own constructors, which validate what they are given, or, for the few
models of scikit-learn, from the fitted attributes that are listed here.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import NotFittedError

from privada import _check
from privada._arrays import AnyArray
from privada._deprecated import PARAMETERS, RENAMED
from privada.exceptions import InputError, PrivadaError, WireError
from privada.methods.method import find_method, methods
from privada.methods.method import load as load_object
from privada.parties.columns import column_types
from privada.privacy import wire
from privada.privacy.guarantee import Guarantee
from privada.privacy.release import Question, Release

KIND = "model"
MOST_FEATURES = 1_000_000
OWN = ("ledger", "dataset", "rehearsal", "insecure_seed", "question")  # that no prediction needs
KEPT_BACK = ("spent_", "forecast_")  # attributes that do
DTYPES = ("float64", "float32", "int64", "int32", "uint8", "bool")
COMMON = (  # dataclasses of which the models of any method may be made
    "privada.methods.hypotheses.forms:Constant",
    "privada.methods.hypotheses.forms:Network",
    "privada.methods.hypotheses.onnx:Onnx",
    "privada.parties.schema:Schema",
)
_LINEAR = ("coef_", "intercept_", "n_features_in_")
_NETWORK = ("coefs_", "intercepts_", "n_layers_", "n_outputs_", "out_activation_", "n_features_in_")
FITTED = {  # models of scikit-learn: where they are, and the attributes that predictions need
    "LogisticRegression": ("sklearn.linear_model", (*_LINEAR, "classes_", "n_iter_")),
    "LinearRegression": ("sklearn.linear_model", _LINEAR),
    "Ridge": ("sklearn.linear_model", _LINEAR),
    "MLPClassifier": ("sklearn.neural_network", (*_NETWORK, "classes_", "_label_binarizer")),
    "MLPRegressor": ("sklearn.neural_network", _NETWORK),
    "LabelBinarizer": ("sklearn.preprocessing", ("classes_", "y_type_", "sparse_input_")),
}
LEFT_OUT = ("smoothed",)  # fields that say how a model was made, and that no prediction needs


def list_parts() -> dict[str, str]:
    """The dataclasses that a model file may hold, by name: common ones, columns, and those of methods."""
    columns = (f"{column.__module__}:{column.__name__}" for column in column_types())
    paths = (*COMMON, *columns, *(path for method in methods().values() for path in method.model_parts))
    return {path.rpartition(":")[2]: path for path in paths}


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
    attributes = {
        key: value for key, value in sorted(vars(model).items()) if _is_fitted(key) and key != "question_"
    }
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
    settings = sorted(model.get_params(deep=False).items())
    return {
        key: writer.write(value) for key, value in settings if key not in OWN and not hasattr(value, "fit")
    }


def _names(model: Any, attribute: str) -> list[Any] | None:
    names = getattr(model, attribute, None)
    return None if names is None else np.asarray(names).tolist()


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


class TreeWriter:
    """Turns values into a tree and the arrays beside it."""

    def __init__(self) -> None:
        self.arrays: dict[str, AnyArray] = {}
        self._written: dict[int, tuple[str, Any]] = {}  # with what was written, so that no name is used again

    def write(self, value: Any) -> Any:
        """The tree of a value; `InputError` names a class that is not written."""
        if value is None or isinstance(value, (bool, str)) or type(value) is int:
            return value
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else {"number": repr(float(value))}
        for kinds, write in self._kinds():
            if isinstance(value, kinds):
                return write(value)
        return self._object(value)

    def _kinds(self) -> tuple[tuple[Any, Callable[[Any], Any]], ...]:
        return (
            (np.ndarray, self._array),
            (np.generic, lambda value: {"scalar": [value.dtype.str, value.item()]}),
            (list, lambda value: [self.write(part) for part in value]),
            ((tuple, range), lambda value: {"tuple": [self.write(part) for part in value]}),
            (
                Mapping,
                lambda value: {"pairs": [[self.write(key), self.write(part)] for key, part in value.items()]},
            ),
            (Release, lambda value: {"release": self._bytes(value)}),
            (Question, lambda value: {"question": self._bytes(value)}),
            (Guarantee, lambda value: {"guarantee": value.to_dict()}),
            (datetime, lambda value: {"time": value.isoformat()}),
            (date, lambda value: {"day": value.isoformat()}),
        )

    def _bytes(self, value: Release | Question) -> str:
        return self._put(value, lambda: np.frombuffer(value.to_bytes(), dtype=np.uint8))

    def _put(self, value: Any, make: Callable[[], AnyArray]) -> str:
        """Keep an array under a name, once."""
        if id(value) not in self._written:
            name = f"a{len(self.arrays)}"
            self.arrays[name] = make()
            self._written[id(value)] = name, value
        return self._written[id(value)][0]

    def _array(self, value: AnyArray) -> Any:
        if value.dtype.name in DTYPES:
            return {"array": self._put(value, lambda: np.ascontiguousarray(value))}
        return {"labels": [value.dtype.kind, list(value.shape), self._labels(value)]}

    def _labels(self, value: AnyArray) -> Any:
        """Words, or a mixture: the distinct ones, and where each stands."""
        flat = value.ravel().tolist()
        if value.dtype.kind not in "UO" or not all(isinstance(label, (str, int, float)) for label in flat):
            raise InputError(f"A model file holds no arrays of {value.dtype}.")
        distinct = list(dict.fromkeys(flat))
        places = {label: place for place, label in enumerate(distinct)}
        codes = np.array([places[label] for label in flat], dtype=np.int64)
        return [[self.write(label) for label in distinct], self._put(codes, lambda: codes)]

    def _object(self, value: Any) -> Any:
        from scipy.sparse import issparse

        name = type(value).__name__
        if issparse(value):
            part = value.tocsr()
            return {"sparse": [list(part.shape), *map(self._array, (part.data, part.indices, part.indptr))]}
        if list_parts().get(name) == f"{type(value).__module__}:{name}" and is_dataclass(value):
            names = sorted(part.name for part in fields(value) if part.init and part.name not in LEFT_OUT)
            return {"made": [name, {key: self.write(getattr(value, key)) for key in names}]}
        if name in FITTED and type(value) is getattr(import_module(FITTED[name][0]), name):
            state = {key: self.write(getattr(value, key)) for key in FITTED[name][1] if hasattr(value, key)}
            plain = (type(None), bool, int, float, str)  # the rest is of its training
            parameters = value.get_params(deep=False).items()
            settings = {key: self.write(part) for key, part in parameters if isinstance(part, plain)}
            return {"fitted": [name, settings, state]}
        raise InputError(f"A model file holds no {name}; export it with to_onnx() instead.")


class TreeReader:
    """Makes the values of a tree again; raises `WireError`, or what a class says of what it is given."""

    def __init__(self, arrays: Mapping[str, AnyArray]) -> None:
        self._arrays = arrays
        self._read: dict[str, Any] = {}

    def read(self, tree: Any) -> Any:
        """The value of a tree."""
        if isinstance(tree, list):
            return [self.read(part) for part in tree]
        if not isinstance(tree, dict):
            return tree
        if len(tree) != 1:
            raise WireError("The file is not a valid model: an object has not one key.")
        ((kind, part),) = tree.items()
        readers: dict[str, Callable[[Any], Any]] = {
            "number": lambda text: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[text],
            "scalar": lambda pair: np.array([pair[1]], dtype=_plain_type(pair[0]))[0],
            "tuple": lambda parts: tuple(self.read(part) for part in parts),
            "pairs": lambda pairs: {self.read(key): self.read(part) for key, part in pairs},
            "array": self._array,
            "labels": self._labels,
            "release": self._release,
            "question": lambda name: Question.from_bytes(self._array(name).tobytes()),
            "guarantee": Guarantee.from_dict,
            "time": datetime.fromisoformat,
            "day": date.fromisoformat,
            "sparse": self._sparse,
            "made": self._made,
            "fitted": self._fitted,
        }
        if kind not in readers:
            raise WireError("The file is not a valid model: it holds a kind of value that is not known.")
        return readers[kind](part)

    def _array(self, name: str) -> AnyArray:
        return self._arrays[name]

    def _release(self, name: str) -> Release:
        if name not in self._read:
            self._read[name] = Release.from_bytes(self._array(name).tobytes())
        return self._read[name]

    def _labels(self, part: Any) -> AnyArray:
        kind, shape, (distinct, name) = part
        names = [self.read(label) for label in distinct]
        codes = self._array(name)
        if kind not in ("U", "O") or codes.dtype != np.int64 or codes.ndim != 1:
            raise WireError("The file is not a valid model: labels are not as they were written.")
        table = np.empty(len(names), dtype=object)
        table[:] = names
        if len(codes) and not (codes.min() >= 0 and codes.max() < len(names)):
            raise WireError("The file is not a valid model: a label is not in its table.")
        labels = table[codes].reshape(shape)
        return np.asarray(labels if kind == "O" else labels.astype(str))

    def _sparse(self, part: Any) -> Any:
        from scipy.sparse import csr_array

        shape, *arrays = part
        matrix = csr_array(tuple(map(np.array, map(self.read, arrays))), shape=tuple(shape))
        matrix.check_format(full_check=True)
        return matrix

    def _made(self, part: Any) -> Any:
        name, state = part
        return load_object(list_parts()[name])(**{key: self.read(value) for key, value in state.items()})

    def _fitted(self, part: Any) -> Any:
        name, settings, state = part
        where, attributes = FITTED[name]
        if not set(state) <= set(attributes):
            raise WireError(f"The file is not a valid model: {name} has other attributes.")
        kind = getattr(import_module(where), name)
        model = kind(**{key: self.read(value) for key, value in settings.items()})
        for key, value in state.items():
            setattr(model, key, self.read(value))
        return model


def _plain_type(text: str) -> np.dtype[Any]:
    dtype = np.dtype(text)
    if dtype.kind not in "biufU" or dtype.itemsize > 4096:
        raise WireError("The file is not a valid model: a number has a type that is not read.")
    return dtype


__all__ = ["list_estimators", "list_parts", "load", "pack_model", "save_model", "unpack_model"]
