"""Rows in local files: Parquet, folders of it, and CSV; and what tells files of two moments apart."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from privada.exceptions import SourceError


def identify(path: Path) -> str:
    """What tells a file, or all files of a folder, from those of another moment.

    Names, sizes, inodes, and times of the last change of content and of status: the last one cannot be set
    by hand, so a file that is exchanged for one of the same size and time is noticed, too.
    """
    return identify_files(_files(path))


def identify_files(files: Iterable[Path]) -> str:
    """What tells some files from those of another moment; one that is not there is left out."""
    return "\n".join(line for file in files if (line := _line(file)))


def _files(path: Path) -> list[Path]:
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
        raise SourceError(f"Cannot look at {file.name}: {fault.strerror}.") from None
    return f"{file} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino} {found.st_dev}"


def newest_change(path: Path) -> int:
    """When any of the files last changed, in nanoseconds since 1970."""
    return max((file.stat().st_ctime_ns for file in _files(path)), default=0)


__all__ = ["identify", "identify_files", "newest_change"]
