from io import StringIO

from rich.console import Console

from privada.report import Table

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
