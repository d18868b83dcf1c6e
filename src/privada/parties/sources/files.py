"""Rows in local files: Parquet, folders of it, and CSV; and what tells files of two moments apart."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from privada.exceptions import SourceOutageError

TICK_NS = 100_000_000  # far more than any file system's clock needs for a tick


def identify(path: Path) -> str:
    """What tells a file, or all files of a folder, from those of another moment.

    Names, sizes, inodes, and times of the last change of content and of status: the last one cannot be set
    by hand, so a file that is exchanged for one of the same size and time is noticed, too.
    """
    return identify_files(_files(path))


def identify_files(files: Iterable[Path]) -> str:
    """What tells some files from those of another moment; one that is not there is left out."""
    return "\n".join(line for file in files if (line := _line(file)))


def data_files(path: Path) -> list[Path]:
    """The files of rows that a path names: itself, those of a folder, or those of a pattern as ``*.csv``.

    Names of files and folders that begin with a dot or an underscore are marks of other programs.
    """
    return [file for file in _files(path) if file.is_file() and _is_data(file, path)]


def _is_data(file: Path, path: Path) -> bool:
    inside = file.relative_to(path).parts if path.is_dir() else (file.name,) if is_pattern(path) else ()
    return not any(part.startswith((".", "_")) for part in inside)


def is_pattern(path: Path) -> bool:
    """Whether the last part of a path stands for several names."""
    return any(mark in path.name for mark in "*?[") and not path.exists()


def _files(path: Path) -> list[Path]:
    if is_pattern(path):
        return sorted(path.parent.glob(path.name))
    if not path.is_dir():
        return [path]
    found = [Path(folder) / name for folder, _, names in os.walk(path) for name in names]
    return sorted(found)


def _line(file: Path) -> str:
    try:
        found = file.stat()
    except FileNotFoundError:
        return ""
    except OSError as fault:
        raise SourceOutageError(f"{file.name} is out of reach: {fault.strerror}.", part="files") from None
    return f"{file} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino} {found.st_dev}"


def check_readable(files: Iterable[Path]) -> None:
    """Raise `SourceOutageError` if a file cannot be opened; no row is read."""
    for file in files:
        try:
            os.close(os.open(file, os.O_RDONLY))
        except OSError as fault:
            raise SourceOutageError(f"{file.name} is out of reach: {fault.strerror}.", part="files") from None


def are_settled(files: Iterable[Path]) -> bool:
    """Whether no file changed just now: two changes within one tick of the clock would look like one."""
    latest = max((file.stat().st_ctime_ns for file in files if file.exists()), default=0)
    return time.time_ns() - latest > TICK_NS


def is_settled(path: Path) -> bool:
    """Whether a file, or any file of a folder, has not changed just now."""
    return are_settled(_files(path))


__all__ = [
    "are_settled",
    "check_readable",
    "data_files",
    "identify",
    "identify_files",
    "is_pattern",
    "is_settled",
]
