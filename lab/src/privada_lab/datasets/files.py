"""The files that experiments read: which public set each holds, and its layout.

They are listed in ``files.toml``. Nothing is downloaded. A folder is given with ``--data`` or
``PRIVADA_DATA``; `find` is how every reader opens a file in it, so a file that is not in `FILES` cannot be
read.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from privada import _files
from privada.exceptions import InputError
from privada_lab.toml_tables import read_tables

SENSORS = tuple(f"s{sensor}_f{feature}" for sensor in range(1, 17) for feature in range(1, 9))
PROPERTIES = (
    *("atomic_mass", "fie", "atomic_radius", "Density", "ElectronAffinity", "FusionHeat"),
    *("ThermalConductivity", "Valence"),
)
STATISTICS = (
    *("mean", "wtd_mean", "gmean", "wtd_gmean", "entropy", "wtd_entropy", "range", "wtd_range"),
    *("std", "wtd_std"),
)


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """One file under the data folder.

    Attributes
    ----------
    path : str
        Below the folder.
    public_name : str
        The set by the name under which it is published, and where.
    layout : str
        Columns or arrays, in words.
    experiments : tuple of str
        Those that read it.
    numbers, texts : tuple of str
        Columns of a table that readers use.
    """

    path: str
    public_name: str
    layout: str
    experiments: tuple[str, ...]
    numbers: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


FILES = {row["path"]: DataFile(**row) for row in read_tables(Path(__file__).with_name("files.toml"))["files"]}


def find(folder: Path | None, path: str) -> Path:
    """A file of `FILES` under the data folder, or an `InputError` that says which set it is."""
    known = FILES[path]
    found = None if folder is None else Path(folder) / path
    if found is None or not found.exists():
        raise InputError(
            f"There is no {path} under the data folder; give it with --data or PRIVADA_DATA. "
            f"It holds {known.public_name}."
        )
    return _files.plain_file(found, largest=_files.LARGEST_DATA)


def page_table() -> str:
    """`FILES` as a table of Markdown, for the page on how to reproduce the papers."""
    rows = [
        f"| `{each.path}` | {each.public_name} | {each.layout} | {', '.join(each.experiments) or 'none'} |"
        for each in FILES.values()
    ]
    head = ["| file under the data folder | public set | layout | read by |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *rows]).replace("<", "&lt;") + "\n"


__all__ = ["FILES", "PROPERTIES", "SENSORS", "STATISTICS", "DataFile", "find", "page_table"]
