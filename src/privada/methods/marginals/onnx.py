"""ONNX hypotheses: read without running, run without trusting.

The graph is parsed and checked against a list (`privada.methods.marginals._onnx_graph`): sizes
do not depend on what a row holds. It is then tried on public rows before anything is charged,
and run on the owner's rows in processes of their own under limits of time and memory, one
record at a time.

*Why one record decides nothing but its own outcome.* A record for which the graph returns other
than a class, errs, is stopped by a limit or ends its process has no class, and counts as an
error; the next record has a new process, forked from one that has never run a row. Time and
memory are limited for each record alone. Nothing is limited that records share: neither the
time of all of them nor the number of new processes, for at such a limit one record more would
decide what becomes of all the others. The worst case is public instead, `RECORD_SECONDS` (and
`PATIENCE` by the clock) times the number of records, and out of reach of a graph that passed its
trial: there every record must be done in a twentieth of that. Rows travel in chunks of one size,
so the memory in use does not tell how many there are. What all records share, loading the model,
is over before the first row is sent; only that can fail an answer.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from privada.exceptions import AnswerError, InputError
from privada.methods.marginals import _onnx_worker
from privada.methods.marginals._onnx_graph import ALLOWED
from privada.methods.marginals._onnx_graph import inspect as _inspect
from privada.methods.marginals._onnx_worker import FAILED
from privada.methods.marginals.hypothesis import Arrays, FloatArray, Hypothesis, IntArray

LARGEST_MODEL = 20_000_000  # bytes
MEMORY = 4 * 2**30  # bytes of address space of the worker
RECORD_SECONDS = 2.0  # of the processor, for one record
TRIAL_SECONDS = RECORD_SECONDS / 20  # for one public record: far from the limit of a private one


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


def run(blob: bytes, X: FloatArray, *, seconds: float = RECORD_SECONDS, memory: int = MEMORY) -> IntArray:
    """Codes of all rows, each from that row alone; negative where a record has no class.

    Raises `AnswerError` if the model cannot be loaded, or the worker is ended from outside.
    """
    rows = np.ascontiguousarray(X, dtype="<f8")
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    worker = _started()
    try:
        return _labelled(worker, blob, rows, seconds=seconds, memory=memory)
    except (BrokenPipeError, EOFError):
        raise AnswerError("The hypothesis could not be loaded within its limits, or was stopped.") from None
    finally:
        _end(worker)


def _started() -> subprocess.Popen[bytes]:
    """A worker that finds libraries where this process does, but none in the current directory."""
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    kept = {
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": os.pathsep.join(entry for entry in path if Path(entry).is_absolute()),
    }
    return subprocess.Popen(  # noqa: S603 - our own module, no shell
        [sys.executable, "-P", str(Path(_onnx_worker.__file__).resolve())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=os.sep,
        env=kept | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        start_new_session=True,
    )


def _end(worker: subprocess.Popen[bytes]) -> None:
    """End the worker with all that it forked."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    with contextlib.suppress(BrokenPipeError):
        worker.communicate()


def _labelled(
    worker: subprocess.Popen[bytes], blob: bytes, rows: FloatArray, *, seconds: float, memory: int
) -> IntArray:
    """Send the model, then rows in chunks of one size, the last one filled up."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    width = rows.shape[1]
    size = _onnx_worker.at_once(width)
    worker.stdin.write(_onnx_worker.HEADER.pack(memory, width, len(blob), seconds) + blob)
    worker.stdin.flush()
    _exactly(worker.stdout, len(_onnx_worker.READY))
    codes = np.empty(len(rows), dtype=np.int64)
    chunk = np.zeros((size, width), dtype="<f8")
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        chunk[: len(part)] = part
        worker.stdin.write(_onnx_worker.COUNT.pack(len(part)))
        worker.stdin.write(chunk.tobytes())
        worker.stdin.flush()
        found = np.frombuffer(_exactly(worker.stdout, 8 * size), dtype="<i8")
        codes[start : start + size] = found[: len(part)]
    return codes


def _exactly(stream: IO[bytes], length: int) -> bytes:
    found = stream.read(length)
    if len(found) != length:
        raise EOFError
    return found


FAILS = "fails, or passes a limit, on public rows"


@lru_cache(maxsize=64)
def _tried_by_digest(digest: str, width: int, n_classes: int) -> str:
    blob = _WAITING[digest]
    public = np.vstack([np.zeros((1, width)), np.random.default_rng(0).normal(0, 2, size=(15, width))])
    found = []
    for _ in range(2):
        try:
            found.append(run(blob, public, seconds=TRIAL_SECONDS))
        except AnswerError:
            return FAILS
        if np.any(found[-1] == FAILED):
            return FAILS
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
