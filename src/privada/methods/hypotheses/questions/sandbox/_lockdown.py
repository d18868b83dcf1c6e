"""Lock a process in: no files, no sockets, no other programs, and no life after its parent's.

Standard library only: the ONNX worker loads it by its path, with nothing of privada on board.

*On Linux* (x86_64 and aarch64) a seccomp filter allows the system calls that computing, reading from
and writing to pipes that are open, and forking need; all others fail with EPERM, and those that are
newer than the filter with ENOSYS, which C libraries expect of an older kernel. So a path can be neither
opened nor looked at, and whether a file exists cannot be told.

*Everywhere* no file descriptor can be opened any more (``RLIMIT_NOFILE`` is 0), nothing can be written
to a file, and no core is dumped. Where there is no seccomp, that is all: `lock` says so.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Callable

_SET_DEATH_SIGNAL, _SET_DUMPABLE, _SET_SECCOMP, _SET_NO_NEW_PRIVILEGES = 1, 4, 22, 38  # of prctl
_FILTER = 2  # the mode of seccomp
_NEWER = 424  # from here on calls have one number on all machines; the filter knows none of them
_EMPTY_PATH = 0x1000  # fstatat on a descriptor
_NAMESPACES = 0x7E020000  # flags of clone
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # instructions
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000  # what they return

# Call: number on x86_64, on aarch64 (None: it has no such call).
ALLOWED: dict[str, tuple[int | None, int | None]] = {
    "read": (0, 63),
    "write": (1, 64),
    "readv": (19, 65),
    "writev": (20, 66),
    "close": (3, 57),
    "fstat": (5, 80),
    "lseek": (8, 62),
    "poll": (7, None),
    "ppoll": (271, 73),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "restart_syscall": (219, 128),
    "getitimer": (36, 102),
    "setitimer": (38, 103),
    "nanosleep": (35, 101),
    "clock_nanosleep": (230, 115),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "gettimeofday": (96, 169),
    "time": (201, None),
    "times": (100, 153),
    "getrusage": (98, 165),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getppid": (110, 173),
    "getuid": (102, 174),
    "uname": (63, 160),
    "sysinfo": (99, 179),
    "getcpu": (309, 168),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "membarrier": (324, 283),
    "rseq": (334, 293),
    "futex": (202, 98),
    "set_robust_list": (273, 99),
    "set_tid_address": (218, 96),
    "getrandom": (318, 278),
    "fork": (57, None),
    "wait4": (61, 260),
    "exit": (60, 93),
    "exit_group": (231, 94),
}
# Calls that are allowed for one argument: place, test, value, whether the test must hold.
GUARDED: dict[str, tuple[tuple[int, int], tuple[int, int, int, bool]]] = {
    "prctl": ((157, 167), (0, _EQUAL, _SET_DEATH_SIGNAL, True)),
    "newfstatat": ((262, 79), (3, _ANY_BIT, _EMPTY_PATH, True)),
    "clone": ((56, 220), (0, _ANY_BIT, _NAMESPACES, False)),
}
_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}

Instruction = tuple[int, int, int, int]


def die_with(parent: int) -> None:
    """End this process when its parent ends; at once if that has ended already. Forks must call it again."""
    if sys.platform == "linux":
        _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def go_first() -> None:
    """If memory runs out, this process goes, or what it forks, and not its owner's."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:  # noqa: PTH123
        score.write("1000")


def lock(*, memory: int) -> bool:
    """Take away files, sockets, programs and memory beyond ``memory`` bytes; False without seccomp."""
    for name, most in (("AS", memory), ("CORE", 0), ("FSIZE", 0), ("NOFILE", 0)):
        with contextlib.suppress(ValueError, OSError):  # a platform without this limit, or with a lower one
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
    return _filter()


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
    return {name: _outcome(attempt) for name, attempt in tries.items()}


def _outcome(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, "?")
    return "done"


def _filter() -> bool:
    """Install the filter, for this process and all that it will ever fork."""
    machine = _MACHINES.get(platform.machine()) if sys.platform == "linux" else None
    if machine is None or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    code = b"".join(struct.pack("<HBBI", *each) for each in program(*machine))
    held = ctypes.create_string_buffer(code, len(code))
    head = ctypes.create_string_buffer(struct.pack("@HxxxxxxQ", len(code) // 8, ctypes.addressof(held)))
    try:
        _prctl(_SET_DUMPABLE, 0)  # nor can others of this user look into it
        _prctl(_SET_NO_NEW_PRIVILEGES, 1)
        _prctl(_SET_SECCOMP, _FILTER, ctypes.addressof(head))
    except OSError:
        return False
    return True


def program(machine: int, column: int) -> list[Instruction]:
    """The filter in classic BPF."""
    denied = (_RETURN, 0, 0, _ERROR | errno.EPERM)
    made: list[Instruction] = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, machine),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, 0, 1, _NEWER),
        (_RETURN, 0, 0, _ERROR | errno.ENOSYS),
    ]
    for numbers, (place, test, value, wanted) in GUARDED.values():
        made += [
            (_EQUAL, 0, 4, numbers[column]),
            (_LOAD, 0, 0, 16 + 8 * place),
            (test, *((0, 1) if wanted else (1, 0)), value),
            (_RETURN, 0, 0, _ALLOW),
            denied,
        ]
    for call in ALLOWED.values():
        number = call[column]
        if number is not None:
            made += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    return [*made, denied]


def _prctl(option: int, *values: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    padded = [*values, 0, 0, 0, 0][:4]
    if library.prctl(ctypes.c_int(option), *map(ctypes.c_ulong, padded)):
        raise OSError(ctypes.get_errno(), "prctl")


__all__ = ["attempts", "die_with", "go_first", "lock", "program"]
