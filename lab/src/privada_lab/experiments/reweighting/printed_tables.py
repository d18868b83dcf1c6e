"""What the paper prints in its Tables 1 to 4, to stand beside what is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from privada.report.tables import Table

TABLE_1 = {  # relative MSE of KMM, DM and CnvxAdap; the paper's flights are of another airport and year
    "wind": "1.009, 1.009, 0.985",
    "flights": "2.716, 1.547, 0.992",
    "gas": "0.441, 0.381, 0.342",
    "news": "1.162, 1.006, 0.995",
}
TABLE_2 = {  # target training, validation and test rows, source rows, features
    "wind": "158, 200, 200, 6016, 11",
    "flights": "200, 300, 300, 16000, 11",
    "gas": "613, 1000, 2000, 7297, 133",
    "news": "737, 1000, 1000, 3000, 20",
}
TABLE_3: dict[tuple[str, ...], str] = {  # PCnvxAdap at ε = 4 and 10, and DM
    ("kitchen", "books"): "1.649, 0.713, 0.778",
    ("kitchen", "dvd"): "0.832, 0.521, 1.396",
    ("kitchen", "electronics"): "0.790, 0.555, 1.740",
    ("books", "dvd"): "0.929, 0.637, 0.761",
    ("books", "electronics"): "0.708, 0.485, 0.711",
    ("books", "kitchen"): "0.796, 0.632, 0.956",
    ("dvd", "electronics"): "0.671, 0.429, 0.677",
    ("dvd", "kitchen"): "0.665, 0.453, 1.185",
    ("dvd", "books"): "0.727, 0.430, 0.676",
    ("electronics", "kitchen"): "0.671, 0.439, 1.389",
    ("electronics", "books"): "0.743, 0.351, 0.884",
    ("electronics", "dvd"): "0.755, 0.589, 0.843",
}
TABLE_4 = {"adult": "91.38", "german": "77.96", "accent": "93.95"}  # of NCnvxAdap


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
