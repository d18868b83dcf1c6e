"""The only access to private rows.

Private rows live in a `Private`. It has no repr of what it holds, no length,
no iteration, no equality, no copy and no pickle. Only owner-side modules may
import this one (a contract of the linter) and open it.
"""

from __future__ import annotations

from typing import Any, Generic, NoReturn, TypeVar

from privada.exceptions import InputError

T = TypeVar("T")


class Private(Generic[T]):
    """A closed container of rows.

    >>> box = Private([1, 2, 3])
    >>> box
    <Private>
    >>> len(box)
    Traceback (most recent call last):
        ...
    privada.exceptions.InputError: Private rows cannot be counted, read or copied here; ask their owner.
    """

    __slots__ = ("__rows",)

    def __init__(self, rows: T) -> None:
        self.__rows = rows

    def __repr__(self) -> str:
        return "<Private>"

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise InputError("Private rows cannot be counted, read or copied here; ask their owner.")

    __len__ = __iter__ = __getitem__ = __contains__ = __array__ = __bool__ = _refuse
    __reduce_ex__ = __reduce__ = __copy__ = __deepcopy__ = __getstate__ = _refuse
    __eq__ = __lt__ = __hash__ = _refuse
    __arrow_c_stream__ = __dataframe__ = _refuse


def open_private(private: Private[T]) -> T:
    """Open the container. For owner-side modules only, and only after the charge."""
    if not isinstance(private, Private):
        raise InputError(f"Expected Private rows, got {type(private).__name__}.")
    return private._Private__rows  # type: ignore[attr-defined]


__all__ = ["Private", "open_private"]
