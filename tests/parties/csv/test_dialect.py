import pytest

from privada._toml import Section
from privada.exceptions import InputError, SchemaError, StudyError
from privada.parties.csv.dialect import Dialect, is_csv

GERMAN = """
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
    dialect = read(GERMAN)
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
        Dialect().check_categories("country", ("DE", "NA"))
    Dialect(null=("",)).check_categories("country", ("DE", "NA"))
    Dialect().check_categories("level", (0, 1))


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
