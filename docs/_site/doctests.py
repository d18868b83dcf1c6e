"""Show the doctests of a docstring as code, wherever they stand in it."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?! *\n).*)*", re.MULTILINE)

SECTION = re.compile(r"^ *-{4,}$", re.MULTILINE)


class Doctests(griffe.Extension):  # type: ignore[misc]
    """Put a fence around every doctest before the docstring is read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of one object."""
        if obj.docstring is not None and "Examples\n---" not in obj.docstring.value:
            obj.docstring.value = EXAMPLE.sub(_fenced, obj.docstring.value)


def _fenced(found: re.Match[str]) -> str:
    """After a section of parameters a doctest needs a section of its own; elsewhere a fence will do."""
    indent = found["indent"]
    if SECTION.search(found.string[: found.start()]):
        return f"{indent}Examples\n{indent}--------\n{found.group(0)}"
    return f"{indent}```pycon\n{found.group(0)}\n{indent}```"
