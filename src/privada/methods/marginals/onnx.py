"""ONNX hypotheses: read without running, run without trusting.

The graph is parsed and every operator checked against a list: arithmetic, activations,
trees, linear and kernel models; nothing random, no loops, branches or subgraphs, nothing
whose size depends on values. So neither time nor memory depends on what a row holds. It
is then tried on public rows before anything is charged, and run on the owner's rows in a
process of its own under limits of time and memory, one record at a time. A record for
which it returns other than a class counts as an error, whatever the other records are.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from privada.exceptions import AnswerError, InputError
from privada.methods.marginals._onnx_worker import HEADER
from privada.methods.marginals.hypothesis import Arrays, FloatArray, Hypothesis, IntArray

LARGEST_MODEL = 20_000_000  # bytes
LARGEST_NODES = 2_000
MEMORY = 4 * 2**30  # bytes of address space of the worker
SECONDS = 120  # for one batch of rows
TRIAL_SECONDS = 30  # for a few public rows

_PLAIN = (
    "Abs Add And ArgMax ArgMin Cast Clip Concat Constant Div Elu Equal Erf Exp Flatten Gather Gelu Gemm "
    "Greater GreaterOrEqual HardSigmoid HardSwish Identity LayerNormalization LeakyRelu Less LessOrEqual Log "
    "LogSoftmax MatMul Max Min Mul Neg Not Or PRelu Pow Reciprocal ReduceMax ReduceMean ReduceMin ReduceSum "
    "ReduceSumSquare Relu Reshape Selu Sigmoid Sign Slice Softmax Softplus Softsign Split Sqrt Squeeze Sub "
    "Sum Tanh Transpose Unsqueeze Where Xor"
)
_LEARNT = (
    "ArrayFeatureExtractor Binarizer Imputer LabelEncoder LinearClassifier LinearRegressor Normalizer "
    "SVMClassifier SVMRegressor Scaler TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor"
)
ALLOWED = {"": frozenset(_PLAIN.split()), "ai.onnx.ml": frozenset(_LEARNT.split())}


@dataclass(frozen=True, kw_only=True, eq=False)
class Onnx(Hypothesis):
    """A classifier as an ONNX model whose first output is the code of a class.

    Parameters
    ----------
    model : array of uint8
        The serialised model.
    """

    model: npt.NDArray[np.uint8]
    form: ClassVar[str] = "onnx"

    def __post_init__(self) -> None:
        blob = np.asarray(self.model, dtype=np.uint8).tobytes()
        if not 0 < len(blob) <= LARGEST_MODEL:
            raise InputError(f"Expected an ONNX model of 1 to {LARGEST_MODEL} bytes, got {len(blob)}.")
        _inspect(blob)
        object.__setattr__(self, "model", np.frombuffer(blob, dtype=np.uint8))

    def codes(self, X: FloatArray) -> IntArray:
        return run(self.model.tobytes(), X)

    def fits(self, width: int, n_classes: int) -> None:
        reason = _tried(self.model.tobytes(), width, n_classes)
        if reason:
            raise InputError(f"The ONNX hypothesis {reason}; nothing was charged.")

    def parts(self) -> tuple[dict[str, Any], Arrays]:
        return {}, {"model": self.model}

    @classmethod
    def from_parts(cls, plain: dict[str, Any], arrays: Arrays) -> Self:
        return cls(**plain, model=arrays["model"])


def _inspect(blob: bytes) -> None:
    """Refuse a graph with anything beyond the list, without running it."""
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load_model_from_string(blob)
        onnx.checker.check_model(model)
    except (DecodeError, onnx.checker.ValidationError, ValueError, TypeError):
        raise InputError("Expected a valid ONNX model.") from None
    graph = model.graph
    if model.functions or graph.sparse_initializer or len(graph.node) > LARGEST_NODES:
        raise InputError(f"Expected an ONNX graph without functions, of at most {LARGEST_NODES} nodes.")
    for node in graph.node:
        domain = "" if node.domain == "ai.onnx" else node.domain
        if node.op_type not in ALLOWED.get(domain, ()):
            raise InputError(f"The ONNX operator {domain}.{node.op_type} is not allowed.".replace(" .", " "))
        if any(part.g.node or part.graphs for part in node.attribute):
            raise InputError(f"The ONNX operator {node.op_type} holds a subgraph.")
    if any(tensor.external_data for tensor in graph.initializer):
        raise InputError("Expected an ONNX model without external data.")
    fed = {tensor.name for tensor in graph.initializer}
    if len([entry for entry in graph.input if entry.name not in fed]) != 1 or not graph.output:
        raise InputError("Expected an ONNX model of one input, whose first output is the class.")


def run(blob: bytes, X: FloatArray, *, seconds: float = SECONDS, memory: int = MEMORY) -> IntArray:
    """Codes of all rows from a worker of its own; -1 where a record gets no class.

    Raises `AnswerError` if the worker fails or passes a limit; it is killed then.
    """
    rows = np.ascontiguousarray(X, dtype="<f8")
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    header = HEADER.pack(memory, max(1, int(np.ceil(seconds))), len(rows), rows.shape[1], len(blob))
    command = [sys.executable, "-m", "privada.methods.marginals._onnx_worker"]
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    try:
        done = subprocess.run(  # noqa: S603 - our own module, no shell
            command,
            input=header + rows.tobytes() + blob,
            capture_output=True,
            timeout=seconds,
            check=False,
            env=kept | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
    except subprocess.TimeoutExpired:
        raise AnswerError("The hypothesis passed its limit of time and was stopped.") from None
    if done.returncode or len(done.stdout) != 8 * len(rows):
        raise AnswerError("The hypothesis failed, or passed its limit of memory or time.")
    return np.frombuffer(done.stdout, dtype="<i8").astype(np.int64)


@lru_cache(maxsize=64)
def _tried_by_digest(digest: str, width: int, n_classes: int) -> str:
    blob = _WAITING[digest]
    public = np.vstack([np.zeros((1, width)), np.random.default_rng(0).normal(0, 2, size=(15, width))])
    try:
        found = [run(blob, public, seconds=TRIAL_SECONDS) for _ in range(2)]
    except AnswerError:
        return "fails, or passes a limit, on public rows"
    if not np.array_equal(found[0], found[1]):
        return "is not deterministic"
    if np.any((found[0] < 0) | (found[0] >= n_classes)):
        return f"returns other than class codes 0 to {n_classes - 1}"
    return ""


_WAITING: dict[str, bytes] = {}


def _tried(blob: bytes, width: int, n_classes: int) -> str:
    """Why a model is refused after a trial on public rows, or nothing; each model is tried once."""
    digest = hashlib.sha256(blob).hexdigest()
    _WAITING[digest] = blob
    try:
        return _tried_by_digest(digest, width, n_classes)
    finally:
        _WAITING.pop(digest, None)


def of_model(model: Any, *, mean: FloatArray, scale: FloatArray) -> Onnx:
    """Any scikit-learn classifier on ``(X - mean) / scale``, through skl2onnx."""
    from skl2onnx import to_onnx
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler()
    scaler.mean_, scaler.scale_, scaler.var_ = mean, scale, scale**2
    scaler.n_features_in_ = len(mean)
    pipeline = make_pipeline(scaler, model)
    options = {id(pipeline): {"zipmap": False}}
    made = to_onnx(pipeline, np.zeros((1, len(mean)), dtype=np.float32), options=options)
    return Onnx(model=np.frombuffer(made.SerializeToString(), dtype=np.uint8))


__all__ = ["ALLOWED", "Onnx", "of_model", "run"]
