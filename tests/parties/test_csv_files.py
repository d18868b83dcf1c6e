import bz2
import gzip

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privada._toml import Section
from privada.exceptions import InputError, SchemaError, StudyError
from privada.parties import Category, Date, Number, Rows, Schema
from privada.parties.csv_files import CsvFile, Dialect, is_csv, parse_fields
from privada.parties.sources import StoredRows

GERMAN_SECTION = """
[csv]
delimiter = ";"
encoding = "cp1252"
decimal = ","
thousands = "."
date_format = "%d.%m.%Y"
null = ["", "k.A."]
"""


def read(text):
    return Dialect.from_section(Section.parse(text, name="owner.toml").section("csv"))


def test_a_german_export_is_declared():
    dialect = read(GERMAN_SECTION)
    assert dialect == Dialect(
        delimiter=";",
        encoding="cp1252",
        decimal=",",
        thousands=".",
        date_format="%d.%m.%Y",
        null=("", "k.A."),
    )
    assert Dialect(**dialect.to_dict()) == dialect
    assert Dialect().to_dict() == {}
    assert read('[csv]\nheader = false\nnames = ["a", "b"]').names == ("a", "b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('delimiter = ";;"', r"line 2, csv\.delimiter: Expected delimiter to be one ASCII character"),
        ('decimal = "§"', r"csv\.decimal"),
        ('decimal = "5"', r"csv\.decimal: Expected decimal to be no letter"),
        ('thousands = "."', r"csv\.thousands: Expected thousands to differ from decimal"),
        ("quote = ','", r"csv\.quote: Expected quote to differ"),
        ('encoding = "klingon"', r"csv\.encoding: Expected encoding to be one that Python knows"),
        ('encoding = "hex"', r"csv\.encoding: Expected encoding to be one of text"),
        ('compression = "rar"', r"csv\.compression"),
        ('date_format = "dd.mm"', r"csv\.date_format"),
        ("null = [3]", r"csv\.null"),
        ("header = false", r"line 2, csv\.header: a file without a header needs names"),
        ('header = true\nnames = ["a"]', r"csv\.header"),
        ('names = ["a", "a"]', r"csv\.names"),
        ('seperator = ";"', r"csv\.seperator: nobody knows this key"),
        ("delimiter = 3", r"csv\.delimiter: expected a string"),
    ],
)
def test_what_is_no_dialect_is_named(text, message):
    with pytest.raises(StudyError, match=message):
        read(f"[csv]\n{text}")


def test_a_category_that_is_also_a_word_for_nothing_is_refused():
    """Rows of Namibia would be missing ones."""
    with pytest.raises(SchemaError, match=r"'country' has the category 'NA'.*\[data\.csv\]"):
        Category(name="country", values=("DE", "NA")).check_dialect(Dialect())
    Category(name="country", values=("DE", "NA")).check_dialect(Dialect(null=("",)))
    Category(name="level", values=(0, 1)).check_dialect(Dialect())


def test_files_are_known_by_their_name():
    assert [is_csv(name) for name in ("a.csv", "A.CSV.GZ", "b.csv.zst", "c.parquet", "csv")] == [True] * 3 + [
        False
    ] * 2
    assert Dialect().compression_of("A.CSV.BZ2") == "bz2"
    assert Dialect(compression="none").compression_of("a.csv.gz") is None
    assert Dialect(compression="gz").compression_of("a.csv") == "gzip"


def test_names_are_those_of_all_columns():
    with pytest.raises(InputError, match="names"):
        Dialect(names=("a", ""))


X = Number(name="x", low=0, high=1)
GERMAN_WORDS = Dialect(delimiter=";", decimal=",", thousands=".", date_format="%d.%m.%Y", null=("", "k.A."))


def parsed(column, texts, dialect):
    values, wrong = parse_fields(column, pa.array(texts, pa.string()), dialect)
    return values.to_pylist(), wrong.tolist()


def test_numbers_in_german():
    right = ["1.234,5", "1234,5", " -7 ", "k.A.", "", "1e3", "1.234.567", ",5"]
    values, wrong = parsed(X, right, GERMAN_WORDS)
    assert values == [1234.5, 1234.5, -7.0, None, None, 1000.0, 1234567.0, 0.5]
    assert not any(wrong)


def test_a_separator_in_the_wrong_place_makes_no_number():
    """Removed wherever it stands, "12.5" would be 125."""
    texts = ["12.5", "1.2345", "1..234", ".123", "1.23,4", "1,234.5", "zwölf", "NA"]
    values, wrong = parsed(X, texts, GERMAN_WORDS)
    assert values == [None] * len(texts)
    assert all(wrong)
    assert parsed(X, ["1.5", "1,5"], Dialect(decimal=",", delimiter=";")) == ([None, 1.5], [True, False])


def test_each_kind_is_parsed_and_what_is_wrong_is_known():
    date = Date(name="d", first="2000-01-01", last="2030-01-01")
    values, wrong = parsed(date, ["31.12.2023", "31.02.2023", "2023-12-31", "k.A."], GERMAN_WORDS)
    assert [str(value)[:10] for value in values] == ["2023-12-31", "None", "None", "None"]
    assert wrong == [False, True, True, False]
    values, wrong = parsed(date, ["2023-12-31", "2023-12-31T12:00:00", "31.12.2023", "2023-02-30"], Dialect())
    assert wrong == [False, False, True, True]
    flag = Category(name="b", values=(False, True))
    assert parsed(flag, ["true", "0", "yes", ""], Dialect()) == ([True, False, None, None], [0, 0, 1, 0])
    level = Category(name="n", values=(1, 2))
    assert parsed(level, ["1", " 2", "1.5", "NA"], Dialect()) == ([1, 2, None, None], [0, 0, 1, 0])
    word = Category(name="w", values=("a", "b"))
    assert parsed(word, ["a", " b", "NA"], Dialect()) == (["a", " b", None], [0, 0, 0])
    said = [f"not {column.expected}" for column in (X, date, flag, level)]
    assert said == ["not a number", "not a date", "not true or false", "not a whole number"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [((True, False), "bool"), ((1, 2), "int64"), ((1, 2.5), "double"), (("a", "b"), "string")],
)
def test_types_follow_from_public_values(values, kind):
    assert str(Category(name="c", values=values).arrow_type()) == kind


SCHEMA = Schema(
    columns=[
        Number(name="Größe", low=0, high=3, missing=True),
        Number(name="Gewicht", low=0, high=5000),
        Date(name="Tag", first="2020-01-01", last="2025-01-01", missing=True),
        Category(name="Stadt", values=("Köln", "Berlin; Mitte"), missing=True),
    ],
    label=Category(name="krank", values=("ja", "nein")),
)
GERMAN = Dialect(
    delimiter=";", encoding="cp1252", decimal=",", thousands=".", date_format="%d.%m.%Y", null=("", "k.A.")
)
TEXT = (
    "Nr;Größe;Gewicht;Tag;Stadt;krank\r\n"
    '1;1,75;1.234,5;31.12.2023;"Berlin; Mitte";ja\r\n'
    "2;k.A.;80;;Köln;nein\r\n"
    "\r\n"
    '3;1,8;81,25;01.01.2020;"";ja\r\n'
)
PACK = {
    "rows.csv": bytes,
    "ROWS.CSV": bytes,
    "rows.CSV.GZ": gzip.compress,
    "rows.csv.bz2": bz2.compress,
    "rows.csv.zst": lambda blob: pa.compress(blob, "zstd", asbytes=True),
}


def encoded(place, dialect=GERMAN, schema=SCHEMA):
    (batch,) = Rows(StoredRows(place, dialect), schema=schema).batches()
    return batch


def of_text(text, dialect=GERMAN, schema=SCHEMA):
    blob = text.encode(dialect.encoding)
    return CsvFile("rows.csv", lambda: pa.BufferReader(blob), dialect, (*schema.columns, schema.label))


@pytest.mark.parametrize("name", PACK)
def test_a_german_export_is_read_as_it_comes(tmp_path, name):
    (tmp_path / name).write_bytes(PACK[name](TEXT.encode("cp1252")))
    batch = encoded(tmp_path / name)
    days = (np.datetime64("2023-12-31") - np.datetime64("2020-01-01")).astype(int)
    half = (np.datetime64("2025-01-01") - np.datetime64("2020-01-01")).astype(int) / 2
    assert batch.X.tolist() == [
        [1.75, 0, 1234.5, days, 0, 0, 1, 0],
        [1.5, 1, 80, half, 1, 1, 0, 0],
        [1.8, 0, 81.25, 0, 0, 0, 0, 1],
    ]
    assert batch.y.tolist() == [0, 1, 0]


def test_files_without_a_header_have_declared_names(tmp_path):
    (tmp_path / "rows.csv").write_text("1\t0\n2\t1\n")
    schema = Schema(columns=[Number(name="b", low=0, high=9), Number(name="a", low=0, high=9)])
    dialect = Dialect(delimiter="\t", names=("a", "b"))
    assert encoded(tmp_path / "rows.csv", dialect, schema).X.tolist() == [[0, 1], [1, 2]]
    with pytest.raises(SchemaError, match="lacks columns of the schema: a"):
        encoded(tmp_path / "rows.csv", Dialect(delimiter="\t", names=("x", "b")), schema)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("81,25", "leicht", r"rows\.csv: column 3 'Gewicht': not a number at line 5\.$"),
        ("81,25", "12.5", r"column 3 'Gewicht': not a number at line 5"),
        ("1,8", "1.8", r"column 2 'Größe': not a number at line 5"),
        ("31.12.2023", "2023-12-31", r"column 4 'Tag': not a date at line 2"),
        ("31.12.2023", "31.02.2023", r"column 4 'Tag': not a date at line 2"),
        ("80;;Köln", "80;Köln", r"rows\.csv: line 3 has more or fewer fields than the 6 of the header"),
        ("Stadt", "Ort", r"lacks columns of the schema: Stadt"),
        ("Nr", "Stadt", r"columns of one name: Stadt"),
    ],
)
def test_errors_name_the_true_cause_the_column_and_the_line(tmp_path, old, new, message):
    (tmp_path / "rows.csv").write_bytes(TEXT.replace(old, new, 1).encode("cp1252"))
    with pytest.raises(SchemaError, match=message) as caught:
        encoded(tmp_path / "rows.csv")
    for value in ("leicht", "12.5", "2023-12-31"):
        assert value not in str(caught.value)


def test_a_line_end_within_quotes_counts_as_a_line(tmp_path):
    text = TEXT.replace("1;1,75", '"1\r\n one";1,75').replace("81,25", "schwer")
    (tmp_path / "rows.csv").write_bytes(text.encode("cp1252"))
    with pytest.raises(SchemaError, match=r"column 3 'Gewicht': not a number at line 6\."):
        encoded(tmp_path / "rows.csv")


def test_another_encoding_is_said(tmp_path):
    (tmp_path / "rows.csv").write_bytes(TEXT.encode("cp1252"))
    utf8 = Dialect(**GERMAN.to_dict() | {"encoding": "utf-8"})
    with pytest.raises(SchemaError, match=r"rows\.csv is not text in the encoding utf-8"):
        encoded(tmp_path / "rows.csv", utf8)
    (tmp_path / "rows.csv").write_bytes(TEXT.replace("ö", "o").replace("ß", "ss").encode() + b"\xff;1\n")
    plain = Schema(columns=[Number(name="Gewicht", low=0, high=9)])
    with pytest.raises(SchemaError, match=r"not text in the encoding utf-8"):
        encoded(tmp_path / "rows.csv", utf8, plain)


def test_damaged_compression_is_named(tmp_path):
    header, *lines = TEXT.splitlines(keepends=True)
    noise = "".join(f"{i};1,5;{i * 7919 % 5000};01.01.2021;Köln;ja\n" for i in range(20_000))
    blob = gzip.compress((header + "".join(lines) + noise).encode("cp1252"))
    (tmp_path / "rows.csv.gz").write_bytes(blob[: len(blob) // 2])
    with pytest.raises(SchemaError, match=r"rows\.csv\.gz: (it cannot be read to its end|line \d+ has)"):
        encoded(tmp_path / "rows.csv.gz")
    (tmp_path / "rows.csv.gz").write_bytes(b"plain")
    with pytest.raises(SchemaError, match=r"rows\.csv\.gz cannot be read: it does not begin"):
        encoded(tmp_path / "rows.csv.gz")


def test_batches_have_the_size_that_is_asked_for():
    lines = "".join(f"{i};1,5;{i % 99};01.01.2021;Köln;ja\n" for i in range(5000))
    file = of_text(TEXT.splitlines()[0] + "\n" + lines)
    for size in (1, 700, 5000, 5001):
        if size == 1:
            continue
        batches = list(file.batches(["Gewicht"], size))
        assert [batch.num_rows for batch in batches] == [size] * (5000 // size) + [5000 % size][: 5000 % size]
        assert pa.Table.from_batches(batches)["Gewicht"].to_pylist() == [i % 99 for i in range(5000)]


numbers = st.floats(-1e6, 1e6).map(lambda x: round(x, 3))
plain_rows = st.lists(
    st.tuples(numbers, st.sampled_from(["a", 'say "b"', "c; d", "e\nf", None])), max_size=30
)


@settings(max_examples=40)
@given(plain_rows, st.sampled_from(["utf-8", "latin-1", "utf-16"]), st.booleans())
def test_every_dialect_says_the_same_rows(rows, encoding, grouped):
    """Read by Arrow's types, by hand for thousands, and as text field by field."""
    dialect = Dialect(
        delimiter=";", decimal=",", encoding=encoding, thousands="." if grouped else None, null=("",)
    )
    x = Number(name="x", low=-1e6, high=1e6)
    w = Category(name="w", values=("a", 'say "b"', "c; d", "e\nf"), missing=True)
    lines = ["x;w"]
    for number, word in rows:
        figure = (
            f"{number:,.3f}".translate(str.maketrans(",.", ".,"))
            if grouped
            else f"{number:.3f}".replace(".", ",")
        )
        field = "" if word is None else '"' + word.replace('"', '""') + '"'
        lines.append(f"{figure};{field}")
    file = of_text("\n".join(lines) + "\n", dialect, Schema(columns=[x], label=w))
    table = [row for batch in file.batches(["x", "w"], 7) for row in batch.to_pylist()]
    assert table == [{"x": float(f"{number:.3f}"), "w": word} for number, word in rows]
    assert file.find_fault() is None
    assert sum(len(part.lines) for part in file.fields()) == len(rows)


PLAIN = Schema(columns=[Number(name="x", low=0, high=500)], label=Category(name="y", values=("a", "b\nc")))


@pytest.mark.parametrize("encoding", ["utf-8", "utf_8", "U8", "utf-8-sig"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["bare", "marked"])
def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path, encoding, mark):
    (tmp_path / "rows.csv").write_bytes(mark + b"x,y\n1,a\n")
    rows = Rows(StoredRows(tmp_path / "rows.csv", Dialect(encoding=encoding)), schema=PLAIN)
    assert rows.gathered().X.tolist() == [[1.0]]


def test_a_header_without_a_line_end_is_a_file_without_rows(tmp_path):
    (tmp_path / "rows.csv").write_bytes(b"x,y")
    assert Rows(tmp_path / "rows.csv", schema=PLAIN).check() == 0


def test_ends_of_blocks_within_quotes_change_no_row(tmp_path, monkeypatch):
    monkeypatch.setattr("privada.parties.csv_files.BLOCK", 64)
    words = ["a", "b\nc"] * 200
    text = "".join(f'{i},"{word}"\n' for i, word in enumerate(words))
    (tmp_path / "rows.csv").write_bytes(b"x,y\n" + text.encode())
    found = Rows(tmp_path / "rows.csv", schema=PLAIN).gathered()
    assert found.X[:, 0].tolist() == list(range(400))
    assert found.labels.tolist() == [0, 1] * 200


def test_a_line_that_is_too_long_is_named_and_not_shown(tmp_path):
    (tmp_path / "rows.csv").write_bytes(b"x,y,t\n1,a,q\n2,a," + b"SECRET" * 1_600_000 + b"\n")
    with pytest.raises(SchemaError, match="a line may be longer than 4 MB") as caught:
        Rows(tmp_path / "rows.csv", schema=PLAIN).check()
    assert "SECRET" not in str(caught.value)
