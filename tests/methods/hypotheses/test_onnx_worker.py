"""A process that runs a learner's graph can do nothing to its owner, and does not outlive it."""

import errno
import json
import logging
import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from privada.methods.hypotheses import _onnx_worker
from privada.methods.hypotheses import onnx as wire_onnx
from privada.methods.hypotheses.onnx import probe, run

ATTEMPTS = ("open", "write", "stat", "link", "list", "socket", "local socket", "pipe", "signal", "program")
SEALED = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
OWN_ROWS = np.array([[1.0, 0.0], [0.0, 1.0]])

needs_seccomp = pytest.mark.skipif(not SEALED, reason="no seccomp filter for this platform")
needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def in_a_process(code, *arguments):
    """Run code beside the lock-down module; what it prints as JSON."""
    path = Path(_onnx_worker.__file__).parent
    text = f"import json, os, sys; sys.path.insert(0, {str(path)!r}); import _onnx_worker\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", text, *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    return json.loads(done.stdout)


@needs_seccomp
def test_a_worker_opens_neither_files_nor_sockets_nor_programs_and_nor_does_what_it_forks():
    assert probe() == [dict.fromkeys(ATTEMPTS, "EPERM")] * 2


def test_a_process_that_is_not_locked_can_do_all_of_it():
    """Else the test above would tell nothing."""
    code = "os.execv = lambda *_: None\nprint(json.dumps(_onnx_worker.attempts(os.getppid())))"
    found = in_a_process(code)
    assert set(found) == set(ATTEMPTS)
    assert set(found.values()) == {"done"}


def test_without_seccomp_no_file_can_be_opened_either():
    code = """
import socket
_onnx_worker._MACHINES.clear()
sealed = _onnx_worker.lock(memory=2**32)
found = _onnx_worker.attempts(os.getppid()) if not sealed else {}
print(json.dumps(found))
"""
    found = in_a_process("os.execv = lambda *_: None" + code)
    assert {found[name] for name in ("open", "write", "list", "socket", "local socket", "pipe")} == {"EMFILE"}


@needs_seccomp
def test_the_filter_knows_this_machine_only_and_nothing_that_is_newer():
    code = _onnx_worker.program(*_onnx_worker._MACHINES[platform.machine()])
    assert len(code) < 4096  # the most that a kernel takes
    assert code[2][-1] == _onnx_worker._KILL
    assert code[5][-1] == _onnx_worker._ERROR | errno.ENOSYS
    assert code[-1][-1] == _onnx_worker._ERROR | errno.EPERM
    columns = list(zip(*_onnx_worker.ALLOWED.values(), strict=True))
    for numbers in columns:
        given = [number for number in numbers if number is not None]
        assert len(set(given)) == len(given)
        assert max(given) < _onnx_worker._NEWER


def test_an_owner_is_told_if_its_platform_has_no_seccomp(tmp_path, monkeypatch, caplog):
    """A copy of the worker that finds no filter for its machine: it works, and the log says so once."""
    for name in ("_onnx_worker", "_onnx_graph"):
        text = Path(_onnx_worker.__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
        (tmp_path / f"{name}.py").write_text(text.replace("_MACHINES = {", "_MACHINES = {} and {"))
    monkeypatch.setattr(_onnx_worker, "__file__", str(tmp_path / "_onnx_worker.py"))
    wire_onnx._warn_unsealed.cache_clear()
    with caplog.at_level(logging.WARNING, logger="privada.owner"):
        for _ in range(2):
            assert run(_onnx_worker.OWN_MODEL, OWN_ROWS).tolist() == [0, 1]
    assert [record.getMessage() for record in caplog.records] == [
        "This platform has no seccomp filter for hypotheses: their workers are held by limits of memory, "
        "time and open files alone."
    ]


@needs_proc
def test_a_worker_has_no_environment_no_core_and_no_home(monkeypatch):
    """Seen from outside, while it waits for rows."""
    monkeypatch.setenv("SECRET", "of the owner")
    before = set(children(os.getpid()))  # such as a pool that another test started
    with wire_onnx._start_worker() as worker:
        worker.load(
            _onnx_worker.OWN_MODEL,
            purpose=_onnx_worker.RUN,
            width=2,
            seconds=1.0,
            memory=wire_onnx.MEMORY,
        )
        (pid,) = set(children(os.getpid())) - before
        limits = Path(f"/proc/{pid}/limits").read_text()
        status = Path(f"/proc/{pid}/status").read_text()
    if SEALED:
        assert "Seccomp:\t2" in status
        assert "NoNewPrivs:\t1" in status
    for name in ("Max core file size", "Max file size", "Max open files"):
        (line,) = [line for line in limits.splitlines() if line.startswith(name)]
        assert line.removeprefix(name).split()[:2] == ["0", "0"]


@needs_proc
def test_a_worker_is_started_with_nothing_in_its_environment(monkeypatch):
    monkeypatch.setenv("SECRET", "of the owner")
    process = wire_onnx._start_process()
    try:
        deadline = time.monotonic() + 20
        while b"_onnx_worker" not in (line := Path(f"/proc/{process.pid}/cmdline").read_bytes()):
            assert time.monotonic() < deadline, line
        assert Path(f"/proc/{process.pid}/environ").read_bytes() == b""
        assert Path(f"/proc/{process.pid}/cwd").readlink() == Path("/")
    finally:
        wire_onnx._end_process(process)


def children(parent):
    """Processes whose parent this is."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == parent and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


OWNER = """
import numpy as np
from onnx import TensorProto, helper
from privada.methods.hypotheses.onnx import run
shape = helper.make_tensor("shape", TensorProto.INT64, [2], [512, 512])
names = ["x", *(f"a{i}" for i in range(17))]
nodes = [helper.make_node("Concat", [a, a], [b], axis=1) for a, b in zip(names, names[1:])]
nodes.append(helper.make_node("Reshape", [names[-1], "shape"], ["b0"]))
nodes += [helper.make_node("MatMul", [f"b{i}", f"b{i}"], [f"b{i + 1}"]) for i in range(10)]
nodes.append(helper.make_node("ArgMax", ["b10"], ["y"], axis=1))
rows = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])
out = helper.make_tensor_value_info("y", TensorProto.INT64, ["m"])
graph = helper.make_graph(nodes, "g", [rows], [out], [shape])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
run(model.SerializeToString(), np.zeros((4000, 2)))
"""


@needs_proc
def test_workers_end_with_an_owner_that_is_killed():
    """The worker, and the process it forked, which holds private rows and has minutes of work before it."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER])
    try:
        deadline = time.monotonic() + 60
        below = []
        while len(below) < 2:
            assert owner.poll() is None
            assert time.monotonic() < deadline
            below = [pid for child in children(owner.pid) for pid in (child, *children(child))]
            time.sleep(0.05)
    finally:
        os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    deadline = time.monotonic() + 2
    while any(map(is_running, below)):
        assert time.monotonic() < deadline, "a worker outlived its owner"
        time.sleep(0.02)


def test_a_worker_whose_parent_is_gone_before_it_starts_does_nothing():
    code = "print(json.dumps(1), flush=True)\n_onnx_worker.die_with(os.getppid() + 1)\nprint(2)"
    path = Path(_onnx_worker.__file__).parent
    text = f"import json, os, sys; sys.path.insert(0, {str(path)!r}); import _onnx_worker\n{code}"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "1\n")
