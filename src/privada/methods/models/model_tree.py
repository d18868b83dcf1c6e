"""The state of a fitted model as plain values and arrays: no pickle, no code, and no class but known ones.

A value is written by what it is. Plain values are themselves; everything else is an object with one key that
says its kind. Arrays stand beside the tree and are written once, however often they occur. Classes are those
of `list_parts`: they are made by their own constructors, which validate what they are given, or, for the few
models of scikit-learn, from the fitted attributes that are listed here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import InputError, WireError
from privada.methods.method import load, methods
from privada.parties.columns import column_types
from privada.privacy.guarantee import Guarantee
from privada.privacy.release import Question, Release

Arrays = dict[str, npt.NDArray[Any]]
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


class TreeWriter:
    """Turns values into a tree and the arrays beside it."""

    def __init__(self) -> None:
        self.arrays: Arrays = {}
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
            (list, lambda value: [self.write(each) for each in value]),
            ((tuple, range), lambda value: {"tuple": [self.write(each) for each in value]}),
            (Mapping, self._mapping),
            (Release, lambda value: {"release": self._bytes(value)}),
            (Question, lambda value: {"question": self._bytes(value)}),
            (Guarantee, lambda value: {"guarantee": value.to_dict()}),
            (datetime, lambda value: {"time": value.isoformat()}),
            (date, lambda value: {"day": value.isoformat()}),
        )

    def _mapping(self, value: Mapping[Any, Any]) -> Any:
        return {"pairs": [[self.write(key), self.write(each)] for key, each in value.items()]}

    def _bytes(self, value: Release | Question) -> str:
        return self._put(value, lambda: np.frombuffer(value.to_bytes(), dtype=np.uint8))

    def _put(self, value: Any, make: Callable[[], npt.NDArray[Any]]) -> str:
        """Keep an array under a name, once."""
        if id(value) not in self._written:
            name = f"a{len(self.arrays)}"
            self.arrays[name] = make()
            self._written[id(value)] = name, value
        return self._written[id(value)][0]

    def _array(self, value: npt.NDArray[Any]) -> Any:
        if value.dtype.name in DTYPES:
            return {"array": self._put(value, lambda: np.ascontiguousarray(value))}
        return {"labels": [value.dtype.kind, list(value.shape), self._labels(value)]}

    def _labels(self, value: npt.NDArray[Any]) -> Any:
        """Words, or a mixture: the distinct ones, and where each stands."""
        flat = value.ravel().tolist()
        if value.dtype.kind not in "UO" or not all(isinstance(each, (str, int, float)) for each in flat):
            raise InputError(f"A model file holds no arrays of {value.dtype}.")
        distinct = list(dict.fromkeys(flat))
        places = {each: at for at, each in enumerate(distinct)}
        codes = np.array([places[each] for each in flat], dtype=np.int64)
        return [[self.write(each) for each in distinct], self._put(codes, lambda: codes)]

    def _object(self, value: Any) -> Any:
        from scipy.sparse import issparse

        name = type(value).__name__
        if issparse(value):
            part = value.tocsr()
            return {"sparse": [list(part.shape), *map(self._array, (part.data, part.indices, part.indptr))]}
        if list_parts().get(name) == f"{type(value).__module__}:{name}" and is_dataclass(value):
            kept = sorted(each.name for each in fields(value) if each.init and each.name not in LEFT_OUT)
            return {"made": [name, {key: self.write(getattr(value, key)) for key in kept}]}
        if name in FITTED and type(value) is getattr(import_module(FITTED[name][0]), name):
            state = {key: self.write(getattr(value, key)) for key in FITTED[name][1] if hasattr(value, key)}
            return {"fitted": [name, self._settings(value), state]}
        raise InputError(f"A model file holds no {name}; export it with to_onnx() instead.")

    def _settings(self, value: Any) -> dict[str, Any]:
        """Parameters of scikit-learn that are plain; the rest is of its training."""
        plain = (type(None), bool, int, float, str)
        return {
            key: self.write(each) for key, each in value.get_params(deep=False).items() if _is(each, plain)
        }


def _is(value: Any, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds)


class TreeReader:
    """Makes the values of a tree again; raises `WireError`, or what a class says of what it is given."""

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self._arrays = arrays
        self._read: dict[str, Any] = {}

    def read(self, tree: Any) -> Any:
        """The value of a tree."""
        if isinstance(tree, list):
            return [self.read(each) for each in tree]
        if not isinstance(tree, dict):
            return tree
        if len(tree) != 1:
            raise WireError("The file is not a valid model: an object has not one key.")
        ((kind, part),) = tree.items()
        readers: dict[str, Callable[[Any], Any]] = {
            "number": lambda text: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[text],
            "scalar": lambda pair: np.array([pair[1]], dtype=_plain_type(pair[0]))[0],
            "tuple": lambda parts: tuple(self.read(each) for each in parts),
            "pairs": lambda pairs: {self.read(key): self.read(each) for key, each in pairs},
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

    def _array(self, name: str) -> npt.NDArray[Any]:
        return self._arrays[name]

    def _release(self, name: str) -> Release:
        if name not in self._read:
            self._read[name] = Release.from_bytes(self._array(name).tobytes())
        return self._read[name]

    def _labels(self, part: Any) -> npt.NDArray[Any]:
        kind, shape, (distinct, name) = part
        names = [self.read(each) for each in distinct]
        codes = self._array(name)
        if kind not in ("U", "O") or codes.dtype != np.int64 or codes.ndim != 1:
            raise WireError("The file is not a valid model: labels are not as they were written.")
        table = np.empty(len(names), dtype=object)
        table[:] = names
        if len(codes) and not (codes.min() >= 0 and codes.max() < len(names)):
            raise WireError("The file is not a valid model: a label is not in its table.")
        found = table[codes].reshape(shape)
        return np.asarray(found if kind == "O" else found.astype(str))

    def _sparse(self, part: Any) -> Any:
        from scipy.sparse import csr_array

        shape, *arrays = part
        made = csr_array(tuple(map(np.array, map(self.read, arrays))), shape=tuple(shape))
        made.check_format(full_check=True)
        return made

    def _made(self, part: Any) -> Any:
        name, state = part
        kind = load(list_parts()[name])
        return kind(**{key: self.read(each) for key, each in state.items()})

    def _fitted(self, part: Any) -> Any:
        name, settings, state = part
        where, attributes = FITTED[name]
        if not set(state) <= set(attributes):
            raise WireError(f"The file is not a valid model: {name} has other attributes.")
        made = getattr(import_module(where), name)(**{key: self.read(each) for key, each in settings.items()})
        for key, each in state.items():
            setattr(made, key, self.read(each))
        return made


def _plain_type(text: str) -> np.dtype[Any]:
    found = np.dtype(text)
    if found.kind not in "biufU" or found.itemsize > 4096:
        raise WireError("The file is not a valid model: a number has a type that is not read.")
    return found


__all__ = ["FITTED", "TreeReader", "TreeWriter", "list_parts"]
