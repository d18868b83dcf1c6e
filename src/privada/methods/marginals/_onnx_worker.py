"""Run one ONNX hypothesis on rows: a process that never sees one run itself, and others that it forks.

Run by its path, with nothing of privada on board. Reads ``memory width model-length`` and the
seconds of a record (`HEADER`), then the model, from standard input; writes one byte once the
model is loaded. Then, again and again, reads a number of records and a whole chunk of rows as
float64 (`at_once` of them, filled up with zeros), and writes as many int64 codes.

Records are run one at a time, so no record can see another one, whatever the graph does. A
forked process runs them in turn. If it errs, is killed or passes the limit of a record, that
record's code is `FAILED` and a newly forked process goes on with the next one: what came
before has left no trace in it. Chunks have one size, so memory does not tell how many rows
there are; nothing is limited that several records share.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import resource
import signal
import struct
import sys
from typing import Any, NoReturn

HEADER = struct.Struct("<3qd")
COUNT = struct.Struct("<q")
READY = b"\x01"
NONE, FAILED = -1, -2  # no class among the outputs; no output
START = 60.0  # seconds by the clock to load a model
PATIENCE = 30.0  # seconds by the clock beyond those of the processor: for a run that only waits
_NUMBERS = 2**21  # of a chunk
_ROWS = 4096


def at_once(width: int) -> int:
    """Rows of a chunk: public, as the width is."""
    return max(1, min(_ROWS, _NUMBERS // width))


class _Model:
    """A loaded graph and how to feed it."""

    def __init__(self, blob: bytes) -> None:
        import numpy as np
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        options.enable_cpu_mem_arena = options.enable_mem_pattern = False  # a run keeps no memory
        options.add_session_config_entry("session.set_denormal_as_zero", "1")  # tiny numbers are slow
        self._session = ort.InferenceSession(blob, options, providers=["CPUExecutionProvider"])
        entry = self._session.get_inputs()[0]
        self._name, self._outputs = entry.name, [self._session.get_outputs()[0].name]
        self.kind = np.float32 if entry.type == "tensor(float)" else np.float64

    def code(self, row: Any) -> int:
        """Class of a record, or `NONE`."""
        import numpy as np

        found = np.asarray(self._session.run(self._outputs, {self._name: row})[0])
        if found.size != 1 or found.dtype.kind not in "iub":
            return NONE
        value = int(found.reshape(-1)[0])
        return value if 0 <= value < 2**31 else NONE


def _labelled(model: _Model, X: Any, codes: Any, reached: Any, *, first: int, seconds: float) -> NoReturn:
    """Label records from ``first`` on and end this process: well, or at the record in ``reached``."""
    try:
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:  # noqa: PTH123
            score.write("1000")  # if memory runs out, this process goes, not its owner's
        for place in range(first, len(X)):
            reached[0] = place
            signal.setitimer(signal.ITIMER_PROF, seconds)
            signal.setitimer(signal.ITIMER_REAL, seconds + PATIENCE)
            codes[place] = model.code(X[place : place + 1])
        os._exit(0)
    finally:
        os._exit(1)


def _label_all(model: _Model, X: Any, codes: Any, reached: Any, *, seconds: float) -> None:
    """Label all records; one that ends its process has `FAILED`, and the next has a new one."""
    first = 0
    while first < len(X):
        reached[0] = first
        child = os.fork()
        if child == 0:
            _labelled(model, X, codes, reached, first=first, seconds=seconds)
        if os.waitpid(child, 0)[1] == 0:
            return
        first = int(reached[0]) + 1
        codes[first - 1] = FAILED


def _mortal() -> None:
    """Timers end this process and those it forks, whatever it was started with."""
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF, signal.SIGALRM})


def main() -> None:
    """Answer until standard input ends."""
    stream, out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # no library writes among the codes
    memory, width, length, seconds = HEADER.unpack(stream.read(HEADER.size))
    _mortal()
    signal.setitimer(signal.ITIMER_REAL, START)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    model = _Model(stream.read(length))

    import numpy as np

    size = at_once(width)
    codes = np.frombuffer(mmap.mmap(-1, 8 * size), dtype="<i8")
    reached = np.frombuffer(mmap.mmap(-1, 8), dtype="<i8")
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    out.write(READY)
    out.flush()
    while head := stream.read(COUNT.size):
        rows = np.frombuffer(stream.read(8 * size * width), dtype="<f8").reshape(size, width)
        with np.errstate(all="ignore"):
            X = rows.astype(model.kind)
        _label_all(model, X[: COUNT.unpack(head)[0]], codes, reached, seconds=seconds)
        out.write(codes.tobytes())
        out.flush()


if __name__ == "__main__":
    main()
