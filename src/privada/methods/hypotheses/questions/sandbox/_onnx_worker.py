"""Run one ONNX hypothesis on rows: a process that never sees one run itself, and others that it forks.

Run by its path, with nothing of privada on board but two files beside it. Its arguments are the process
that started it, with which it ends, and where to look for libraries. It loads those, runs a small model
of our own so that nothing is left to be loaded, and locks itself in (`_lockdown`): from then on it can
open neither files nor sockets. Only then is the learner's model read.

Reads what it is for, ``memory width numbers model-length`` and the seconds of a record (`HEADER`), then the
model, from standard input. If ``numbers`` is 0, a record has a code, otherwise as many floats. A worker that
is to `INSPECT` reads the graph first (`_onnx_graph`) and may refuse it. Writes what became of it (`STATUS`,
a text). Then, again and again, reads a number of records, their width and a whole chunk of rows as float64
(`at_once` of them, filled up with zeros), and writes as many int64 codes or rows of float64, and after an
inspection the seconds of the processor that each record took.

Records are run one at a time, so no record can see another one, whatever the graph does. A
forked process runs them in turn. If it errs, is killed or passes the limit of a record, that
record's code is `FAILED` (its numbers are NaN) and a newly forked process goes on with the next one: what
came before has left no trace in it. Chunks have one size, so memory does not tell how many rows
there are; nothing is limited that several records share.
"""

from __future__ import annotations

import importlib.util
import json
import mmap
import os
import signal
import struct
import sys
import time
from base64 import b64decode
from pathlib import Path
from typing import Any, NoReturn

HEADER = struct.Struct("<5qd")
STATUS = struct.Struct("<4q")  # state of the model, levels of trees, whether runs may fail, length of a text
COUNT = struct.Struct("<2q")  # records of a chunk, and their width
RUN, INSPECT, PROBE = 0, 1, 2  # what a worker is for
READY, UNSEALED, REFUSED = 1, 2, 3  # loaded; loaded, without seccomp; not loaded, for the reason in the text
NONE, FAILED = -1, -2  # no class among the outputs; no output
START = 60.0  # seconds by the clock to load libraries and a model
LOAD_SECONDS = 5.0  # of the processor, to inspect and load a model
PATIENCE = 30.0  # seconds by the clock beyond those of the processor: for a run that only waits
_NUMBERS = 2**21  # of a chunk
_ROWS = 4096
# A tree, a division and the place of the larger of two numbers, in base 64: a model of our own, by which
# the libraries load all that they need.
OWN_MODEL = b64decode(
    "CAgSADrnAwr7AgoBeBIBdCIVVHJlZUVuc2VtYmxlUmVncmVzc29yKhAKCW5fdGFyZ2V0cxgBoAECKh0KEm5vZGVzX2ZhbHNl"
    "bm9kZWlkc0ACQABAAKABByobChBub2Rlc19mZWF0dXJlaWRzQABAAEAAoAEHKigKC25vZGVzX21vZGVzSgpCUkFOQ0hfTEVR"
    "SgRMRUFGSgRMRUFGoAEIKhgKDW5vZGVzX25vZGVpZHNAAEABQAKgAQcqGAoNbm9kZXNfdHJlZWlkc0AAQABAAKABByocChFu"
    "b2Rlc190cnVlbm9kZWlkc0ABQABAAKABByogCgxub2Rlc192YWx1ZXM9AAAAAD0AAAAAPQAAAACgAQYqEwoKdGFyZ2V0X2lk"
    "c0AAQACgAQcqFwoOdGFyZ2V0X25vZGVpZHNAAUACoAEHKhcKDnRhcmdldF90cmVlaWRzQABAAKABByodCg50YXJnZXRfd2Vp"
    "Z2h0cz0AAIA/PQAAAECgAQY6CmFpLm9ubngubWwKDgoBeAoBdBIBeiIDRGl2CiwKAXoSAXkiBkFyZ01heCoLCgRheGlzGAGg"
    "AQIqDwoIa2VlcGRpbXMYAKABAhIBZ1oUCgF4Eg8KDQgBEgkKAxIBbgoCCAJiEAoBeRILCgkIBxIFCgMSAW5CBAoAEBFCDgoK"
    "YWkub25ueC5tbBAD"
)


class NoNumbers(ValueError):  # noqa: N818 - a verdict, not a fault
    """The graph has no output of floats."""


def at_once(width: int) -> int:
    """Rows of a chunk: public, as the width is."""
    return max(1, min(_ROWS, _NUMBERS // width))


class _Model:
    """A loaded graph and how to feed it."""

    def __init__(self, blob: bytes, numbers: int = 0) -> None:
        import numpy as np
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL  # nothing is folded
        options.enable_cpu_mem_arena = options.enable_mem_pattern = False  # a run keeps no memory
        options.add_session_config_entry("session.set_denormal_as_zero", "1")  # tiny numbers are slow
        self._session = ort.InferenceSession(blob, options, providers=["CPUExecutionProvider"])
        entry = self._session.get_inputs()[0]
        self._name, self._numbers = entry.name, numbers
        self._outputs = [self._session.get_outputs()[0].name] if not numbers else self._floats()
        self.kind = np.float32 if entry.type == "tensor(float)" else np.float64

    def _floats(self) -> list[str]:
        """The first output of floats."""
        kinds = ("tensor(float)", "tensor(double)")
        found = [output.name for output in self._session.get_outputs() if output.type in kinds]
        if not found:
            raise NoNumbers
        return found[:1]

    def numbers(self, row: Any) -> Any:
        """Floats of a record, as many as there should be, or none that are numbers."""
        import numpy as np

        found = np.asarray(self._session.run(self._outputs, {self._name: row})[0], dtype=np.float64)
        return found.reshape(-1) if found.size == self._numbers else np.full(self._numbers, np.nan)

    def code(self, row: Any) -> int:
        """Class of a record, or `NONE`."""
        import numpy as np

        found = np.asarray(self._session.run(self._outputs, {self._name: row})[0])
        if found.size != 1 or found.dtype.kind not in "iub":
            return NONE
        value = int(found.reshape(-1)[0])
        return value if 0 <= value < 2**31 else NONE


class _Table:
    """What forked processes write and this one reads: outcomes, seconds, and the record they are at."""

    def __init__(self, size: int, *, timed: bool, numbers: int = 0) -> None:
        import numpy as np

        self.size = size
        self.codes = np.frombuffer(mmap.mmap(-1, 8 * size), dtype="<i8")
        wide = np.frombuffer(mmap.mmap(-1, 8 * size * max(1, numbers)), dtype="<f8").reshape(size, -1)
        self.numbers = wide if numbers else None
        self.reached = np.frombuffer(mmap.mmap(-1, 8), dtype="<i8")
        self.costs = np.frombuffer(mmap.mmap(-1, 8 * size), dtype="<f8") if timed else None

    def fill(self, place: int, model: _Model, X: Any) -> None:
        """Run one record."""
        began = 0.0 if self.costs is None else time.thread_time()  # the process's clock moves in steps
        if self.numbers is None:
            self.codes[place] = model.code(X[place : place + 1])
        else:
            self.numbers[place] = model.numbers(X[place : place + 1])
        if self.costs is not None:
            self.costs[place] = time.thread_time() - began

    def fail(self, place: int) -> None:
        """Note that a record has no outcome."""
        self.codes[place] = FAILED
        if self.numbers is not None:
            self.numbers[place] = float("nan")

    def to_bytes(self) -> bytes:
        found = self.codes if self.numbers is None else self.numbers
        return bytes(found.tobytes()) + (b"" if self.costs is None else self.costs.tobytes())


def _labelled(model: _Model, X: Any, table: _Table, *, first: int, seconds: float) -> NoReturn:
    """Label records from ``first`` on and end this process: well, or at the record it has reached."""
    try:
        for place in range(first, len(X)):
            table.reached[0] = place
            signal.setitimer(signal.ITIMER_PROF, seconds)
            signal.setitimer(signal.ITIMER_REAL, seconds + PATIENCE)
            table.fill(place, model, X)
        os._exit(0)
    finally:
        os._exit(1)


def _label_all(lockdown: Any, model: _Model, X: Any, table: _Table, *, seconds: float) -> None:
    """Label all records; one that ends its process has `FAILED`, and the next has a new one.

    Public records, of which one that fails is enough to refuse the model, end there.
    """
    first, own = 0, os.getpid()
    while first < len(X):
        table.reached[0] = first
        child = os.fork()
        if child == 0:
            lockdown.die_with(own)
            _labelled(model, X, table, first=first, seconds=seconds)
        if os.waitpid(child, 0)[1] == 0:
            return
        first = int(table.reached[0]) + 1
        table.fail(first - 1)
        if table.costs is not None:
            return


def _mortal() -> None:
    """Timers end this process and those it forks, whatever it was started with."""
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF, signal.SIGALRM})


def _beside(name: str) -> Any:
    """A module of the same folder, which is on nobody's path."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _warmed(purpose: int) -> Any:
    """Load all libraries by work on a model of our own; what inspects graphs, if that is to be done."""
    import numpy as np

    _Model(OWN_MODEL).code(np.zeros((1, 2), dtype=np.float32))
    if purpose == PROBE:
        import socket  # noqa: F401 - what an attempt needs
    if purpose != INSPECT:
        return None
    graph = _beside("_onnx_graph")
    graph.inspect(OWN_MODEL, 2)
    return graph


def _write(out: Any, state: int, *, levels: int = 0, fails: bool = False, text: str = "") -> None:
    encoded = text.encode()
    out.write(STATUS.pack(state, levels, fails, len(encoded)) + encoded)
    out.flush()


def _probe(out: Any, lockdown: Any, parent: int, state: int) -> None:
    """Write what this process, and one that it forks, can still do."""
    _write(out, state, text=json.dumps(lockdown.attempts(parent)))
    if os.fork() == 0:
        _write(out, state, text=json.dumps(lockdown.attempts(parent)))
        os._exit(0)
    os.wait()


def _answer(stream: Any, out: Any, lockdown: Any, model: _Model, table: _Table, *, seconds: float) -> None:
    """Answer chunk after chunk until standard input ends."""
    import numpy as np

    size = table.size
    while head := stream.read(COUNT.size):
        count, width = COUNT.unpack(head)
        rows = np.frombuffer(stream.read(8 * size * width), dtype="<f8").reshape(size, width)
        with np.errstate(all="ignore"):
            X = rows.astype(model.kind)
        _label_all(lockdown, model, X[:count], table, seconds=seconds)
        out.write(table.to_bytes())
        out.flush()


def main() -> None:
    """Lock this process in, then load the model and answer."""
    parent = int(sys.argv[1])
    sys.path[:0] = sys.argv[2:]
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    lockdown = _beside("_lockdown")
    lockdown.die_with(parent)
    _mortal()
    signal.setitimer(signal.ITIMER_REAL, START)
    stream, out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # no library writes among the codes
    purpose, memory, width, numbers, length, seconds = HEADER.unpack(stream.read(HEADER.size))
    graph = _warmed(purpose)
    lockdown.go_first()
    state = READY if lockdown.lock(memory=memory) else UNSEALED
    if purpose == PROBE:
        _probe(out, lockdown, parent, state)
        return
    signal.setitimer(signal.ITIMER_PROF, LOAD_SECONDS)
    blob = stream.read(length)
    levels, fails = 0, False
    if graph is not None:
        try:
            levels, fails = graph.inspect(blob, width)
        except graph.Refused as error:
            _write(out, REFUSED, text=str(error))
            return
    try:
        model = _Model(blob, numbers)
    except NoNumbers:
        _write(out, REFUSED, text="Expected an ONNX model with an output of floats")
        return
    table = _Table(at_once(max(width, numbers)), timed=purpose == INSPECT, numbers=numbers)
    for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
        signal.setitimer(timer, 0.0)
    _write(out, state, levels=levels, fails=fails)
    _answer(stream, out, lockdown, model, table, seconds=seconds)


if __name__ == "__main__":
    main()
