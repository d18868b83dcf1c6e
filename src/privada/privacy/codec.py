"""The file form of public values: fields of frozen dataclasses as plain values and arrays.

Plain values go into the JSON header of a file, arrays follow it. How a field is written depends on what it
holds, unless its declaration says otherwise:

==============================  ==================================================================
a field that holds              is written as
==============================  ==================================================================
a plain value                   itself; a tuple is a list in the file and a tuple again when read
an array                        an array of the field's name
``metadata=one_of(Family)``     ``{"form": name, "plain": ...}``; its arrays under ``field/``
``metadata=several_of(Family)`` a list of these; arrays under ``field/0/``, ``field/1/``, ...
``metadata=inlined(Class)``     the fields of another dataclass, among those of this one
``metadata=mapping_of(Class)``  an object of the other dataclass's plain fields
==============================  ==================================================================

A family is a subclass of `Form`. Its members are found by the names of their forms, and no other class is
ever made from a file. The classes validate what is read.

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

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, fields, replace
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


@dataclass(frozen=True)
class _Codec:
    """How a field is written and read; reading removes what was written from plain values and arrays."""

    write: Callable[[str, Any, Plain, Arrays], None]
    read: Callable[[str, Plain, Arrays], Any]
    is_present: Callable[[str, Plain, Arrays], bool] = lambda name, plain, arrays: (
        name in plain or name in arrays
    )


def _write_itself(name: str, value: Any, plain: Plain, arrays: Arrays) -> None:
    if isinstance(value, np.ndarray):
        arrays[name] = value
    else:
        plain[name] = value


def _read_itself(name: str, plain: Plain, arrays: Arrays) -> Any:
    def make_tuples(value: Any) -> Any:  # JSON has lists only
        return tuple(map(make_tuples, value)) if isinstance(value, list) else value

    return arrays.pop(name) if name in arrays else make_tuples(plain.pop(name))


_ITSELF = _Codec(_write_itself, _read_itself)


def _list_codecs(kind: type[Any], but: tuple[str, ...]) -> Iterator[tuple[Field[Any], _Codec]]:
    for field in fields(kind):
        if field.init and field.name not in but:
            yield field, field.metadata.get(_CODEC, _ITSELF)


def write_fields(value: Any, *, but: tuple[str, ...] = ()) -> tuple[Plain, Arrays]:
    """Fields of a dataclass, except those in ``but``, as plain values and arrays."""
    plain: Plain = {}
    arrays: Arrays = {}
    for field, codec in _list_codecs(type(value), but):
        codec.write(field.name, getattr(value, field.name), plain, arrays)
    return plain, arrays


def read_fields(
    kind: type[Any], make: Callable[..., Any], plain: Plain, arrays: Arrays, *, but: tuple[str, ...] = ()
) -> Any:
    """Call ``make`` with all that `write_fields` wrote of a class; refuse parts that hold anything else."""
    plain, arrays = dict(plain), dict(arrays)
    values = _take_fields(kind, plain, arrays, but)
    if plain or arrays:
        names = ", ".join(sorted({*plain, *arrays}))
        raise TypeError(f"{kind.__name__} has no fields {names}")  # as of any call with other keywords
    return make(**values)


def _take_fields(kind: type[Any], plain: Plain, arrays: Arrays, but: tuple[str, ...] = ()) -> dict[str, Any]:
    """Remove the fields of a class from plain values and arrays; a missing field has its default."""
    return {
        field.name: codec.read(field.name, plain, arrays)
        for field, codec in _list_codecs(kind, but)
        if codec.is_present(field.name, plain, arrays)
    }


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
    forms: dict[str, type[Any]] = {}
    classes = [family]
    for kind in classes:  # the list grows while it is read: breadth first
        classes += kind.__subclasses__()
        if "form" in vars(kind):
            forms.setdefault(kind.form, kind)  # the first class keeps its name: no later one takes its place
    return forms[_check.one_of(forms, form=entry["form"])].from_parts(dict(entry["plain"]), arrays)


def one_of(family: type[Any], *, path: str | None = None) -> Mapping[str, Any]:
    """Metadata of a field that holds a value of a family, or None; ``path`` begins its arrays' names."""

    def write(name: str, value: Any, plain: Plain, arrays: Arrays) -> None:
        prefix = f"{name}/" if path is None else path
        plain[name] = None if value is None else _write_form(value, prefix, arrays)

    def read(name: str, plain: Plain, arrays: Arrays) -> Any:
        prefix, entry = f"{name}/" if path is None else path, plain.pop(name)
        own = {key.removeprefix(prefix): arrays.pop(key) for key in list(arrays) if key.startswith(prefix)}
        return None if entry is None and not own else read_form(family, entry, own)

    return {_CODEC: _Codec(write, read)}


def several_of(
    family: type[Any], *, key: str | None = None, path: str | None = None, inner: str = ""
) -> Mapping[str, Any]:
    """Metadata of a field that holds a tuple of values of a family, under ``key`` of the header.

    The names of their arrays begin with ``path``, the number of the value and ``inner``.
    """

    def write(name: str, value: Any, plain: Plain, arrays: Arrays) -> None:
        prefix = f"{name}/" if path is None else path
        plain[key or name] = [
            _write_form(member, f"{prefix}{index}/{inner}", arrays) for index, member in enumerate(value)
        ]

    def read(name: str, plain: Plain, arrays: Arrays) -> Any:
        prefix, entries = f"{name}/" if path is None else path, plain.pop(key or name)
        own: dict[str, Arrays] = defaultdict(dict)
        for array_name in [array_name for array_name in arrays if array_name.startswith(prefix)]:
            index, slash, rest = array_name.removeprefix(prefix).partition("/")
            if slash and index.isdecimal() and rest.startswith(inner):
                own[index][rest.removeprefix(inner)] = arrays.pop(array_name)
        values = tuple(
            read_form(family, entry, own.pop(str(index), {})) for index, entry in enumerate(entries)
        )
        if own:
            raise InputError(f"Expected arrays of {len(values)} values of {name}, got more.")
        return values

    return {_CODEC: _Codec(write, read, lambda name, plain, arrays: (key or name) in plain)}  # noqa: ARG005


def only_of(family: type[Any], *, key: str | None = None, path: str | None = None) -> Mapping[str, Any]:
    """Metadata of a field that holds one value of a family but is written like several."""
    several = several_of(family, key=key, path=path)[_CODEC]

    def write(name: str, value: Any, plain: Plain, arrays: Arrays) -> None:
        several.write(name, (value,), plain, arrays)

    def read(name: str, plain: Plain, arrays: Arrays) -> Any:
        (value,) = several.read(name, plain, arrays)
        return value

    return {_CODEC: replace(several, write=write, read=read)}


def inlined(kind: type[Any]) -> Mapping[str, Any]:
    """Metadata of a field that holds a dataclass, whose fields are written among those of this class."""

    def write(name: str, value: Any, plain: Plain, arrays: Arrays) -> None:  # noqa: ARG001
        inner_plain, inner_arrays = write_fields(value)
        plain |= inner_plain
        arrays |= inner_arrays

    def read(name: str, plain: Plain, arrays: Arrays) -> Any:  # noqa: ARG001
        return kind(**_take_fields(kind, plain, arrays))

    return {_CODEC: _Codec(write, read, lambda name, plain, arrays: True)}  # noqa: ARG005


def mapping_of(kind: type[Any]) -> Mapping[str, Any]:
    """Metadata of a field that holds a dataclass of plain fields."""

    def write(name: str, value: Any, plain: Plain, arrays: Arrays) -> None:  # noqa: ARG001
        plain[name] = write_fields(value)[0]

    def read(name: str, plain: Plain, arrays: Arrays) -> Any:  # noqa: ARG001
        return read_fields(kind, kind, plain.pop(name), {})

    return {_CODEC: _Codec(write, read)}
