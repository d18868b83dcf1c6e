"""What the paper prints in its Tables 1 to 4, to stand beside what is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from privada.report.tables import Table
from privada_lab.toml_tables import read_tables

_TABLES = read_tables(Path(__file__).with_name("printed_tables.toml"))
TABLE_1: dict[str, str] = _TABLES["table_1"]
TABLE_2: dict[str, str] = _TABLES["table_2"]
TABLE_3: dict[tuple[str, ...], str] = {
    (source, target): numbers for source, row in _TABLES["table_3"].items() for target, numbers in row.items()
}
TABLE_4: dict[str, str] = _TABLES["table_4"]


def beside_paper(table: Table, printed: Mapping[tuple[str, ...], str], head: str) -> Table:
    """The table with one column more: what the paper prints of each row, by the row's first cells.

    >>> table = Table(title="t", columns=("set", "MSE"), rows=(("gas", "1"), ("new", "2")))
    >>> beside_paper(table, {("gas",): "0.342"}, "the paper").rows
    (('gas', '1', '0.342'), ('new', '2', ''))
    """
    width = len(next(iter(printed)))
    rows = tuple((*row, printed.get(row[:width], "")) for row in table.rows)
    return replace(table, columns=(*table.columns, head), rows=rows)


def by_set(printed: Mapping[str, str]) -> dict[tuple[str, ...], str]:
    """The same with keys of one cell."""
    return {(name,): value for name, value in printed.items()}


__all__ = ["TABLE_1", "TABLE_2", "TABLE_3", "TABLE_4", "beside_paper", "by_set"]
