"""What an ONNX graph may contain, read without running it.

This module is loaded by its path in the worker that runs the graph (`_onnx_worker`), after its
lock-down, and nowhere else: a learner's bytes are not even parsed in an owner's own process.

Operators are from a list: arithmetic, activations, trees, linear and kernel models; nothing random,
no loops, branches or subgraphs, no strings. Whatever says a place, a shape or an axis is constant,
or the place of a largest or least number, and only floats are divided. So shapes are the same for
every record, and nothing that a record holds makes a run fail, or take more memory. The owner does
not rely on that: a record whose run fails nevertheless has no class (`hypotheses.onnx`).

What a graph may cost is bounded here too, as far as it can be read off: the numbers in all its tensors
for one record, constants included, and the levels of its trees, which end. Tensors that are kept in
other files are refused before anything looks for those files.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

LARGEST_NODES = 2_000
LARGEST_NUMBERS = 2**26  # in all tensors of a graph, for one record
DEEPEST_TREE = 1_000  # levels

_PLAIN = (
    "Abs Add And ArgMax ArgMin Cast Clip Concat Constant Div Elu Equal Erf Exp Flatten Gather Gelu Gemm "
    "Greater GreaterOrEqual HardSigmoid HardSwish Identity LayerNormalization LeakyRelu Less LessOrEqual Log "
    "LogSoftmax MatMul Max Min Mul Neg Not Or PRelu Pow Reciprocal ReduceLogSumExp ReduceMax ReduceMean "
    "ReduceMin ReduceSum ReduceSumSquare Relu Reshape Selu Sigmoid Sign Slice Softmax Softplus Softsign "
    "Split Sqrt Squeeze Sub Sum Tanh Transpose Unsqueeze Where Xor"
)
_LEARNT = (
    "ArrayFeatureExtractor Binarizer Imputer LabelEncoder LinearClassifier LinearRegressor Normalizer "
    "SVMClassifier SVMRegressor Scaler TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor"
)
ALLOWED = {"": frozenset(_PLAIN.split()), "ai.onnx.ml": frozenset(_LEARNT.split())}
_AXES = ("ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "ReduceSumSquare")
_SHAPED = frozenset(
    ("Reshape", "Slice", "Split", "Squeeze", "Unsqueeze", *_AXES)
)  # by inputs after the first
_PLACED = frozenset(("Gather", "ArrayFeatureExtractor"))  # by their second input
_PLACES = frozenset(("ArgMax", "ArgMin"))  # the place of a number, never beyond the numbers there are
_SCORES = {  # which output is of floats, whatever the input: inference does not know
    "LinearClassifier": 1,
    "LinearRegressor": 0,
    "Normalizer": 0,
    "SVMClassifier": 1,
    "SVMRegressor": 0,
    "Scaler": 0,
    "TreeEnsembleClassifier": 1,
    "TreeEnsembleRegressor": 0,
}
_SCORED = frozenset(("LinearClassifier", "TreeEnsembleClassifier"))
_SAME_SIZE = frozenset(("Normalizer", "Scaler"))  # as many numbers as their input has
_CARRIES = frozenset(("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten"))


class Refused(ValueError):  # noqa: N818 - a verdict, not a fault
    """Why a graph is not run."""


def inspect(blob: bytes, width: int) -> tuple[int, bool]:
    """Levels that one record goes down in all trees, and whether the run of a record may fail.

    `Refused` is raised for anything beyond what is allowed.
    """
    import onnx

    model = _parse(blob)
    graph = model.graph
    for node in graph.node:
        _check_operator(node)
    attributes = [part for node in graph.node for part in node.attribute]
    tensors = [*graph.initializer, *(part.t for part in attributes if part.HasField("t"))]
    tensors += [tensor for part in attributes for tensor in part.tensors]
    if any(tensor.data_type == onnx.TensorProto.STRING for tensor in tensors):
        raise Refused("Expected an ONNX model without strings")
    _check_places(graph)
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [entry for entry in graph.input if entry.name not in constants]
    if len(inputs) != 1 or not graph.output:
        raise Refused("Expected an ONNX model of one input, whose first output is the class")
    inferred = _infer_shapes(model, inputs[0], width)
    _check_cost(inferred)
    levels = sum(_count_levels(node) for node in graph.node if node.op_type.startswith("TreeEnsemble"))
    return levels, _may_miss(inferred)


def _parse(blob: bytes) -> Any:
    """Read a model and check it, once it is known to name no other file: the checker would look for one."""
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load_model_from_string(blob)
        graph = model.graph
        if model.functions or graph.sparse_initializer or len(graph.node) > LARGEST_NODES:
            raise Refused(f"Expected an ONNX graph without functions, of at most {LARGEST_NODES} nodes")
        for part in _list_messages(model):
            external = onnx.TensorProto.EXTERNAL
            if isinstance(part, onnx.TensorProto) and (part.external_data or part.data_location == external):
                raise Refused("Expected an ONNX model without external data")
        onnx.checker.check_model(model)
    except Refused:
        raise
    except (DecodeError, onnx.checker.ValidationError, ValueError, TypeError, RecursionError):
        raise Refused("Expected a valid ONNX model") from None
    return model


def _list_messages(message: Any) -> Iterator[Any]:
    """List all messages within one, however deep."""
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in (value,) if hasattr(value, "ListFields") else value:
                yield inner
                yield from _list_messages(inner)


def _check_operator(node: Any) -> None:
    import onnx

    domain = "" if node.domain == "ai.onnx" else node.domain
    if node.op_type not in ALLOWED.get(domain, ()):
        raise Refused(f"The ONNX operator {domain}.{node.op_type} is not allowed".replace(" .", " "))
    for part in node.attribute:
        if part.g.node or part.graphs:
            raise Refused(f"The ONNX operator {node.op_type} contains a subgraph")
        if part.HasField("sparse_tensor") or part.sparse_tensors:
            raise Refused(f"The ONNX operator {node.op_type} contains a sparse tensor")
        strings = part.name.endswith("_strings") and part.strings
        cast = node.op_type == "Cast" and part.name == "to" and part.i == onnx.TensorProto.STRING
        if strings or cast or part.name == "value_string":
            raise Refused(f"The ONNX operator {node.op_type} makes strings of numbers, or the reverse")


def _check_places(graph: Any) -> None:
    """Refuse places, shapes and axes that are neither constant nor the place of a largest or least number."""
    constant = {tensor.name for tensor in graph.initializer} | {""}  # an input left out has no name
    places: set[str] = set()
    for node in graph.node:
        if node.op_type in _SHAPED and not constant.issuperset(node.input[1:]):
            raise Refused(f"The ONNX operator {node.op_type} has a computed shape or axis")
        if node.op_type in _PLACED and not (constant | places).issuperset(node.input[1:2]):
            raise Refused(f"The ONNX operator {node.op_type} has a computed index")
        if constant.issuperset(node.input):
            constant.update(node.output)
        if node.op_type in _PLACES or (node.op_type in _CARRIES and node.input[0] in places):
            places.update(node.output)


def _infer_shapes(model: Any, rows: Any, width: int) -> Any:
    """The graph with the types and shapes of its tensors for one record, as far as they can be inferred."""
    import onnx

    del model.graph.value_info[:]  # what the model says of itself is not taken for granted
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    shapes: dict[str, list[int] | None] = {rows.name: [1, width]}
    for node in model.graph.node:
        for name in node.output[_SCORES.get(node.op_type, len(node.output)) :][:1]:
            shapes[name] = shapes.get(node.input[0]) if node.op_type in _SAME_SIZE else None
            for part in node.attribute:
                # Classifiers that keep to it have one score for each class, at least two.
                if part.name in ("classlabels_int64s", "classlabels_ints") and node.op_type in _SCORED:
                    shapes[name] = [1, max(2, len(part.ints))]
                    break
            info = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shapes[name])
            model.graph.value_info.append(info)
    for dimension, size in zip(rows.type.tensor_type.shape.dim, (1, width), strict=False):
        if not dimension.HasField("dim_value"):
            dimension.dim_value = size
    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError):
        raise Refused("Expected a valid ONNX model") from None


def _may_miss(graph: Any) -> bool:
    """Whether the place of a largest or least number may be beyond the table it is looked up in."""
    sizes = {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in (*graph.input, *graph.value_info, *graph.output)
    }
    sizes |= {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    spans: dict[str, int] = {}  # how many numbers a place is the place among; 0 is unknown
    for node in graph.node:
        axis = next((part.i for part in node.attribute if part.name == "axis"), 0)
        if node.op_type in _PLACES:
            spans.update(dict.fromkeys(node.output, _along(sizes.get(node.input[0]), axis)))
        elif node.op_type in _CARRIES and node.input[0] in spans:
            spans.update(dict.fromkeys(node.output, spans[node.input[0]]))
        elif node.op_type in _PLACED and node.input[1] in spans:
            last = -1 if node.op_type == "ArrayFeatureExtractor" else axis
            if not 0 < spans[node.input[1]] <= _along(sizes.get(node.input[0]), last):
                return True
    return False


def _along(sizes: list[int] | None, axis: int) -> int:
    """Size along an axis; 0 if it is not known."""
    return sizes[axis] if sizes and -len(sizes) <= axis < len(sizes) else 0


def _check_cost(graph: Any) -> None:
    """Bound what is computed for one record, and refuse divisions of whole numbers."""
    import onnx

    # A whole number divided by 0 ends the process. Both inputs of a division have one type.
    kinds = onnx.TensorProto
    types = {value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.value_info)}
    types |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    floats = {kinds.FLOAT, kinds.DOUBLE, kinds.FLOAT16, kinds.BFLOAT16}
    for node in graph.node:
        if node.op_type == "Div" and not any(types.get(name) in floats for name in node.input):
            raise Refused("The ONNX operator Div is allowed for floats only")
    # Constants are a part of the numbers, as nothing is folded at load.
    total = 0
    for value in (*graph.value_info, *graph.output):
        dimensions = [dim.dim_value for dim in value.type.tensor_type.shape.dim if dim.HasField("dim_value")]
        size = math.prod(dimensions)
        total += LARGEST_NUMBERS + 1 if min(dimensions, default=0) < 0 else size
    if total > LARGEST_NUMBERS:
        raise Refused(f"The ONNX graph passes a limit of {LARGEST_NUMBERS} numbers for one record")


def _count_levels(node: Any) -> int:
    """Count levels of all trees of a node, one after another; refuse trees that do not end."""
    import numpy as np

    try:
        below, owners, copies = _link_nodes({part.name: part for part in node.attribute})
    except (KeyError, ValueError, IndexError):
        raise Refused("Expected a valid ONNX model") from None
    # From every node, so that it does not matter which one a runtime starts at.
    levels, reached = 0, np.arange(len(below))
    for _ in range(DEEPEST_TREE):
        if not len(reached):
            return levels * copies
        levels += len(np.unique(owners[reached]))
        following = below[reached].ravel()
        reached = np.unique(following[following >= 0])
    raise Refused(f"The ONNX operator {node.op_type} has trees of more than {DEEPEST_TREE} levels")


def _link_nodes(parts: dict[str, Any]) -> tuple[Any, Any, int]:
    """Find the two nodes below each node (negative: none), the tree of each, and how often to count it."""
    import numpy as np

    def integers(name: str) -> Any:
        return np.array(parts[name].ints, dtype=np.int64)

    if "tree_roots" in parts:
        # Nodes refer to each other by place, and leaves are listed apart.
        below = np.stack([integers("nodes_truenodeids"), integers("nodes_falsenodeids")], axis=1)
        below[np.stack([integers("nodes_trueleafs"), integers("nodes_falseleafs")], axis=1) != 0] = -1
        if len(below) and below.max() >= len(below):
            raise ValueError
        return below, np.zeros(len(below), dtype=np.int64), len(parts["tree_roots"].ints)
    trees, own = integers("nodes_treeids"), integers("nodes_nodeids")
    place = {pair: index for index, pair in enumerate(zip(trees.tolist(), own.tolist(), strict=True))}
    stretches = 1 + np.count_nonzero(np.diff(trees))
    if len(place) != len(own) or stretches != len(np.unique(trees)):
        raise ValueError  # a node twice, or a tree in pieces
    leaf = [mode == b"LEAF" for mode in parts["nodes_modes"].strings]
    sides = []
    for name in ("nodes_truenodeids", "nodes_falsenodeids"):
        linked = zip(trees.tolist(), integers(name).tolist(), leaf, strict=True)
        sides.append([-1 if end else place[tree, node] for tree, node, end in linked])
    return np.array(sides, dtype=np.int64).T, trees, 1


__all__ = ["ALLOWED", "Refused", "inspect"]
