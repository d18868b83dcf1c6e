"""ONNX hypotheses: read without running, run without trusting, and neither in this process.

An `Onnx` is bytes. Making one, or loading a question that holds one, parses nothing and runs nothing.
When an owner has decided that it wants to answer, `Onnx.fits` starts a worker
(`sandbox._onnx_worker`) that can open neither files nor sockets and ends with its
parent. There the graph is parsed, checked against a list (`sandbox._onnx_graph`) and
tried on public rows, before anything is charged. It is run on the owner's rows in such workers, too, under
limits of time and memory, one record at a time.

*Why one record decides nothing but its own outcome.* A record for which the graph returns other
than a class, errs, is stopped by a limit or ends its process has no class, and counts as an
error; the next record has a new process, forked from one that has never run a row. Time and
memory are limited for each record alone. Nothing is limited that records share: neither the
time of all of them nor the number of new processes, for at such a limit one record more would
decide what becomes of all the others. What all records share, loading the model, is over before the first
row is sent; only that can fail an answer. Rows travel in chunks of one size, so the memory in use does
not tell how many there are.

*Why the work is bounded all the same.* No operator on the list works longer for one record than for
another, but trees, whose levels are counted, and the look-up of a place, which fails beyond its table
and is counted as such unless the sizes of both are known. So the seconds that public records took, and
those, say what a private record takes (`Onnx.seconds`). An owner multiplies them by
the declared number of rows, never the true one, and refuses what takes too long before the charge
(`privada.parties.Policy.admit_work`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import signal
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada._extras import require
from privada.exceptions import AnswerError, InputError
from privada.methods.hypotheses.questions.forms import Arrays, Hypothesis
from privada.methods.hypotheses.questions.sandbox import _onnx_worker
from privada.methods.hypotheses.questions.sandbox._onnx_graph import ALLOWED
from privada.methods.hypotheses.questions.sandbox._onnx_worker import (
    FAILED,
    INSPECT,
    PROBE,
    REFUSED,
    RUN,
    UNSEALED,
)

_LOG = logging.getLogger("privada.owner")
LARGEST_MODEL = 20_000_000  # bytes
MOST_OUTPUTS = 4_096
LONGEST_TEXT = 4_096  # bytes that a worker may say
MEMORY = 4 * 2**30  # bytes of address space of the worker
RECORD_SECONDS = 2.0  # of the processor, for one record
TRIAL_SECONDS = RECORD_SECONDS / 20  # for one public record: far from the limit of a private one
LEVEL_SECONDS = 2e-8  # of a level of a tree
FAILURE_SECONDS = 5e-3  # of a record whose run fails: the next one has a new process
VERDICTS = 256  # that are remembered


@dataclass(frozen=True, kw_only=True, eq=False)
class Onnx(Hypothesis):
    """A model as ONNX: its first output is the code of a class, its first output of floats are scores.

    Parameters
    ----------
    model : array of uint8
        The serialised model. It is looked at by `fits`, in a process of its own, and not before.
    outputs : int, default=0
        How many scores a record has; 0 if only codes are asked for.
    """

    model: npt.NDArray[np.uint8]
    outputs: int = 0
    form: ClassVar[str] = "onnx"

    def __post_init__(self) -> None:
        blob = np.asarray(self.model, dtype=np.uint8).tobytes()
        if not 0 < len(blob) <= LARGEST_MODEL:
            raise InputError(f"Expected an ONNX model of 1 to {LARGEST_MODEL} bytes, got {len(blob)}.")
        object.__setattr__(self, "model", np.frombuffer(blob, dtype=np.uint8))
        if _check.count(least=0, outputs=self.outputs) > MOST_OUTPUTS:
            raise InputError(f"Expected at most {MOST_OUTPUTS} outputs, got {self.outputs}.")

    def parts(self) -> tuple[dict[str, Any], Arrays]:
        plain, arrays = super().parts()
        return (plain if self.outputs else {}), arrays  # files of models without scores are as they were

    def scores(self, X: FloatArray) -> FloatArray:
        return run_scores(self.model.tobytes(), X, outputs=self.outputs)

    def fits_scores(self, width: int, outputs: int) -> None:
        if not self.outputs or self.outputs != outputs:
            raise InputError(f"Expected an ONNX hypothesis of {outputs} scores, got {self.outputs}.")
        self._accept(_verdict(self.model.tobytes(), width, outputs))

    def codes(self, X: FloatArray) -> IntArray:
        return run(self.model.tobytes(), X)

    def fits(self, width: int, n_classes: int) -> None:
        self.try_out(width)
        highest = _verdict(self.model.tobytes(), width).highest
        if highest >= n_classes:
            raise InputError(f"The ONNX hypothesis {_other_codes(n_classes)}; nothing was charged.")

    def try_out(self, width: int) -> None:
        """Inspect the graph and run it on public rows, in a worker; raise `InputError` if it is refused."""
        self._accept(_verdict(self.model.tobytes(), width))

    @staticmethod
    def _accept(verdict: _Verdict) -> None:
        if verdict.reason:
            raise InputError(f"{verdict.reason}; nothing was charged.")

    def seconds(self, width: int) -> float:
        return _verdict(self.model.tobytes(), width, self.outputs).seconds


def run(blob: bytes, X: FloatArray, *, seconds: float = RECORD_SECONDS, memory: int = MEMORY) -> IntArray:
    """Codes of all rows, each from that row alone; negative where a record has no class.

    Raises `AnswerError` if the model cannot be loaded, or the worker is ended from outside.
    """
    rows = np.ascontiguousarray(X, dtype="<f8")
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    with _worker() as worker:
        worker.load(blob, purpose=RUN, width=rows.shape[1], seconds=seconds, memory=memory)
        return worker.label(rows)


def run_scores(blob: bytes, X: FloatArray, *, outputs: int) -> FloatArray:
    """Scores of all rows, each from that row alone; not a number where a record has none. Raises as `run`."""
    rows = np.ascontiguousarray(X, dtype="<f8")
    if not len(rows):
        return np.zeros((0, outputs))
    with _worker(outputs) as worker:
        worker.load(blob, purpose=RUN, width=rows.shape[1], seconds=RECORD_SECONDS, memory=MEMORY)
        return worker.label(rows)


def probe() -> list[dict[str, str]]:
    """What a worker, and a process that it forks, can do once locked in: an error's name for each attempt.

    For tests, and for whoever wants to see whether this machine's kernel keeps a worker in.
    """
    with _worker() as worker:
        worker.send(b"", purpose=PROBE, width=1, seconds=1.0, memory=MEMORY)
        return [json.loads(worker.status()[2]) for _ in range(2)]


class _Worker:
    """A worker process, from this side."""

    def __init__(self, process: subprocess.Popen[bytes], outputs: int = 0) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out, self._outputs = process.stdin, process.stdout, outputs

    def send(self, blob: bytes, *, purpose: int, width: int, seconds: float, memory: int) -> None:
        """Send what the worker is for, and the model."""
        header = _onnx_worker.HEADER.pack(purpose, memory, width, self._outputs, len(blob), seconds)
        self._in.write(header + blob)
        self._in.flush()

    def status(self) -> tuple[int, float, str]:
        """What became of the model, seconds that no trial shows, and what the worker says."""
        raw = _exactly(self._out, _onnx_worker.STATUS.size)
        state, levels, fails, length = _onnx_worker.STATUS.unpack(raw)
        if not 0 <= length <= LONGEST_TEXT or levels < 0:
            raise EOFError
        if state == UNSEALED:
            _note_unsealed()
        hidden = LEVEL_SECONDS * levels + (FAILURE_SECONDS if fails else 0.0)
        return state, hidden, _exactly(self._out, length).decode(errors="replace")

    def load(
        self, blob: bytes, *, purpose: int, width: int, seconds: float, memory: int
    ) -> tuple[float, str]:
        """Send the model and wait; seconds for a record that no trial shows, or why it is refused."""
        self.send(blob, purpose=purpose, width=width, seconds=seconds, memory=memory)
        state, hidden, text = self.status()
        return hidden, text if state == REFUSED else ""

    def label(self, rows: FloatArray) -> npt.NDArray[Any]:
        """Codes or scores of rows, which are sent in chunks of one size, the last one filled up."""
        size = self._at_once(rows.shape[1])
        starts = range(0, len(rows), size)
        return np.concatenate([self._chunk(rows[start : start + size], size) for start in starts])

    def time(self, rows: FloatArray) -> tuple[npt.NDArray[Any], FloatArray]:
        """Codes or scores, and seconds, of a few rows, by a worker that inspects."""
        size = self._at_once(rows.shape[1])
        found = self._chunk(rows, size)
        costs = np.frombuffer(_exactly(self._out, 8 * size), dtype="<f8")
        return found, costs[: len(rows)]

    def _at_once(self, width: int) -> int:
        return _onnx_worker.at_once(max(width, self._outputs))

    def _chunk(self, part: FloatArray, size: int) -> npt.NDArray[Any]:
        chunk = np.zeros((size, part.shape[1]), dtype="<f8")
        chunk[: len(part)] = part
        self._in.write(_onnx_worker.COUNT.pack(*part.shape))
        self._in.write(chunk.tobytes())
        self._in.flush()
        blob = _exactly(self._out, 8 * size * max(1, self._outputs))
        if not self._outputs:
            return np.frombuffer(blob, dtype="<i8")[: len(part)]
        return np.frombuffer(blob, dtype="<f8").reshape(size, self._outputs)[: len(part)]


@contextlib.contextmanager
def _worker(outputs: int = 0) -> Iterator[_Worker]:
    """A worker that is gone afterwards, with all that it forked, whatever happens."""
    process = _started()
    try:
        yield _Worker(process, outputs)
    except (BrokenPipeError, EOFError):
        raise AnswerError("The hypothesis could not be loaded within its limits, or was stopped.") from None
    finally:
        _end(process)


def _started() -> subprocess.Popen[bytes]:
    """A worker without an environment: it finds libraries as here, but none in the current directory."""
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    absolute = [entry for entry in path if Path(entry).is_absolute()]
    script = str(Path(_onnx_worker.__file__).resolve())
    return subprocess.Popen(  # noqa: S603 - our own module, no shell
        [sys.executable, "-P", script, str(os.getpid()), *absolute],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=os.sep,
        env={},
        start_new_session=True,
    )


def _end(worker: subprocess.Popen[bytes]) -> None:
    """End the worker with all that it forked."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    with contextlib.suppress(BrokenPipeError):
        worker.communicate()


def _exactly(stream: IO[bytes], length: int) -> bytes:
    found = stream.read(length)
    if len(found) != length:
        raise EOFError
    return found


@cache
def _note_unsealed() -> None:
    """Say once that the sandbox has one wall less."""
    _LOG.warning(
        "This platform has no seccomp filter for hypotheses: their workers are held by limits of memory, "
        "time and open files alone."
    )


@dataclass(frozen=True, kw_only=True)
class _Verdict:
    """What a trial of a model has shown: why it is refused, its highest code, and seconds for a record."""

    reason: str = ""
    highest: int = 0
    seconds: float = 0.0


FAILS = "The ONNX hypothesis fails, or passes a limit, on public rows"
_VERDICTS: OrderedDict[tuple[str, int, int], _Verdict] = OrderedDict()


def _verdict(blob: bytes, width: int, outputs: int = 0) -> _Verdict:
    """What becomes of a model on rows of some width; each is inspected and tried once."""
    key = hashlib.sha256(blob).hexdigest(), width, outputs
    found = _VERDICTS.get(key)
    if found is None:
        require("onnx", "onnx", "onnxruntime", purpose="An ONNX hypothesis")
        try:
            found = _tried(blob, width, outputs)
        except AnswerError:
            found = _Verdict(reason=FAILS)
        _VERDICTS[key] = found
        while len(_VERDICTS) > VERDICTS:
            _VERDICTS.popitem(last=False)
    return found


def _tried(blob: bytes, width: int, outputs: int = 0) -> _Verdict:
    """Inspect a model and run it on public rows, twice, each time after one that warms the process."""
    public = np.vstack([np.zeros((1, width)), np.random.default_rng(0).normal(0, 2, size=(15, width))])
    with _worker(outputs) as worker:
        hidden, refused = worker.load(
            blob, purpose=INSPECT, width=width, seconds=TRIAL_SECONDS, memory=MEMORY
        )
        if refused:
            return _Verdict(reason=_plain(refused))
        found, costs = [], []
        for _ in range(2):
            labelled, seconds = worker.time(np.vstack([public[:1], public]))
            if not np.isfinite(labelled).all() or (not outputs and np.any(labelled == FAILED)):
                return _Verdict(reason=FAILS)
            found.append(labelled[1:])
            costs.append(seconds[1:])
    if not np.array_equal(found[0], found[1]):
        return _Verdict(reason="The ONNX hypothesis is not deterministic")
    # Another process can only make a record look dearer: of two measurements the smaller one counts.
    cost = float(np.minimum(costs[0], costs[1]).max()) + hidden
    highest = 0 if outputs else int(found[0].max()) if found[0].min() >= 0 else 2**31
    return _Verdict(highest=highest, seconds=cost)


def _other_codes(n_classes: int) -> str:
    return f"returns other than class codes 0 to {n_classes - 1}"


def _plain(text: str) -> str:
    """What a worker says, as one short line: names in it are a learner's choice."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:300])


def of_model(model: Any, *, mean: FloatArray, scale: FloatArray) -> Onnx:
    """Any scikit-learn classifier on ``(X - mean) / scale``, through skl2onnx."""
    require("onnx", "onnx", "onnxruntime", "skl2onnx", purpose="A model as ONNX")
    from skl2onnx import to_onnx
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler()
    scaler.mean_, scaler.scale_, scaler.var_ = mean, scale, scale**2
    scaler.n_features_in_ = len(mean)
    pipeline = make_pipeline(scaler, model)
    options = {id(pipeline): {"zipmap": False}}
    made = to_onnx(pipeline, np.zeros((1, len(mean)), dtype=np.float32), options=options)
    hypothesis = Onnx(model=np.frombuffer(made.SerializeToString(), dtype=np.uint8))
    hypothesis.try_out(len(mean))
    return hypothesis


__all__ = ["ALLOWED", "Onnx", "of_model", "probe", "run"]
