"""Run one ONNX hypothesis on rows: a process that never runs a model itself, and others that it forks.

Run by its path, with nothing of privada but this file and one beside it. Its arguments are the process
that started it, with which it ends, and where to look for libraries. It loads those, runs a small model
of our own so that nothing remains to be loaded, and locks itself in (`lock`): from then on it can
open neither files nor sockets. Only then is the learner's model read.

*Protocol.* The worker reads `HEADER` from standard input: its purpose, the limit of memory, the width of a
record, how many numbers a record has, the model's length, and the seconds for a record. Then it reads the
model. If a record has 0 numbers, it has a code, otherwise as many floats. A worker that is to `INSPECT`
reads the graph first (`_onnx_graph`) and may refuse it. It writes what became of the model (`STATUS`
and a text). Then, again and again, it reads a number of records, their width and a chunk of rows as float64
(`rows_at_once` of them, filled up with zeros), and writes as many int64 codes or rows of float64, and after
an inspection the seconds of the processor that each record took.

*Isolation of records.* Records are run one at a time, so no record can see another one, whatever the graph
does. A forked process runs them in turn. If it fails, is killed or passes the limit of a record, that
record's code is `FAILED` (its numbers are NaN) and a newly forked process goes on with the next one: what
came before has left no trace in it. Chunks have one size, so memory does not tell how many rows
there are. Nothing is limited that several records share.

*Lock-down.* On Linux (x86_64 and aarch64) a seccomp filter allows the system calls that computing, reading
from and writing to pipes that are open, and forking need. All others fail with EPERM, and those that are
newer than the filter with ENOSYS, which C libraries expect of an older kernel. So a path can be neither
opened nor looked at, and whether a file exists cannot be told. On all platforms no file descriptor can be
opened any more (``RLIMIT_NOFILE`` is 0), nothing can be written to a file, and no core is dumped. Where
there is no seccomp, that is all, and the worker says so.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import importlib.util
import json
import mmap
import os
import platform
import signal
import struct
import sys
import time
from base64 import b64decode
from collections.abc import Callable
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
_CHUNK_NUMBERS = 2**21
_CHUNK_ROWS = 4096
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

_SET_DEATH_SIGNAL, _SET_DUMPABLE, _SET_SECCOMP, _SET_NO_NEW_PRIVILEGES = 1, 4, 22, 38  # of prctl
_FILTER = 2  # the mode of seccomp
_NEWER = 424  # from here on calls have one number on all machines; the filter allows none of them
_EMPTY_PATH = 0x1000  # fstatat on a descriptor
_NAMESPACES = 0x7E020000  # flags of clone
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # instructions
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000  # what they return

# Call: number on x86_64, on aarch64 (None: it has no such call).
# fmt: off
ALLOWED: dict[str, tuple[int | None, int | None]] = {
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "close": (3, 57),
    "fstat": (5, 80), "lseek": (8, 62), "poll": (7, None), "ppoll": (271, 73), "mmap": (9, 222),
    "mprotect": (10, 226), "munmap": (11, 215), "mremap": (25, 216), "madvise": (28, 233), "brk": (12, 214),
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132), "restart_syscall": (219, 128), "getitimer": (36, 102),
    "setitimer": (38, 103), "nanosleep": (35, 101), "clock_nanosleep": (230, 115),
    "clock_gettime": (228, 113), "clock_getres": (229, 114), "gettimeofday": (96, 169), "time": (201, None),
    "times": (100, 153), "getrusage": (98, 165), "getpid": (39, 172), "gettid": (186, 178),
    "getppid": (110, 173), "getuid": (102, 174), "uname": (63, 160), "sysinfo": (99, 179),
    "getcpu": (309, 168), "sched_yield": (24, 124), "sched_getaffinity": (204, 123),
    "membarrier": (324, 283), "rseq": (334, 293), "futex": (202, 98), "set_robust_list": (273, 99),
    "set_tid_address": (218, 96), "getrandom": (318, 278), "fork": (57, None), "wait4": (61, 260),
    "exit": (60, 93), "exit_group": (231, 94),
}
# fmt: on
# Calls that are allowed for one argument: place, test, value, whether the test must hold.
GUARDED: dict[str, tuple[tuple[int, int], tuple[int, int, int, bool]]] = {
    "prctl": ((157, 167), (0, _EQUAL, _SET_DEATH_SIGNAL, True)),
    "newfstatat": ((262, 79), (3, _ANY_BIT, _EMPTY_PATH, True)),
    "clone": ((56, 220), (0, _ANY_BIT, _NAMESPACES, False)),
}
_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}

Instruction = tuple[int, int, int, int]


class NoNumbers(ValueError):  # noqa: N818 - a verdict, not a fault
    """The graph has no output of floats."""


def rows_at_once(width: int) -> int:
    """Rows of a chunk: public, as the width is."""
    return max(1, min(_CHUNK_ROWS, _CHUNK_NUMBERS // width))


def main() -> None:
    """Lock this process in, then load the model and answer."""
    parent = int(sys.argv[1])
    sys.path[:0] = sys.argv[2:]
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    die_with(parent)
    # Timers end this process and those it forks, whatever signal handling it was started with.
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF, signal.SIGALRM})
    signal.setitimer(signal.ITIMER_REAL, START)
    stream, out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # no library writes among the codes
    purpose, memory, width, numbers, length, seconds = HEADER.unpack(stream.read(HEADER.size))
    graph = _warm_up(purpose)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:  # noqa: PTH123
        score.write("1000")  # if memory runs out, this process is ended, or what it forks, not its owner
    state = READY if lock(memory=memory) else UNSEALED
    if purpose == PROBE:
        # What this process, and one that it forks, can still do.
        child = os.fork()
        if child:
            os.waitpid(child, 0)
        _write_status(out, state, text=json.dumps(attempts(parent)))
        os._exit(0)
    signal.setitimer(signal.ITIMER_PROF, LOAD_SECONDS)
    blob = stream.read(length)
    levels, fails = 0, False
    if graph is not None:
        try:
            levels, fails = graph.inspect(blob, width)
        except graph.Refused as error:
            _write_status(out, REFUSED, text=str(error))
            return
    try:
        model = _Model(blob, numbers)
    except NoNumbers:
        _write_status(out, REFUSED, text="Expected an ONNX model with an output of floats")
        return
    table = _Table(rows_at_once(max(width, numbers)), timed=purpose == INSPECT, numbers=numbers)
    for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
        signal.setitimer(timer, 0.0)
    _write_status(out, state, levels=levels, fails=fails)
    _answer(stream, out, model, table, seconds=seconds)


def _warm_up(purpose: int) -> Any:
    """Load all libraries by work on a model of our own; return what inspects graphs, if that is needed."""
    import numpy as np

    _Model(OWN_MODEL).code(np.zeros((1, 2), dtype=np.float32))
    if purpose == PROBE:
        import socket  # noqa: F401 - what an attempt needs
    if purpose != INSPECT:
        return None
    # A module of the same folder, which is not on the path.
    spec = importlib.util.spec_from_file_location("_onnx_graph", Path(__file__).with_name("_onnx_graph.py"))
    assert spec is not None
    assert spec.loader is not None
    graph = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(graph)
    graph.inspect(OWN_MODEL, 2)
    return graph


def _write_status(out: Any, state: int, *, levels: int = 0, fails: bool = False, text: str = "") -> None:
    encoded = text.encode()
    out.write(STATUS.pack(state, levels, fails, len(encoded)) + encoded)
    out.flush()


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
        outputs = self._session.get_outputs()
        if numbers:  # the first output of floats
            outputs = [output for output in outputs if output.type in ("tensor(float)", "tensor(double)")]
            if not outputs:
                raise NoNumbers
        self._outputs = [outputs[0].name]
        self.kind = np.float32 if entry.type == "tensor(float)" else np.float64

    def numbers(self, row: Any) -> Any:
        """Floats of a record, as many as there should be, or none that are numbers."""
        import numpy as np

        output = np.asarray(self._session.run(self._outputs, {self._name: row})[0], dtype=np.float64)
        return output.reshape(-1) if output.size == self._numbers else np.full(self._numbers, np.nan)

    def code(self, row: Any) -> int:
        """Class of a record, or `NONE`."""
        import numpy as np

        output = np.asarray(self._session.run(self._outputs, {self._name: row})[0])
        if output.size != 1 or output.dtype.kind not in "iub":
            return NONE
        value = int(output.reshape(-1)[0])
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
        outcomes = self.codes if self.numbers is None else self.numbers
        return bytes(outcomes.tobytes()) + (b"" if self.costs is None else self.costs.tobytes())


def _answer(stream: Any, out: Any, model: _Model, table: _Table, *, seconds: float) -> None:
    """Answer chunk after chunk until standard input ends."""
    import numpy as np

    size = table.size
    while head := stream.read(COUNT.size):
        count, width = COUNT.unpack(head)
        rows = np.frombuffer(stream.read(8 * size * width), dtype="<f8").reshape(size, width)
        with np.errstate(all="ignore"):
            X = rows.astype(model.kind)[:count]
        first, own = 0, os.getpid()
        while first < count:
            table.reached[0] = first
            child = os.fork()
            if child == 0:
                die_with(own)
                _label_from(first, model, X, table, seconds=seconds)
            if os.waitpid(child, 0)[1] == 0:
                break
            # The record that ended its process has no outcome, and the next one has a new process.
            first = int(table.reached[0]) + 1
            table.fail(first - 1)
            if table.costs is not None:
                break  # of public records, one that fails is enough to refuse the model
        out.write(table.to_bytes())
        out.flush()


def _label_from(first: int, model: _Model, X: Any, table: _Table, *, seconds: float) -> NoReturn:
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


def die_with(parent: int) -> None:
    """End this process when its parent ends; at once if that has ended already. Forks must call it again."""
    if sys.platform == "linux":
        _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def lock(*, memory: int) -> bool:
    """Take away files, sockets, programs and memory beyond ``memory`` bytes; False without seccomp.

    The filter holds for this process and all that it will ever fork.
    """
    import resource

    for name, most in (("AS", memory), ("CORE", 0), ("FSIZE", 0), ("NOFILE", 0)):
        with contextlib.suppress(ValueError, OSError):  # a platform without this limit, or with a lower one
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
    machine = _MACHINES.get(platform.machine()) if sys.platform == "linux" else None
    if machine is None or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    code = b"".join(struct.pack("<HBBI", *instruction) for instruction in program(*machine))
    buffer = ctypes.create_string_buffer(code, len(code))
    head = ctypes.create_string_buffer(struct.pack("@HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer)))
    try:
        _prctl(_SET_DUMPABLE, 0)  # other processes of this user cannot look into it either
        _prctl(_SET_NO_NEW_PRIVILEGES, 1)
        _prctl(_SET_SECCOMP, _FILTER, ctypes.addressof(head))
    except OSError:
        return False
    return True


def program(machine: int, column: int) -> list[Instruction]:
    """The filter in classic BPF."""
    denied = (_RETURN, 0, 0, _ERROR | errno.EPERM)
    instructions: list[Instruction] = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, machine),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, 0, 1, _NEWER),
        (_RETURN, 0, 0, _ERROR | errno.ENOSYS),
    ]
    for numbers, (place, test, value, must_hold) in GUARDED.values():
        instructions += [
            (_EQUAL, 0, 4, numbers[column]),
            (_LOAD, 0, 0, 16 + 8 * place),
            (test, *((0, 1) if must_hold else (1, 0)), value),
            (_RETURN, 0, 0, _ALLOW),
            denied,
        ]
    for call in ALLOWED.values():
        number = call[column]
        if number is not None:
            instructions += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    return [*instructions, denied]


def _prctl(option: int, *values: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    padded = [*values, 0, 0, 0, 0][:4]
    if library.prctl(ctypes.c_int(option), *map(ctypes.c_ulong, padded)):
        raise OSError(ctypes.get_errno(), "prctl")


def attempts(parent: int) -> dict[str, str]:
    """Try what a locked process must not do; for each, the error's name, or "done"."""
    import socket

    tries: dict[str, Callable[[], object]] = {
        "open": lambda: os.open("/etc/hosts", os.O_RDONLY),
        "write": lambda: os.open(os.devnull, os.O_WRONLY),
        "stat": lambda: os.stat("/etc/hosts"),  # noqa: PTH116
        "link": lambda: os.readlink("/proc/self/exe"),  # noqa: PTH115
        "list": lambda: os.listdir("/"),  # noqa: PTH208
        "socket": socket.socket,
        "local socket": lambda: socket.socket(socket.AF_UNIX),
        "pipe": os.pipe,
        "signal": lambda: os.kill(parent, 0),
        "program": lambda: os.execv("/bin/true", ["/bin/true"]),  # noqa: S606
    }
    outcomes = {}
    for name, attempt in tries.items():
        try:
            attempt()
            outcomes[name] = "done"
        except OSError as error:
            outcomes[name] = errno.errorcode.get(error.errno or 0, "?")
    return outcomes


if __name__ == "__main__":
    main()
