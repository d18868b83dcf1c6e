"""ONNX hypotheses: read without running them, run without trusting them, and neither in this process.

An `Onnx` is bytes. Making one, or loading a question that contains one, parses nothing and runs nothing.
When an owner has decided that it wants to answer, `Onnx.fits` starts a worker (`_onnx_worker`) that can open
neither files nor sockets and ends with its parent. There the graph is parsed, checked against a list
(`_onnx_graph`) and tried on public rows, before anything is charged. It is run on the owner's rows in such
workers, too, under limits of time and memory, one record at a time.

*Why a record decides nothing but its own outcome.* A record for which the graph returns other
than a class, fails, is stopped by a limit or ends its process has no class, and counts as an
error; the next record has a new process, forked from one that has never run a row. Time and
memory are limited for each record alone. Nothing is limited that records share: neither the
time of all of them nor the number of new processes, for at such a limit one record more would
decide what becomes of all the others. What all records share, loading the model, is over before the first
row is sent; only that can fail an answer. Rows travel in chunks of one size, so the memory in use does
not tell how many there are.

*Why the work is bounded all the same.* No operator on the list works longer for one record than for
another, except trees, whose levels are counted, and the look-up of a place, which fails beyond its table
and is counted as such unless the sizes of both are known. So these two, and the seconds that public records
took, say how long a private record takes (`Onnx.seconds`). An owner multiplies them by
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
from privada._arrays import AnyArray, FloatArray, IntArray
from privada._extras import require
from privada.exceptions import AnswerError, InputError
from privada.methods.hypotheses import _onnx_worker
from privada.methods.hypotheses._onnx_graph import ALLOWED
from privada.methods.hypotheses._onnx_worker import FAILED, INSPECT, PROBE, REFUSED, RUN, UNSEALED
from privada.methods.hypotheses.forms import Arrays, Hypothesis

_LOG = logging.getLogger("privada.owner")
LARGEST_MODEL = 20_000_000  # bytes
MOST_OUTPUTS = 4_096
LONGEST_TEXT = 4_096  # bytes of a worker's message
MEMORY = 4 * 2**30  # bytes of address space of the worker
RECORD_SECONDS = 2.0  # of the processor, for one record
TRIAL_SECONDS = RECORD_SECONDS / 20  # for one public record: far from the limit of a private one
LEVEL_SECONDS = 2e-8  # of a level of a tree
FAILURE_SECONDS = 5e-3  # of a record whose run fails: the next one has a new process
VERDICTS = 256  # that are remembered
FAILS = "The ONNX hypothesis fails, or passes a limit, on public rows"


@dataclass(frozen=True, kw_only=True, eq=False)
class Onnx(Hypothesis):
    """A model as ONNX: its first output is the code of a class, its first output of floats are scores.

    Parameters
    ----------
    model : array of uint8
        The serialised model. It is read by `fits`, in a process of its own, and not before.
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
        # Files of models without scores are as they were before there were scores.
        return (plain if self.outputs else {}), arrays

    def codes(self, X: FloatArray) -> IntArray:
        return run(self.model.tobytes(), X)

    def scores(self, X: FloatArray) -> FloatArray:
        return run_scores(self.model.tobytes(), X, outputs=self.outputs)

    def fits(self, width: int, n_classes: int) -> None:
        self.try_out(width)
        if self._judge(width).highest >= n_classes:
            raise InputError(
                f"The ONNX hypothesis returns other than class codes 0 to {n_classes - 1}; "
                "nothing was charged."
            )

    def fits_scores(self, width: int, outputs: int) -> None:
        if not self.outputs or self.outputs != outputs:
            raise InputError(f"Expected an ONNX hypothesis of {outputs} scores, got {self.outputs}.")
        self.try_out(width, outputs)

    def try_out(self, width: int, outputs: int = 0) -> None:
        """Inspect the graph and run it on public rows, in a worker; raise `InputError` if it is refused."""
        if reason := self._judge(width, outputs).reason:
            raise InputError(f"{reason}; nothing was charged.")

    def seconds(self, width: int) -> float:
        return self._judge(width, self.outputs).seconds

    def _judge(self, width: int, outputs: int = 0) -> _Verdict:
        """What becomes of this model on rows of some width; each model is inspected and tried once."""
        blob = self.model.tobytes()
        key = hashlib.sha256(blob).hexdigest(), width, outputs
        verdict = _VERDICTS.get(key)
        if verdict is None:
            require("onnx", "onnx", "onnxruntime", purpose="An ONNX hypothesis")
            try:
                verdict = _try_on_public_rows(blob, width, outputs)
            except AnswerError:
                verdict = _Verdict(reason=FAILS)
            _VERDICTS[key] = verdict
            while len(_VERDICTS) > VERDICTS:
                _VERDICTS.popitem(last=False)
        return verdict


@dataclass(frozen=True, kw_only=True)
class _Verdict:
    """The result of a model's trial: why it is refused, its highest code, and seconds for a record."""

    reason: str = ""
    highest: int = 0
    seconds: float = 0.0


_VERDICTS: OrderedDict[tuple[str, int, int], _Verdict] = OrderedDict()


def _try_on_public_rows(blob: bytes, width: int, outputs: int) -> _Verdict:
    """Inspect a model and run it on public rows, twice, each time after one that warms the process."""
    public = np.vstack([np.zeros((1, width)), np.random.default_rng(0).normal(0, 2, size=(15, width))])
    results, costs = [], []
    with _start_worker(outputs) as worker:
        hidden, refusal = worker.load(
            blob, purpose=INSPECT, width=width, seconds=TRIAL_SECONDS, memory=MEMORY
        )
        if refusal:
            # One short line of plain characters: names in it are a learner's choice.
            plain = "".join(letter if letter.isprintable() else "?" for letter in refusal[:300])
            return _Verdict(reason=plain)
        for _ in range(2):
            values, seconds = worker.time(np.vstack([public[:1], public]))
            if not np.isfinite(values).all() or (not outputs and np.any(values == FAILED)):
                return _Verdict(reason=FAILS)
            results.append(values[1:])
            costs.append(seconds[1:])
    if not np.array_equal(results[0], results[1]):
        return _Verdict(reason="The ONNX hypothesis is not deterministic")
    # Another process can only make a record look dearer: of two measurements the smaller one counts.
    cost = float(np.minimum(costs[0], costs[1]).max()) + hidden
    highest = 0 if outputs else int(results[0].max()) if results[0].min() >= 0 else 2**31
    return _Verdict(highest=highest, seconds=cost)


def run(blob: bytes, X: FloatArray, *, seconds: float = RECORD_SECONDS, memory: int = MEMORY) -> IntArray:
    """Codes of all rows, each from that row alone; negative where a record has no class.

    Raises `AnswerError` if the model cannot be loaded, or the worker is ended from outside.
    """
    rows = np.ascontiguousarray(X, dtype="<f8")
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    with _start_worker() as worker:
        worker.load(blob, purpose=RUN, width=rows.shape[1], seconds=seconds, memory=memory)
        return worker.label(rows)


def run_scores(blob: bytes, X: FloatArray, *, outputs: int) -> FloatArray:
    """Scores of all rows, each from that row alone; not a number where a record has none. Raises as `run`."""
    rows = np.ascontiguousarray(X, dtype="<f8")
    if not len(rows):
        return np.zeros((0, outputs))
    with _start_worker(outputs) as worker:
        worker.load(blob, purpose=RUN, width=rows.shape[1], seconds=RECORD_SECONDS, memory=MEMORY)
        return worker.label(rows)


def probe() -> list[dict[str, str]]:
    """What a locked worker, and a process that it forks, can do: an error's name for each attempt.

    For tests, and for those who want to see whether this machine's kernel confines a worker.
    """
    with _start_worker() as worker:
        worker.send(b"", purpose=PROBE, width=1, seconds=1.0, memory=MEMORY)
        return [json.loads(worker.read_status()[2]) for _ in range(2)]


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

    def read_status(self) -> tuple[int, float, str]:
        """The state of the model, seconds that no trial shows, and the worker's message."""
        raw = _read_exactly(self._out, _onnx_worker.STATUS.size)
        state, levels, fails, length = _onnx_worker.STATUS.unpack(raw)
        if not 0 <= length <= LONGEST_TEXT or levels < 0:
            raise EOFError
        if state == UNSEALED:
            _warn_unsealed()
        hidden = LEVEL_SECONDS * levels + (FAILURE_SECONDS if fails else 0.0)
        return state, hidden, _read_exactly(self._out, length).decode(errors="replace")

    def load(
        self, blob: bytes, *, purpose: int, width: int, seconds: float, memory: int
    ) -> tuple[float, str]:
        """Send the model and wait; seconds for a record that no trial shows, or why it is refused."""
        self.send(blob, purpose=purpose, width=width, seconds=seconds, memory=memory)
        state, hidden, text = self.read_status()
        return hidden, text if state == REFUSED else ""

    def label(self, rows: FloatArray) -> AnyArray:
        """Codes or scores of rows, which are sent in chunks of one size, the last one filled up."""
        size = _onnx_worker.rows_at_once(max(rows.shape[1], self._outputs))
        starts = range(0, len(rows), size)
        return np.concatenate([self._exchange(rows[start : start + size], size) for start in starts])

    def time(self, rows: FloatArray) -> tuple[AnyArray, FloatArray]:
        """Codes or scores, and seconds, of a few rows, by a worker that inspects."""
        size = _onnx_worker.rows_at_once(max(rows.shape[1], self._outputs))
        values = self._exchange(rows, size)
        costs = np.frombuffer(_read_exactly(self._out, 8 * size), dtype="<f8")
        return values, costs[: len(rows)]

    def _exchange(self, part: FloatArray, size: int) -> AnyArray:
        """Send a chunk and read its codes or scores."""
        chunk = np.zeros((size, part.shape[1]), dtype="<f8")
        chunk[: len(part)] = part
        self._in.write(_onnx_worker.COUNT.pack(*part.shape))
        self._in.write(chunk.tobytes())
        self._in.flush()
        blob = _read_exactly(self._out, 8 * size * max(1, self._outputs))
        if not self._outputs:
            return np.frombuffer(blob, dtype="<i8")[: len(part)]
        return np.frombuffer(blob, dtype="<f8").reshape(size, self._outputs)[: len(part)]


@contextlib.contextmanager
def _start_worker(outputs: int = 0) -> Iterator[_Worker]:
    """Start a worker that is ended afterwards, with all that it forked, whatever happens."""
    process = _start_process()
    try:
        yield _Worker(process, outputs)
    except (BrokenPipeError, EOFError):
        raise AnswerError("The hypothesis could not be loaded within its limits, or was stopped.") from None
    finally:
        _end_process(process)


def _start_process() -> subprocess.Popen[bytes]:
    """Start a worker without an environment, which finds libraries as here, but none in this directory."""
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


def _end_process(worker: subprocess.Popen[bytes]) -> None:
    """End a worker with all that it forked."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    with contextlib.suppress(BrokenPipeError):
        worker.communicate()


def _read_exactly(stream: IO[bytes], length: int) -> bytes:
    content = stream.read(length)
    if len(content) != length:
        raise EOFError
    return content


@cache
def _warn_unsealed() -> None:
    """Say once that one protection is missing."""
    _LOG.warning(
        "This platform has no seccomp filter for hypotheses: their workers are held by limits of memory, "
        "time and open files alone."
    )


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
    exported = to_onnx(pipeline, np.zeros((1, len(mean)), dtype=np.float32), options=options)
    hypothesis = Onnx(model=np.frombuffer(exported.SerializeToString(), dtype=np.uint8))
    hypothesis.try_out(len(mean))
    return hypothesis


__all__ = ["ALLOWED", "Onnx", "of_model", "probe", "run"]
