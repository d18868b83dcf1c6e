"""What an ONNX graph may hold, read without running it.

Operators are from a list: arithmetic, activations, trees, linear and kernel models; nothing random,
no loops, branches or subgraphs, no strings. Whatever says a place, a shape or an axis is constant,
or the place of a largest or least number, and only floats are divided. So shapes are the same for
every record, and nothing that a record holds makes a run fail, or take more memory. The owner does
not rely on that: a record whose run fails nevertheless has no class (`privada.methods.marginals.onnx`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from privada.exceptions import InputError

LARGEST_NODES = 2_000

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
_CARRIES = frozenset(("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten"))


def inspect(blob: bytes) -> None:
    """Raise `InputError` for a graph with anything beyond what is allowed."""
    model = _parsed(blob)
    graph = model.graph
    if model.functions or graph.sparse_initializer or len(graph.node) > LARGEST_NODES:
        raise InputError(f"Expected an ONNX graph without functions, of at most {LARGEST_NODES} nodes.")
    for node in graph.node:
        _check_operator(node)
    for tensor in _tensors(graph):
        _check_tensor(tensor)
    _check_places(graph)
    _check_division(model)
    fed = {tensor.name for tensor in graph.initializer}
    if len([entry for entry in graph.input if entry.name not in fed]) != 1 or not graph.output:
        raise InputError("Expected an ONNX model of one input, whose first output is the class.")


def _parsed(blob: bytes) -> Any:
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load_model_from_string(blob)
        onnx.checker.check_model(model)
    except (DecodeError, onnx.checker.ValidationError, ValueError, TypeError):
        raise InputError("Expected a valid ONNX model.") from None
    return model


def _check_operator(node: Any) -> None:
    import onnx

    domain = "" if node.domain == "ai.onnx" else node.domain
    if node.op_type not in ALLOWED.get(domain, ()):
        raise InputError(f"The ONNX operator {domain}.{node.op_type} is not allowed.".replace(" .", " "))
    for part in node.attribute:
        if part.g.node or part.graphs:
            raise InputError(f"The ONNX operator {node.op_type} holds a subgraph.")
        if part.HasField("sparse_tensor") or part.sparse_tensors:
            raise InputError(f"The ONNX operator {node.op_type} holds a sparse tensor.")
        named = part.name.endswith("_strings") and part.strings
        cast = node.op_type == "Cast" and part.name == "to" and part.i == onnx.TensorProto.STRING
        if named or cast or part.name == "value_string":
            raise InputError(f"The ONNX operator {node.op_type} makes strings of numbers, or the reverse.")


def _tensors(graph: Any) -> Iterator[Any]:
    """Initializers, and those among the attributes of nodes."""
    yield from graph.initializer
    for node in graph.node:
        for part in node.attribute:
            if part.HasField("t"):
                yield part.t
            yield from part.tensors


def _check_tensor(tensor: Any) -> None:
    import onnx

    if tensor.external_data or tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise InputError("Expected an ONNX model without external data.")
    if tensor.data_type == onnx.TensorProto.STRING:
        raise InputError("Expected an ONNX model without strings.")


def _check_places(graph: Any) -> None:
    """Places, shapes and axes are constant, or where the largest or the least number is."""
    constant = {tensor.name for tensor in graph.initializer} | {""}  # an input left out has no name
    places: set[str] = set()
    for node in graph.node:
        if node.op_type in _SHAPED and not constant.issuperset(node.input[1:]):
            raise InputError(f"The ONNX operator {node.op_type} has a computed shape or axis.")
        if node.op_type in _PLACED and not (constant | places).issuperset(node.input[1:2]):
            raise InputError(f"The ONNX operator {node.op_type} has a computed index.")
        if constant.issuperset(node.input):
            constant.update(node.output)
        carried = node.op_type in _CARRIES and node.input[0] in places
        if node.op_type in _PLACES or carried:
            places.update(node.output)


def _check_division(model: Any) -> None:
    """Only floats are divided: a whole number by 0 ends the process. Both inputs have one type."""
    import onnx

    if not any(node.op_type == "Div" for node in model.graph.node):
        return
    del model.graph.value_info[:]  # what the model says of itself is not taken for granted
    scores = [
        node.output[_SCORES[node.op_type] :][:1] for node in model.graph.node if node.op_type in _SCORES
    ]
    kinds = onnx.TensorProto
    known = [
        onnx.helper.make_tensor_value_info(name, kinds.FLOAT, None) for names in scores for name in names
    ]
    model.graph.value_info.extend(known)
    try:
        graph = onnx.shape_inference.infer_shapes(model).graph
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError):
        raise InputError("Expected a valid ONNX model.") from None
    types = {value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.value_info)}
    types |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    floats = {kinds.FLOAT, kinds.DOUBLE, kinds.FLOAT16, kinds.BFLOAT16}
    for node in graph.node:
        if node.op_type == "Div" and not any(types.get(name) in floats for name in node.input):
            raise InputError("The ONNX operator Div is allowed for floats only.")


__all__ = ["ALLOWED", "inspect"]
