from io import StringIO

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


def test_empty_columns_go():
    table = Table(title="t", columns=("a", "b"), rows=(("1", ""), ("2", "")))
    assert table.without_empty_columns().columns == ("a",)
