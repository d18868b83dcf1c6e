"""The file form of public values: fields of frozen dataclasses as plain values and arrays.

Plain values go into a file's JSON header, arrays beside it. How a field is written follows from what it
holds, unless its declaration says otherwise:

==============================  ==================================================================
a field that holds              is written as
==============================  ==================================================================
a plain value                   itself; a tuple is a list in the file and a tuple again when read
an array                        an array of the field's name
``metadata=one_of(Family)``     ``{"form": name, "plain": ...}``; its arrays under ``field/``
``metadata=several_of(Family)`` a list of such; arrays under ``field/0/``, ``field/1/``, ...
``metadata=inlined(Class)``     the fields of another dataclass, among the own ones
``metadata=mapping_of(Class)``  an object of the other dataclass's plain fields
==============================  ==================================================================

A family is a subclass of `Form`; its members are found by the names that they give to their forms, and no
other class is ever made from a file. What is read is validated by the classes themselves.

>>> from dataclasses import dataclass, field
>>> class Shape(Form): ...
>>> @dataclass(frozen=True)
... class Square(Shape):
...     side: float
...     form: ClassVar[str] = "square"
>>> @dataclass(frozen=True)
... class Drawing(Form):
...     shapes: tuple[Shape, ...] = field(metadata=several_of(Shape))
...     form: ClassVar[str] = "drawing"
>>> plain, arrays = Drawing((Square(2.0),)).parts()
>>> plain
{'shapes': [{'form': 'square', 'plain': {'side': 2.0}}]}
>>> Drawing.from_parts(plain, arrays)
Drawing(shapes=(Square(side=2.0),))
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, fields
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from privada import _check
from privada.exceptions import InputError

Plain = dict[str, Any]
Arrays = dict[str, npt.NDArray[Any]]
_CODEC = "privada.codec"


class Form:
    """A public value that is part of a question; subclasses are frozen dataclasses with a ``form`` each."""

    form: ClassVar[str]
    forms_in: ClassVar[tuple[str, ...]] = ()  # modules with more forms of a family, imported to read one

    def parts(self) -> tuple[Plain, Arrays]:
        """Plain values and arrays."""
        return write_fields(self)

    @classmethod
    def from_parts(cls, plain: Plain, arrays: Arrays) -> Self:
        """Make it from its parts; everything is validated again."""
        return read_fields(cls, cls, plain, arrays)


def write_fields(value: Any, *, but: tuple[str, ...] = ()) -> tuple[Plain, Arrays]:
    """Fields of a dataclass, ``but`` some, as plain values and arrays."""
    plain: Plain = {}
    arrays: Arrays = {}
    for each in _written(type(value), but):
        _codec(each).write(each.name, getattr(value, each.name), plain, arrays)
    return plain, arrays


def read_fields(
    kind: type[Any], make: Callable[..., Any], plain: Plain, arrays: Arrays, *, but: tuple[str, ...] = ()
) -> Any:
    """Call ``make`` with all that `write_fields` wrote of a class; refuse parts that hold anything else."""
    plain, arrays = dict(plain), dict(arrays)
    read = _take(kind, plain, arrays, but)
    if plain or arrays:
        names = ", ".join(sorted({*plain, *arrays}))
        raise TypeError(f"{kind.__name__} has no fields {names}")  # as of any call with other keywords
    return make(**read)


def _take(kind: type[Any], plain: Plain, arrays: Arrays, but: tuple[str, ...] = ()) -> dict[str, Any]:
    """Fields of a class, taken out of plain values and arrays; one that is not there has its default."""
    found: dict[str, Any] = {}
    for each in _written(kind, but):
        codec = _codec(each)
        if codec.is_there(each.name, plain, arrays):
            found[each.name] = codec.read(each.name, plain, arrays)
    return found


def _written(kind: type[Any], but: tuple[str, ...]) -> Iterator[Field[Any]]:
    return (each for each in fields(kind) if each.init and each.name not in but)


def _codec(each: Field[Any]) -> _Codec:
    codec: _Codec = each.metadata.get(_CODEC, _PLAIN)
    return codec


class _Codec(ABC):
    """How one field is written; reading takes out what was written."""

    @abstractmethod
    def write(self, name: str, value: Any, plain: Plain, arrays: Arrays) -> None:
        """Put the field's value into plain values and arrays."""

    @abstractmethod
    def read(self, name: str, plain: Plain, arrays: Arrays) -> Any:
        """Take the field's value out of them."""

    def is_there(self, name: str, plain: Plain, arrays: Arrays) -> bool:
        """Whether a file has the field."""
        return name in plain or name in arrays


class _Itself(_Codec):
    """Plain values and arrays, by what they are."""

    def write(self, name: str, value: Any, plain: Plain, arrays: Arrays) -> None:
        if isinstance(value, np.ndarray):
            arrays[name] = value
        else:
            plain[name] = value

    def read(self, name: str, plain: Plain, arrays: Arrays) -> Any:
        return arrays.pop(name) if name in arrays else _tuples(plain.pop(name))


_PLAIN = _Itself()


@dataclass(frozen=True)
class _One(_Codec):
    """One value of a family, or None."""

    family: type[Any]
    path: str | None

    def write(self, name: str, value: Any, plain: Plain, arrays: Arrays) -> None:
        plain[name] = None if value is None else _write_form(value, self._path(name), arrays)

    def read(self, name: str, plain: Plain, arrays: Arrays) -> Any:
        entry, path = plain.pop(name), self._path(name)
        own = {key.removeprefix(path): arrays.pop(key) for key in list(arrays) if key.startswith(path)}
        return None if entry is None and not own else read_form(self.family, entry, own)

    def _path(self, name: str) -> str:
        return f"{name}/" if self.path is None else self.path


@dataclass(frozen=True)
class _Several(_Codec):
    """A tuple of values of a family."""

    family: type[Any]
    key: str | None
    path: str | None
    inner: str = ""

    def write(self, name: str, value: Any, plain: Plain, arrays: Arrays) -> None:
        path = self._path(name)
        plain[self.key or name] = [
            _write_form(each, f"{path}{index}/{self.inner}", arrays) for index, each in enumerate(value)
        ]

    def read(self, name: str, plain: Plain, arrays: Arrays) -> Any:
        entries, path = plain.pop(self.key or name), self._path(name)
        own: dict[str, Arrays] = defaultdict(dict)
        for key in [key for key in arrays if key.startswith(path)]:
            index, slash, rest = key.removeprefix(path).partition("/")
            if slash and index.isdecimal() and rest.startswith(self.inner):
                own[index][rest.removeprefix(self.inner)] = arrays.pop(key)
        found = tuple(
            read_form(self.family, entry, own.pop(str(index), {})) for index, entry in enumerate(entries)
        )
        if own:
            raise InputError(f"Expected arrays of {len(found)} values of {name}, got more.")
        return found

    def is_there(self, name: str, plain: Plain, arrays: Arrays) -> bool:  # noqa: ARG002
        return (self.key or name) in plain

    def _path(self, name: str) -> str:
        return f"{name}/" if self.path is None else self.path


class _Only(_Several):
    """The only one of several."""

    def write(self, name: str, value: Any, plain: Plain, arrays: Arrays) -> None:
        super().write(name, (value,), plain, arrays)

    def read(self, name: str, plain: Plain, arrays: Arrays) -> Any:
        (found,) = super().read(name, plain, arrays)
        return found


@dataclass(frozen=True)
class _Inlined(_Codec):
    """The fields of another dataclass, among the own ones."""

    kind: type[Any]

    def write(self, name: str, value: Any, plain: Plain, arrays: Arrays) -> None:  # noqa: ARG002
        more_plain, more_arrays = write_fields(value)
        plain |= more_plain
        arrays |= more_arrays

    def read(self, name: str, plain: Plain, arrays: Arrays) -> Any:  # noqa: ARG002
        return self.kind(**_take(self.kind, plain, arrays))

    def is_there(self, name: str, plain: Plain, arrays: Arrays) -> bool:  # noqa: ARG002
        return True


@dataclass(frozen=True)
class _Mapping(_Codec):
    """An object of another dataclass's plain fields."""

    kind: type[Any]

    def write(self, name: str, value: Any, plain: Plain, arrays: Arrays) -> None:  # noqa: ARG002
        plain[name] = write_fields(value)[0]

    def read(self, name: str, plain: Plain, arrays: Arrays) -> Any:  # noqa: ARG002
        return read_fields(self.kind, self.kind, plain.pop(name), {})


def _write_form(value: Any, path: str, arrays: Arrays) -> Plain:
    plain, own = value.parts()
    arrays |= {f"{path}{name}": array for name, array in own.items()}
    return {"form": value.form, "plain": plain}


def read_form(family: type[Any], entry: Plain, arrays: Arrays) -> Any:
    """Make a value of a family from the name of its form, its plain values and its arrays."""
    if set(entry) != {"form", "plain"}:
        raise InputError("Expected a form to have a name and plain values, and nothing else.")
    for module in getattr(family, "forms_in", ()):
        import_module(module)
    forms = {form.form: form for form in _members(family)}
    return forms[_check.one_of(forms, form=entry["form"])].from_parts(dict(entry["plain"]), arrays)


def _members(family: type[Any]) -> Iterator[type[Any]]:
    """Classes of a family that name a form; of two with one name the first, so that none takes another's."""
    known: set[str] = set()
    waiting = [family]
    while waiting:
        kind = waiting.pop(0)
        waiting += kind.__subclasses__()
        if "form" in vars(kind) and kind.form not in known:
            known.add(kind.form)
            yield kind


def _tuples(value: Any) -> Any:
    """Lists, which is what a file has, as tuples."""
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value


def one_of(family: type[Any], *, path: str | None = None) -> Mapping[str, Any]:
    """Metadata of a field that holds a value of a family, or None; ``path`` begins its arrays' names."""
    return {_CODEC: _One(family, path)}


def several_of(
    family: type[Any], *, key: str | None = None, path: str | None = None, inner: str = ""
) -> Mapping[str, Any]:
    """Metadata of a field that holds a tuple of values of a family, under ``key`` of the header.

    The names of their arrays begin with ``path``, the number of the value and ``inner``.
    """
    return {_CODEC: _Several(family, key, path, inner)}


def only_of(family: type[Any], *, key: str | None = None, path: str | None = None) -> Mapping[str, Any]:
    """Metadata of a field that holds one value of a family but is written like several."""
    return {_CODEC: _Only(family, key, path)}


def inlined(kind: type[Any]) -> Mapping[str, Any]:
    """Metadata of a field whose own fields stand among those of the class that holds it."""
    return {_CODEC: _Inlined(kind)}


def mapping_of(kind: type[Any]) -> Mapping[str, Any]:
    """Metadata of a field that holds a dataclass of plain fields."""
    return {_CODEC: _Mapping(kind)}


__all__ = [
    "Form",
    "inlined",
    "mapping_of",
    "one_of",
    "only_of",
    "read_fields",
    "read_form",
    "several_of",
    "write_fields",
]
