"""What the studies of all methods read alike: the owner that is asked, and a file of public rows."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from privada import _files
from privada._toml import Section
from privada.exceptions import InputError
from privada.parties.schema import Schema


def known(section: Section, key: str, owner: str, schemas: Mapping[str, Schema]) -> str:
    """An owner's name, if the study has one of that name."""
    if owner not in schemas:
        section.fail(key, f"no owner named {owner!r}; known: {', '.join(schemas)}.")
    return owner


def asked(section: Section, schemas: Mapping[str, Schema]) -> str:
    """The one owner that is asked: ``owner``, by default the study's first."""
    return known(section, "owner", section.string("owner", next(iter(schemas))), schemas)


def public_rows(section: Section, key: str, home: Path) -> npt.NDArray[np.float64]:
    """Rows of a file of finite numbers separated by commas, without a header."""
    return finite(section, key, public_text(section, key, home))


def public_text(section: Section, key: str, home: Path) -> npt.NDArray[np.str_]:
    """Rows of a file of words separated by commas, without a header."""
    path = home / section.string(key)
    try:
        text = _files.read_text(path, largest=_files.LARGEST_TABLE)
    except InputError as error:
        section.fail(key, str(error).replace("Cannot read", "cannot read", 1))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a file without rows, which is refused below
            rows: npt.NDArray[np.str_] = np.loadtxt(io.StringIO(text), delimiter=",", ndmin=2, dtype=str)
    except ValueError:
        section.fail(key, f"cannot read {path.name} as rows separated by commas.")
    if not len(rows):
        section.fail(key, f"there are no rows in {path.name}.")
    return rows


def finite(section: Section, key: str, words: npt.NDArray[np.str_]) -> npt.NDArray[np.float64]:
    """Words as numbers, all finite."""
    try:
        numbers = words.astype(np.float64)
    except ValueError:
        section.fail(key, "expected numbers separated by commas, without a header.")
    if not np.isfinite(numbers).all():
        section.fail(key, "expected finite numbers.")
    return numbers


__all__ = ["asked", "finite", "known", "public_rows", "public_text"]
