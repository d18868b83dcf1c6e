"""Names for the numbers of a result: features, classes, cells and owners instead of places in a list.

A result that has an ``axes(schema)`` says what the axes of its lists are. It returns, for the dotted path of
each list in its plain form, one sequence of names for each axis, or None for an axis that stays a list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from privada.parties.schema import Schema

Axes = Sequence[Sequence[str] | None]


def name_result(result: Any, schema: Schema) -> dict[str, Any]:
    """The plain form of a result with names on the axes that it declares."""
    plain = dict(result.to_dict())
    declared = result.axes(schema) if hasattr(result, "axes") else {}
    for path, axes in declared.items():
        plain = _at(plain, path.split("."), axes)
    return plain


def names_of(schema: Schema) -> dict[str, Any]:
    """The public names of a schema: its features, its label and the label's classes."""
    label = schema.label
    return {
        "features": list(schema.features),
        "label": label.name if label is not None else None,
        "classes": list(schema.class_names),
    }


def name_axes(value: Any, axes: Axes) -> Any:
    """Lists with named axes as mappings; a mapping on the way has its names already.

    >>> name_axes([[1, 2], [3, 4]], (("age", "weight"), ("well", "ill")))
    {'age': {'well': 1, 'ill': 2}, 'weight': {'well': 3, 'ill': 4}}
    >>> name_axes({"well": [1, 2]}, (None, ("young", "old")))
    {'well': {'young': 1, 'old': 2}}
    """
    if not axes or value is None:
        return value
    names, rest = axes[0], axes[1:]
    if isinstance(value, Mapping):
        return {name: name_axes(part, rest) for name, part in value.items()}
    parts = [name_axes(part, rest) for part in value]
    return parts if names is None else dict(zip(names, parts, strict=True))


def _at(plain: Any, path: Sequence[str], axes: Axes) -> Any:
    """A copy of nested lists and mappings in which the list at a path is named."""
    if not path:
        return name_axes(plain, axes)
    first, rest = path[0], path[1:]
    if isinstance(plain, list):
        return [_at(part, rest, axes) if str(i) == first else part for i, part in enumerate(plain)]
    return plain | {first: _at(plain[first], rest, axes)} if first in plain else plain


__all__ = ["name_axes", "name_result", "names_of"]
