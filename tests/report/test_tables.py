"""Tables: as text, on a page, in a terminal of any width; and tables of anything that has a plain form."""

from io import StringIO

import pytest
from rich.console import Console

from privada.report import Table, tables_of

HOSTILE = "<script>alert(1)</script> [bold]x[/bold] $y$ &"


def test_html_is_escaped_everywhere():
    html = Table(title=HOSTILE, columns=(HOSTILE,), rows=((HOSTILE,),)).to_html()
    assert "<script>" not in html
    assert html.count("&lt;script&gt;") == 2


def test_the_terminal_shows_markup_as_text():
    out = StringIO()
    Console(file=out, width=200).print(Table(title=HOSTILE, columns=("a",), rows=((HOSTILE,),)).to_rich())
    assert out.getvalue().count("[bold]x[/bold]") == 2


def test_long_tables_say_what_is_left_out():
    table = Table(title="t", columns=("a",), rows=tuple((str(i),) for i in range(100))).shortened(10)
    assert len(table.rows) == 10
    assert "90 more rows" in table.note


def test_bars_for_numbers_by_place_only():
    bars = Table(title="t", columns=("", "a"), rows=(("0", "4"), ("1", "-2"), ("2", "2")))
    assert "--p:100%" in bars.to_html()
    assert "--p:50%" in bars.to_html()
    assert "--p:0%" in bars.to_html()
    assert not Table(title="t", columns=("", "a"), rows=(("0", "x"),) * 3).has_bars
    assert not Table(title="t", columns=("what", "a"), rows=(("0", "1"),) * 3).has_bars


def test_empty_columns_go():
    table = Table(title="t", columns=("a", "b"), rows=(("1", ""), ("2", "")))
    assert table.without_empty_columns().columns == ("a",)


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


def test_plain_forms_of_every_shape():
    plain = {
        "total": 3.14159265,
        "stamps": [],
        "counts": {"a": [1, 2], "b": [3, 4]},
        "means": [[0.5, 1.5], [2.5, 3.5]],
        "parts": [{"x": [1]}, {"x": [2]}],
        "deep": {"y": {"z": 1}},
    }
    tables = {table.title: table for table in tables_of(plain, title="all")}
    assert tables["all"].rows == (("total", "3.1416"), ("stamps", "none"))
    assert tables["counts"].columns == ("", "a", "b")
    assert tables["counts"].rows == (("0", "1", "3"), ("1", "2", "4"))
    assert tables["means"].rows[1] == ("1", "2.5", "3.5")
    assert {"parts 1", "parts 2", "deep: y"} <= set(tables)


def test_rows_of_unequal_length_are_filled_and_long_lists_are_shortened():
    (table,) = tables_of({"means": [[1.0], [2.0, 3.0]]}, title="all")
    assert table.columns == ("", "0", "1")
    assert table.rows == (("0", "1", ""), ("1", "2", "3"))
    (long,) = tables_of({"counts": list(range(500))}, title="all")
    assert len(long.rows) < 500
    assert "more rows" in long.note


def test_columns_of_unequal_length_or_of_words_are_no_table_by_columns():
    titles = [table.title for table in tables_of({"a": {"x": [1], "y": [1, 2]}}, title="all")]
    assert titles == ["a: x", "a: y"]
    (words,) = tables_of({"a": {"x": ["p", "q"]}}, title="all")
    assert words.rows == (("x", "p, q"),)


def test_a_long_list_of_words_is_counted():
    (table,) = tables_of({"labels": ["ill", "well", "well"] * 10}, title="all")
    assert table.title == "labels"
    assert table.rows == (("well", "20"), ("ill", "10"))
    assert table.note == "All 30 are in the JSON."


def test_numbers_stand_with_their_intervals():
    share = {"value": 0.5, "low": 0.4, "high": 0.6, "confidence": 0.9}
    single, recall = tables_of({"accuracy": share, "recall": {"ill": share, "well": share}}, title="all")
    assert single.rows == (("accuracy", "0.5 (0.4 to 0.6)"), ("confidence of each interval", "0.9"))
    assert recall.rows == (("ill", "0.5 (0.4 to 0.6)"), ("well", "0.5 (0.4 to 0.6)"))
    counts = {"well": {"cell 0": 5, "cell 1": 6}, "ill": {"cell 0": 1, "cell 1": 2}}
    (table,) = tables_of({"counts": counts, "low": counts, "high": counts}, title="all")
    assert table.rows[0][1] == "5 (5 to 5)"


def test_ends_of_something_else_stay_where_they_are():
    (bins,) = tables_of(
        {"bins": [{"low": 0, "high": 1, "rows": 5}, {"low": 1, "high": 2, "rows": 6}]}, title="all"
    )
    assert bins.columns == ("", "low", "high", "rows")
    titles = [
        each.title
        for each in tables_of({"means": {"a": 1, "b": 2}, "low": {"a": 0}, "high": {"a": 1}}, title="r")
    ]
    assert titles == ["means", "low", "high"]


def test_nothing_gives_no_table():
    assert tables_of({}, title="all") == []


def test_named_rows_are_one_table_with_the_names_as_they_are():
    share = {"value": 0.5, "low": 0.4}
    (rows,) = tables_of({"recall": {"not_ill": share, "ill": share}}, title="all")
    assert rows.columns == ("", "value", "low")
    assert rows.rows[0] == ("not_ill", "0.5", "0.4")
    cells = {f"cell {i}": i for i in range(12)}
    (turned,) = tables_of({"counts": {"well": cells, "ill": cells}}, title="all")
    assert turned.columns == ("", "well", "ill")
    assert turned.rows[11] == ("cell 11", "11", "11")
    (bins,) = tables_of({"bins": [{"low": 0, "share": share}, {"low": 1, "share": share}]}, title="all")
    assert bins.columns == ("", "low", "share value", "share low")
