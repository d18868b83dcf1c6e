"""Rows of persons: no person has more rows than the schema's bound; which ones are kept is random."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import SchemaError
from privada.parties.schema import Schema, is_missing
from privada.privacy.noise import Noise


def read_persons(values: Any) -> npt.NDArray[Any]:
    """An array of persons. A list's are kept as they are: a common type would make one of 1 and "1"."""
    return np.array(values, dtype=object) if isinstance(values, (list, tuple)) else np.asarray(values)


def bounded(people: npt.NDArray[Any], schema: Schema, noise: Noise | None) -> npt.NDArray[np.bool_]:
    """Which rows are kept so that no person has more than ``max_rows``, chosen at random."""
    assert schema.person_id is not None
    assert schema.max_rows is not None
    if noise is None:
        raise SchemaError("Rows of persons need a noise source to choose which rows are kept.")
    if is_missing(people).any():
        raise SchemaError(f"Column {schema.person_id!r} holds a missing person.")
    codes = number_persons(people, schema.person_id)
    order = noise.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    grouped = codes[order]
    first = np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]]) if len(grouped) else np.zeros(0, int)
    rank = np.arange(len(grouped)) - np.repeat(first, np.diff(np.r_[first, len(grouped)]))
    kept = np.zeros(len(codes), dtype=np.bool_)
    kept[order[rank < schema.max_rows]] = True
    return kept


def number_persons(people: npt.NDArray[Any], name: str) -> npt.NDArray[np.intp]:
    """A number for each person. Columns in which two persons might look the same are refused."""
    kinds = {_kind(value) for value in people} if people.dtype.kind == "O" else {people.dtype.type}
    if len(kinds) > 1:
        raise SchemaError(f"Column {name!r} holds persons of several types; write all as strings.")
    kind = next(iter(kinds), int)
    if issubclass(kind, (complex, np.complexfloating)):
        raise SchemaError(f"Column {name!r} holds complex numbers; write persons as integers or strings.")
    if issubclass(kind, (float, np.floating)):
        _check_floats(people.astype(kind), name)
    try:
        return np.unique(people, return_inverse=True)[1]
    except (TypeError, ArithmeticError):
        raise SchemaError(
            f"Column {name!r} holds persons that have no order; write them as strings."
        ) from None


def _kind(value: Any) -> type:
    """The type of one person; integers are of one."""
    return int if isinstance(value, (int, np.integer)) and not isinstance(value, bool) else type(value)


def _check_floats(people: npt.NDArray[Any], name: str) -> None:
    """Accept a float as a person only where its type represents every whole number: float32 below 2^24."""
    bits = np.finfo(people.dtype).nmant + 1
    if not (np.abs(people) < 2.0**bits).all():
        raise SchemaError(
            f"Column {name!r} holds persons as {people.dtype} too large to tell apart: from 2**{bits} on "
            "one number stands for several; write them as integers or strings."
        )
    if not (people == np.floor(people)).all():
        raise SchemaError(f"Column {name!r} holds fractions; write persons as integers or strings.")


__all__ = ["bounded", "number_persons", "read_persons"]
