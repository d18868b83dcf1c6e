import pyarrow as pa
import pytest

from privada.parties import Category, Date, Number
from privada.parties.csv.dialect import Dialect
from privada.parties.csv.parsing import arrow_type, parse_fields, what_is_wrong

X = Number(name="x", low=0, high=1)
GERMAN = Dialect(delimiter=";", decimal=",", thousands=".", date_format="%d.%m.%Y", null=("", "k.A."))


def parsed(column, texts, dialect):
    values, wrong = parse_fields(column, pa.array(texts, pa.string()), dialect)
    return values.to_pylist(), wrong.tolist()


def test_numbers_in_german():
    right = ["1.234,5", "1234,5", " -7 ", "k.A.", "", "1e3", "1.234.567", ",5"]
    values, wrong = parsed(X, right, GERMAN)
    assert values == [1234.5, 1234.5, -7.0, None, None, 1000.0, 1234567.0, 0.5]
    assert not any(wrong)


def test_a_separator_in_the_wrong_place_makes_no_number():
    """Removed wherever it stands, "12.5" would be 125."""
    texts = ["12.5", "1.2345", "1..234", ".123", "1.23,4", "1,234.5", "zwölf", "NA"]
    values, wrong = parsed(X, texts, GERMAN)
    assert values == [None] * len(texts)
    assert all(wrong)
    assert parsed(X, ["1.5", "1,5"], Dialect(decimal=",", delimiter=";")) == ([None, 1.5], [True, False])


def test_each_kind_is_parsed_and_what_is_wrong_is_known():
    date = Date(name="d", first="2000-01-01", last="2030-01-01")
    values, wrong = parsed(date, ["31.12.2023", "31.02.2023", "2023-12-31", "k.A."], GERMAN)
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
    said = [what_is_wrong(column) for column in (X, date, flag, level)]
    assert said == ["not a number", "not a date", "not true or false", "not a whole number"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [((True, False), "bool"), ((1, 2), "int64"), ((1, 2.5), "double"), (("a", "b"), "string")],
)
def test_types_follow_from_public_values(values, kind):
    assert str(arrow_type(Category(name="c", values=values))) == kind
