"""Tables of settings and of printed numbers, which stand in TOML files beside the modules that use them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def read_tables(path: Path) -> dict[str, Any]:
    """The tables of a file. Lists become tuples, so that rows can be fields of frozen classes.

    >>> tables = read_tables(Path(__file__).with_name("experiments") / "marginals" / "sets.toml")
    >>> tables["generated"][2]["shape"]
    (32, 32)
    """
    tables: dict[str, Any] = _freeze(tomllib.loads(path.read_text(encoding="utf-8")))
    return tables


def _freeze(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _freeze(part) for name, part in value.items()}
    return tuple(_freeze(part) for part in value) if isinstance(value, list) else value


__all__ = ["read_tables"]
