"""Write ``docs/reference/api.md``: every public name, with the first line of its docstring.

Public is what a package's ``__all__`` says. ``make reference`` runs this; a test
checks that the page is up to date.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

MODULES = (
    "privada",
    "privada.privacy",
    "privada.privacy.accounting.curves",
    "privada.privacy.accounting.accountant",
    "privada.privacy.accounting.events",
    "privada.privacy.accounting.filters",
    "privada.parties",
    "privada.exchange",
    "privada.methods",
    "privada.methods.cells",
    "privada.methods.evaluation",
    "privada.studies",
    "privada.audit",
    "privada_lab.baselines",
    "privada_lab.experiments",
    "privada.exceptions",
)
HEAD = """\
# Python reference

Every public name, with the first line of its docstring; `help(name)` has the rest, and an example.
This page is generated: `make reference`.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(_module(name) for name in MODULES)])


def _module(name: str) -> str:
    module = import_module(name)
    columns = ("name", "what it is", "home") if name == "privada" else ("name", "what it is")
    rows = [_row(public, getattr(module, public))[: len(columns)] for public in module.__all__]
    table = [_line(columns), _line(["---"] * len(columns)), *(_line(row) for row in rows)]
    return "\n".join([f"## {name}", "", f"{_first_line(module)}.", "", *table, ""])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _row(public: str, what: Any) -> tuple[str, str, str]:
    return f"`{public}`", _said(what), f"`{_package(getattr(what, '__module__', 'privada'))}`"


def _package(module: str) -> str:
    """The public package of a module: its longest parent that is listed here."""
    return max((name for name in MODULES if module.startswith(name)), key=len, default="privada")


def _said(what: Any) -> str:
    """First line of a class's or function's docstring; plain values show themselves."""
    if inspect.isclass(what) or inspect.isroutine(what):
        return _first_line(what) if what.__module__.startswith("privada") else "Type alias"
    return f"`{what!r}`" if len(repr(what)) <= 60 else type(what).__name__


def _first_line(what: Any) -> str:
    """The first line of a docstring, ready for a table: code marks are Markdown's, bars are escaped."""
    line = (inspect.getdoc(what) or "").partition("\n")[0]
    return line.replace("``", "`").replace("|", "\\|").rstrip(":").rstrip(".")


if __name__ == "__main__":
    Path(__file__).with_name("reference").joinpath("api.md").write_text(page(), encoding="utf-8")
