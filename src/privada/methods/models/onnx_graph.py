"""ONNX graphs in double precision, step by step: arithmetic of which models are made.

Every function takes and returns names of tensors of a graph. Rows are the first axis everywhere, and what is
computed for a row depends on that row alone.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._extras import require
from privada.exceptions import InputError

OPSET, LEARNT_OPSET, IR = 18, 3, 9
CLASSES, FEATURES, GUARANTEE = "privada.classes", "privada.features", "privada.guarantee"
_TINY = 1e-300


class OnnxGraph:
    """A graph of rows of ``width`` numbers, which grows by its functions."""

    def __init__(self, width: int) -> None:
        require("onnx", "onnx", purpose="A model as ONNX")
        self.rows, self.width = "X", width
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def constant(self, value: npt.ArrayLike, kind: Any = np.float64) -> str:
        """A constant tensor."""
        from onnx import numpy_helper

        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(value, dtype=kind), name))
        return name

    def apply(self, operator: str, *inputs: str, domain: str = "", outputs: int = 1, **settings: Any) -> str:
        """The first output of an operator; further ones have the same name, and their number after a dot."""
        from onnx import helper

        name = f"t{len(self._nodes)}"
        names = [name, *(f"{name}.{at}" for at in range(1, outputs))]
        self._nodes.append(helper.make_node(operator, list(inputs), names, domain=domain, **settings))
        return name

    def clip(self, x: str, low: npt.ArrayLike, high: npt.ArrayLike) -> str:
        """Each column within its limits."""
        return self.apply("Min", self.apply("Max", x, self.constant(low)), self.constant(high))

    def affine(self, x: str, weights: npt.ArrayLike, bias: npt.ArrayLike) -> str:
        """``x @ weights + bias``."""
        return self.apply("Add", self.apply("MatMul", x, self.constant(weights)), self.constant(bias))

    def standardise(self, x: str, mean: npt.ArrayLike, spread: npt.ArrayLike) -> str:
        """Columns centred and divided."""
        return self.apply("Div", self.apply("Sub", x, self.constant(mean)), self.constant(spread))

    def total(self, x: str, axis: int = 1) -> str:
        """Sums over an axis that stays."""
        return self.apply("ReduceSum", x, self.constant([axis], np.int64), keepdims=1)

    def softmax(self, x: str, axis: int = 1) -> str:
        """Probabilities of scores."""
        return self.apply("Softmax", x, axis=axis)

    def of_two(self, second: str) -> str:
        """Probabilities of both classes, from that of the second."""
        first = self.apply("Sub", self.constant([1.0]), second)
        return self.apply("Concat", first, second, axis=1)

    def layers(self, x: str, weights: Any, biases: Any, activation: str) -> str:
        """A feed-forward network; its last layer has no activation."""
        operators = {"relu": "Relu", "tanh": "Tanh", "logistic": "Sigmoid", "identity": "Identity"}
        for at, (matrix, bias) in enumerate(zip(weights, biases, strict=True)):
            x = self.affine(x, matrix, bias)
            if at < len(weights) - 1:
                x = self.apply(operators[activation], x)
        return x

    def squared_distances(self, x: str, points: npt.ArrayLike) -> str:
        """Of each row to each of some points."""
        others = np.asarray(points, dtype=np.float64)
        own = self.total(self.apply("Mul", x, x))
        cross = self.affine(x, -2 * others.T, np.sum(others**2, axis=1))
        return self.apply("Max", self.apply("Add", own, cross), self.constant([0.0]))

    def nearest(self, x: str, points: npt.ArrayLike) -> str:
        """Index of the nearest of some points."""
        return self.apply("ArgMin", self.squared_distances(x, points), axis=1, keepdims=0)

    def into_ball(self, x: str, radius: float) -> str:
        """Rows shortened to a norm."""
        norm = self.apply("Sqrt", self.total(self.apply("Mul", x, x)))
        least = self.apply("Div", self.constant([radius]), self.apply("Max", norm, self.constant([_TINY])))
        return self.apply("Mul", x, self.apply("Min", least, self.constant([1.0])))

    def rows_to_one(self, x: str) -> str:
        """Rows divided by their sums; equal shares where a sum is 0."""
        total = self.total(x)
        some = self.apply("Greater", total, self.constant([0.0]))
        divided = self.apply("Div", x, self.apply("Where", some, total, self.constant([1.0])))
        ones = self.apply("Add", self.apply("Mul", x, self.constant([0.0])), self.constant([1.0]))
        return self.apply("Where", some, divided, self.apply("Div", ones, self.total(ones)))

    def finish(self, outputs: dict[str, str], notes: dict[str, Any]) -> bytes:
        """The whole model: outputs by name, and notes for its metadata."""
        from onnx import TensorProto, helper

        renamed = [helper.make_node("Identity", [source], [name]) for name, source in outputs.items()]
        kinds = {"label": (TensorProto.INT64, ["rows"])}
        infos = [
            helper.make_tensor_value_info(name, *kinds.get(name, (TensorProto.DOUBLE, ["rows", None])))
            for name in outputs
        ]
        rows = helper.make_tensor_value_info(self.rows, TensorProto.DOUBLE, ["rows", self.width])
        graph = helper.make_graph([*self._nodes, *renamed], "privada", [rows], infos, self._constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", LEARNT_OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR, producer_name="privada")
        for key, value in notes.items():
            if value is not None:
                entry = model.metadata_props.add()
                entry.key, entry.value = key, value if isinstance(value, str) else json.dumps(value)
        blob: bytes = model.SerializeToString()
        return blob


def add_trees(graph: OnnxGraph, x: str, *, splits: Any, cuts: Any, trees: Any, scores: int) -> str:
    """What trees add to each of some scores."""
    if not len(trees):
        raise InputError("Expected at least one tree.")
    ends = np.append(trees[1:, 0], len(splits))
    owner = np.repeat(np.arange(len(trees)), ends - trees[:, 0])
    own = np.arange(len(splits)) - trees[owner, 0]
    leaf = splits[:, 0] < 0
    below = np.where(leaf[:, None], 0, splits[:, 1:] - trees[owner, :1])
    sums = graph.apply(
        "TreeEnsembleRegressor",
        x,
        domain="ai.onnx.ml",
        n_targets=scores,
        nodes_treeids=owner.tolist(),
        nodes_nodeids=own.tolist(),
        nodes_featureids=np.where(leaf, 0, splits[:, 0]).tolist(),
        nodes_modes=["LEAF" if is_leaf else "BRANCH_LEQ" for is_leaf in leaf],
        nodes_truenodeids=below[:, 0].tolist(),
        nodes_falsenodeids=below[:, 1].tolist(),
        nodes_values_as_tensor=_tensor("nodes", np.where(leaf, 0.0, cuts)),
        target_treeids=owner[leaf].tolist(),
        target_nodeids=own[leaf].tolist(),
        target_ids=trees[owner[leaf], 1].tolist(),
        target_weights_as_tensor=_tensor("leaves", cuts[leaf]),
    )
    return graph.apply("Cast", sums, to=11)


def _tensor(name: str, values: npt.NDArray[np.float64]) -> Any:
    from onnx import numpy_helper

    return numpy_helper.from_array(np.asarray(values, dtype=np.float64), name)


__all__ = ["CLASSES", "FEATURES", "GUARANTEE", "OnnxGraph", "add_trees"]
