"""Lazy packages: names are public at once, their modules load on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def attach(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Make ``__all__``, ``__getattr__`` and ``__dir__`` from a table of module to names (PEP 562).

    A module is one of the package, or of another one if its name begins with ``privada.``.
    """
    home = {name: module for module, names in homes.items() for name in names}
    public = sorted(home)

    def __getattr__(name: str) -> Any:  # noqa: N807 - becomes the package's own
        if name not in home:
            from privada._deprecated import find_moved, find_new_name

            if (new := find_new_name(package, name, public)) is not None:
                return __getattr__(new)
            return find_moved(package, name)
        module = home[name] if home[name].startswith("privada.") else f"{package}.{home[name]}"
        return getattr(import_module(module), name)

    return public, __getattr__, lambda: public


__all__ = ["attach"]
