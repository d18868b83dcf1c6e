"""Hypotheses on the wire: what a learner may ask an owner to run, which is never Python code.

A hypothesis maps one record to the code of one class, or to a fixed number of scores. Its
result for a record is a function of that record alone, so that a neighbour changes
one outcome only. Constants, linear scores and networks are our own forms, summed
in a fixed order; everything else is ONNX, parsed and run by the owner in a locked
process of its own (`privada.methods.hypotheses.onnx`). Making a hypothesis, or a
question that contains one, runs nothing of it; `Hypothesis.fits` does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import AnyArray, FloatArray, IntArray
from privada.exceptions import InputError
from privada.methods.cells.questions.partition import LARGEST_MAP, check_map, map_rows
from privada.privacy.codec import Form, read_form
from privada.privacy.release import PACE

Arrays = dict[str, AnyArray]
DEEPEST = 100  # layers of a network


@dataclass(frozen=True, kw_only=True, eq=False)
class Hypothesis(Form, ABC):
    """A deterministic function from one record to the code of one class."""

    forms_in: ClassVar[tuple[str, ...]] = ("privada.methods.hypotheses.onnx",)

    @abstractmethod
    def codes(self, X: FloatArray) -> IntArray:
        """Class code of each row: a function of that row alone."""

    @abstractmethod
    def fits(self, width: int, n_classes: int) -> None:
        """Raise `InputError` unless it labels rows of ``width`` features with that many classes."""

    @property
    def outputs(self) -> int:
        """How many scores a record has; 0 of a form that has codes alone."""
        return 0

    def scores(self, X: FloatArray) -> FloatArray:  # noqa: ARG002
        """Scores of each row, `outputs` of them: a function of that row alone."""
        raise InputError(f"A {self.form} hypothesis has no scores.")

    def fits_scores(self, width: int, outputs: int) -> None:  # noqa: ARG002
        """Raise `InputError` unless it gives rows of ``width`` features that many scores."""
        raise InputError(f"A {self.form} hypothesis has no scores.")

    def seconds(self, width: int) -> float:  # noqa: ARG002 - an exported model's depend on it
        """Seconds of a processor for one record, from above: a public number."""
        return sum(array.size for array in self.parts()[1].values()) / PACE


@dataclass(frozen=True, kw_only=True, eq=False)
class Constant(Hypothesis):
    """The same class for every record: the first hypothesis of the paper.

    >>> Constant(code=1).codes(np.zeros((2, 3))).tolist()
    [1, 1]
    """

    code: int
    form: ClassVar[str] = "constant"

    def __post_init__(self) -> None:
        _check.count(least=0, code=self.code)

    def codes(self, X: FloatArray) -> IntArray:
        return np.full(len(X), self.code, dtype=np.int64)

    def fits(self, width: int, n_classes: int) -> None:  # noqa: ARG002
        if self.code >= n_classes:
            raise InputError(f"Expected code below {n_classes}, got {self.code}.")


@dataclass(frozen=True, kw_only=True, eq=False)
class Network(Hypothesis):
    """A feed-forward network; no hidden layer makes it linear.

    Parameters
    ----------
    layers : sequence of (weights, bias)
        The last layer has one column for each class, or one alone, whose sign tells two classes apart.
    activation : "relu" or "tanh"

    Layers are of a bounded width, and rows go through them in chunks of a public size.
    Every record has a class, even if its scores are beyond floats.
    """

    layers: tuple[tuple[FloatArray, FloatArray], ...]
    activation: str = "relu"
    form: ClassVar[str] = "network"

    def __post_init__(self) -> None:
        _check.one_of(("relu", "tanh"), activation=self.activation)
        layers: list[tuple[FloatArray, FloatArray]] = []
        if len(self.layers) > DEEPEST:
            raise InputError(f"Expected at most {DEEPEST} layers, got {len(self.layers)}.")
        for weights, bias in self.layers:
            matrix, row = check_map(weights=weights), _check.matrix(bias=np.atleast_2d(bias))[0]
            if len(row) != matrix.shape[1] or (layers and matrix.shape[0] != len(layers[-1][1])):
                raise InputError("Expected layers whose widths follow each other.")
            layers.append((np.ascontiguousarray(matrix), np.ascontiguousarray(row)))
        if not layers or sum(matrix.size + row.size for matrix, row in layers) > LARGEST_MAP:
            raise InputError(f"Expected at least one layer and at most {LARGEST_MAP} parameters.")
        object.__setattr__(self, "layers", tuple(layers))

    @property
    def widest(self) -> int:
        """Numbers that a row takes in the widest layer."""
        return max(len(bias) for _, bias in self.layers)

    def scores(self, X: FloatArray) -> FloatArray:
        """One score for each class, or one alone."""
        from privada.methods.cells.questions import kernels

        return map_rows(X, self.widest, lambda rows: kernels.forward(rows, self.layers, self.activation))

    def fits_scores(self, width: int, outputs: int) -> None:
        features = len(self.layers[0][0])
        if (features, self.outputs) != (width, outputs):
            raise InputError(
                f"Expected a network from {width} features to {outputs} scores, "
                f"got {features} to {self.outputs}."
            )

    @property
    def outputs(self) -> int:
        """How many scores a record has."""
        return len(self.layers[-1][1])

    def codes(self, X: FloatArray) -> IntArray:
        from privada.methods.cells.questions import kernels

        return map_rows(
            X,
            self.widest,
            lambda rows: kernels.largest(kernels.forward(rows, self.layers, self.activation)),
        )

    def fits(self, width: int, n_classes: int) -> None:
        # Of two classes, one score is enough: its sign tells them apart.
        features, allowed = len(self.layers[0][0]), {n_classes} | ({1} if n_classes == 2 else set())
        if features != width or self.outputs not in allowed:
            raise InputError(
                f"Expected a network from {width} features to {n_classes} classes, "
                f"got {features} to {self.outputs}."
            )

    def parts(self) -> tuple[dict[str, Any], Arrays]:
        arrays: Arrays = {}
        for index, (weights, bias) in enumerate(self.layers):
            arrays |= {f"weights.{index}": weights, f"bias.{index}": bias}
        return {"activation": self.activation, "depth": len(self.layers)}, arrays

    @classmethod
    def from_parts(cls, plain: dict[str, Any], arrays: Arrays) -> Self:
        depth = _check.count(depth=plain["depth"])
        layers = tuple((arrays[f"weights.{i}"], arrays[f"bias.{i}"]) for i in range(depth))
        return cls(layers=layers, activation=plain["activation"])


def linear(weights: npt.ArrayLike, bias: npt.ArrayLike) -> Network:
    """A linear hypothesis: ``weights`` of shape (features, classes), or (features, 1) for two.

    >>> linear([[1.0], [0.0]], [-0.5]).codes(np.array([[1.0, 9.0], [0.0, 9.0]])).tolist()
    [1, 0]
    """
    return Network(layers=((np.asarray(weights, np.float64), np.asarray(bias, np.float64)),))


def to_plain(hypothesis: Hypothesis) -> dict[str, Any]:
    """A hypothesis for a JSON file: nested lists of numbers, and the bytes of ONNX in base 64.

    >>> to_plain(linear([[1.0], [0.0]], [-0.5]))["bias.0"]
    [-0.5]
    """
    plain, arrays = hypothesis.parts()
    written = {
        name: b64encode(array.tobytes()).decode("ascii") if array.dtype == np.uint8 else array.tolist()
        for name, array in arrays.items()
    }
    return {"form": hypothesis.form} | plain | written


def from_plain(entry: Mapping[str, Any]) -> Hypothesis:
    """Make a hypothesis from what `to_plain` wrote.

    >>> again = from_plain(to_plain(linear([[1.0], [0.0]], [-0.5])))
    >>> again.codes(np.array([[1.0, 9.0], [0.0, 9.0]])).tolist()
    [1, 0]
    """
    plain: dict[str, Any] = {}
    arrays: Arrays = {}
    for name, value in entry.items():
        if name == "model":
            arrays[name] = np.frombuffer(b64decode(value), dtype=np.uint8)
        elif isinstance(value, list):
            arrays[name] = np.asarray(value, dtype=np.float64)
        elif name != "form":
            plain[name] = value
    return read_form(Hypothesis, {"form": entry["form"], "plain": plain}, arrays)


__all__ = ["Constant", "Hypothesis", "Network", "from_plain", "linear", "to_plain"]
