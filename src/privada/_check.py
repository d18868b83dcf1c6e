"""Validators of one parameter, whose name is the keyword: it stands in the error message.

>>> positive(epsilon=0.5)
0.5
>>> positive(epsilon=-1.0)
Traceback (most recent call last):
    ...
privada.exceptions.InputError: Expected epsilon > 0 and finite, got -1.0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from privada._arrays import FloatArray
from privada._text import quoted
from privada.exceptions import InputError


def _number(test: Callable[[float], bool], expected: str, named: dict[str, Any]) -> float:
    ((name, value),) = named.items()
    # True is an int in Python, and is never meant as a number
    plain = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    number = as_float(value) if plain else math.nan
    if math.isnan(number) or not test(number):
        raise InputError(f"Expected {name} {expected}, got {quoted(value)}.")
    return number


def as_float(value: Any) -> float:
    """Convert a number to a float; an integer beyond floats becomes infinite.

    >>> as_float(-(10**400))
    -inf
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def positive(**named: Any) -> float:
    """Return the number if it is finite and > 0."""
    return _number(lambda v: math.isfinite(v) and v > 0, "> 0 and finite", named)


def non_negative(**named: Any) -> float:
    """Return the number if it is finite and >= 0."""
    return _number(lambda v: math.isfinite(v) and v >= 0, ">= 0 and finite", named)


def finite(**named: Any) -> float:
    """Return the number if it is finite."""
    return _number(math.isfinite, "to be finite", named)


def probability(**named: Any) -> float:
    """Return the number if it lies strictly between 0 and 1."""
    return _number(lambda v: 0 < v < 1, "strictly between 0 and 1", named)


def share(**named: Any) -> float:
    """Return the number if it lies in [0, 1]."""
    return _number(lambda v: 0 <= v <= 1, "between 0 and 1", named)


def count(*, least: int = 1, **named: Any) -> int:
    """Return the integer if it is at least ``least`` and fits 64 bits."""
    ((name, value),) = named.items()
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"Expected {name} to be a whole number >= {least}, got {quoted(value)}.")
    if value >= 2**63:
        raise InputError(f"Expected {name} below 2**63, got {quoted(value)}.")
    return int(value)


def text(*, longest: int, **named: Any) -> str:
    """Return the string if it is one, of at most ``longest`` characters."""
    ((name, value),) = named.items()
    if not isinstance(value, str) or len(value) > longest:
        raise InputError(f"Expected {name} to be a string of at most {longest} characters.")
    return value


def one_of(options: Collection[str], **named: Any) -> str:
    """Return the string if it is one of the options."""
    ((name, value),) = named.items()
    if value not in options:
        raise InputError(f"Expected {name} to be one of {', '.join(sorted(options))}, got {quoted(value)}.")
    return str(value)


def matrix(*, width: int | None = None, **named: Any) -> FloatArray:
    """Return a public array as a finite, two-dimensional float64 matrix."""
    ((name, value),) = named.items()
    try:
        array = np.asarray(value, dtype=np.float64)
    except ValueError:
        raise InputError(
            f"Expected {name} to be a matrix of numbers; Schema.encode makes one of categories and dates."
        ) from None
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(f"Expected {name} to be a non-empty matrix, got shape {array.shape}.")
    if width is not None and array.shape[1] != width:
        raise InputError(f"Expected {name} to have {width} columns, got {array.shape[1]}.")
    if not np.isfinite(array).all():
        raise InputError(f"Expected {name} to be finite; it holds a missing or infinite value.")
    return array


__all__ = [
    "as_float",
    "count",
    "finite",
    "matrix",
    "non_negative",
    "one_of",
    "positive",
    "probability",
    "share",
    "text",
]
