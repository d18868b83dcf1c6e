"""TOML files whose errors name the line and the key."""

from __future__ import annotations

import datetime as dt
import math
import os
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from privada import _check, _files
from privada._text import quoted
from privada.exceptions import InputError, StudyError

_HEADER = re.compile(r"\s*\[+\s*([^\]]+?)\s*\]+")
_KEY = re.compile(r"\s*([A-Za-z0-9_\-\".]+)\s*=")
_MISSING = object()


class Section:
    r"""One table of a TOML file; each key is taken once, with its type checked.

    >>> top = Section.parse("[budget]\nepsilon = 'much'", name="owner.toml")
    >>> top.section("budget").number("epsilon")
    Traceback (most recent call last):
        ...
    privada.exceptions.StudyError: owner.toml, line 2, budget.epsilon: expected a number, got 'much'.
    """

    def __init__(self, data: dict[str, Any], *, name: str, text: str, path: str = "", nth: int = 0) -> None:
        self._untaken = dict(data)
        self._expected: set[str] = set()
        self.taken: list[str] = []  # keys that were there, in the order in which they were read
        self._name = name
        self._text = text
        self._path = path
        self._nth = nth

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Section:
        """Read a plain file of bounded size."""
        return cls.parse(_files.read_text(path, error=StudyError), name=Path(path).name)

    @classmethod
    def parse(cls, text: str, *, name: str) -> Section:
        """Parse a text."""
        try:
            return cls(tomllib.loads(text), name=name, text=text)
        except tomllib.TOMLDecodeError as error:
            raise StudyError(f"{name}: {error}.") from None
        except (ValueError, RecursionError):  # of a whole number of thousands of digits, or endless brackets
            raise StudyError(f"{name}: a number is too long, or lists are nested too deeply.") from None

    def fail(self, key: str, message: str, *, beside: str = "") -> NoReturn:
        """Raise a `StudyError` that points at a key, or at the text ``beside`` from there on."""
        full = f"{self._path}.{key}" if self._path and key else key or self._path
        line = _line_of(self._text, self._path, key, self._nth)
        below = enumerate(self._text.splitlines()[line - 1 :], start=line)
        line = next((number for number, text in below if beside and beside in text), line)
        raise StudyError(f"{self._name}, line {line}, {full}: {message}")

    @contextmanager
    def blaming(self, *keys: str) -> Iterator[None]:
        """Turn an `InputError` of the block into one that points at the key that it names, or the first."""
        try:
            yield
        except StudyError:
            raise
        except InputError as error:
            mentioned = [key for key in keys if re.search(rf"\b{re.escape(key)}\b", str(error))]
            self.fail((mentioned or list(keys))[0], str(error))

    def _take(self, key: str, kinds: tuple[type, ...], expected: str, default: Any) -> Any:
        self._expected.add(key)
        if key not in self._untaken:
            if default is _MISSING:
                self.fail(key, f"expected {expected}, but it is missing.")
            return default
        value = self._untaken.pop(key)
        self.taken.append(key)
        # True is an int in Python, but not a number of a file
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            self.fail(key, f"expected {expected}, got {quoted(value)}.")
        return value

    def string(self, key: str, default: Any = _MISSING) -> Any:
        """Take a string."""
        return self._take(key, (str,), "a string", default)

    def number(self, key: str, default: Any = _MISSING) -> Any:
        """Take a number as float."""
        value = self._take(key, (int, float), "a number", default)
        if not isinstance(value, (int, float)):
            return value
        number = _check.as_float(value)
        if isinstance(value, int) and math.isinf(number):
            self.fail(key, f"expected a number below 1.8e308, got {quoted(value)}.")
        return number

    def whole(self, key: str, default: Any = _MISSING) -> Any:
        """Take a whole number."""
        return self._take(key, (int,), "a whole number", default)

    def flag(self, key: str, default: Any = _MISSING) -> Any:
        """Take true or false."""
        return self._take(key, (bool,), "true or false", default)

    def one(self, key: str, kinds: tuple[type, ...], expected: str, default: Any = _MISSING) -> Any:
        """Take a value of one of several kinds; ``expected`` says it in words."""
        return self._take(key, kinds, expected, default)

    def day(self, key: str, default: Any = _MISSING) -> Any:
        """Take a day, without a time."""
        value = self._take(key, (dt.date,), "a day such as 2027-01-31", default)
        if isinstance(value, dt.datetime):
            self.fail(key, f"expected a day such as 2027-01-31, got {quoted(str(value))}.")
        return value

    def array(self, key: str, default: Any = _MISSING) -> Any:
        """Take a list."""
        return self._take(key, (list,), "a list", default)

    def date(self, key: str) -> dt.date | str:
        """Take a date or a time, or the text of one."""
        return self._take(key, (dt.date, str), 'a date as in 2024-01-31 or "2024-01-31"', _MISSING)

    def holds_date(self, key: str) -> bool:
        """Whether a key that was not taken yet is a date or a time."""
        return isinstance(self._untaken.get(key), dt.date)

    def section(self, key: str) -> Section:
        """Take a table; a missing one is empty."""
        data = self._take(key, (dict,), "a table", {})
        return self._child(key, data)

    def sections(self, key: str) -> list[Section]:
        """Take a list of tables."""
        tables = self._take(key, (list,), "a list of tables", [])
        if not all(isinstance(table, dict) for table in tables):
            self.fail(key, "expected a list of tables.")
        return [self._child(key, table, nth) for nth, table in enumerate(tables)]

    def named_sections(self) -> dict[str, Section]:
        """Take every table that is left, by name."""
        names = [key for key, value in self._untaken.items() if isinstance(value, dict)]
        return {key: self._child(key, self._untaken.pop(key)) for key in names}

    def _child(self, key: str, data: dict[str, Any], nth: int = 0) -> Section:
        path = f"{self._path}.{key}" if self._path else key
        return Section(data, name=self._name, text=self._text, path=path, nth=nth)

    def __contains__(self, key: str) -> bool:
        self._expected.add(key)  # whoever looks for a key knows it
        return key in self._untaken

    def rest(self) -> dict[str, Any]:
        """Take everything that is left, untyped."""
        values, self._untaken = self._untaken, {}
        return values

    def done(self) -> None:
        """Fail on the first key that nobody took."""
        for key in self._untaken:
            expected = ", ".join(sorted(self._expected)) or "none"
            self.fail(key, f"nobody knows this key; known here: {expected}.")


def _line_of(text: str, path: str, key: str, nth: int) -> int:
    """Find the line of a key in the nth table of its name, or of the table, or 1."""
    # tomllib does not say where a key is, so the text is read once more
    here, count, best = "", -1, 1
    above, _, last = path.rpartition(".")
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            here = header.group(1).replace('"', "")
            count += here == path
            if (here == path and count == nth) or here == f"{path}.{key}".strip("."):
                best = number
        elif match := _KEY.match(line):
            name = match.group(1).strip('"')
            if here == path and max(count, 0) == nth and name == key:
                return number
            best = number if (here, name) == (above, last) else best  # an inline table
    return best


__all__ = ["Section"]
