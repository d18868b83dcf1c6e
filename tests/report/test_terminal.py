from io import StringIO

import pytest
from rich.console import Console

from privada.report import Table

TABLE = Table(
    title="Lines",
    columns=("line", "guarantee", "note"),
    rows=(("0", "ε = 4 (pure), add/remove one row", ""), ("1", "ε = 1 (pure), add/remove one row", "first")),
    note="the end",
)


def shown(width):
    out = StringIO()
    Console(file=out, width=width).print(TABLE.to_rich())
    return out.getvalue()


def test_side_by_side_where_there_is_room():
    wide = shown(100).splitlines()
    assert wide[0] == "Lines"
    assert wide[1].split() == ["line", "guarantee", "note"]
    assert "the end" in wide


@pytest.mark.parametrize("width", [18, 20, 24])
def test_a_block_for_each_row_where_there_is_not(width):
    narrow = shown(width)
    assert narrow.count("guarantee") == 2
    assert narrow.count("note ") == 1  # what is empty is left out
    assert max(map(len, narrow.splitlines())) <= width


@pytest.mark.parametrize("width", [24, 30, 40, 80])
def test_no_cell_is_cut_at_any_width(width):
    words = set("".join(shown(width).replace("\n", " ")).split())
    assert {"ε", "=", "4", "(pure),", "add/remove", "first"} <= words
