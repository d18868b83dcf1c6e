from datetime import date

import numpy as np
import pytest

from privada import Owner
from privada._toml import Section
from privada.exceptions import InputError, SchemaError, StudyError
from privada.parties import Category, Date, Number, Schema
from privada.parties.columns import MISSING_SHARE
from privada.parties.owner_file import Card
from privada.parties.schema import make_dummy_rows
from privada.privacy import PureDP, Relation, Unit

TEXT = """
[schema]
size = 100
columns = [
  { name = "age", low = 0, high = 120, missing = true },
  { name = "ward", values = ["a", "b"] },
]
[schema.label]
name = "ill"
values = ["no", "yes"]
"""


def test_features_follow_from_the_schema_alone(schema):
    assert schema.features == ("age", "ward = a", "ward = b", "ward = c")
    assert schema.width == 4
    assert schema.box.high == (120.0, 1.0, 1.0, 1.0)


def test_missing_values_become_a_mark_or_an_error():
    marked = Number(name="age", low=0, high=10, missing=True).encode(np.array([np.nan, 4.0]))
    assert marked.tolist() == [[5.0, 1.0], [4.0, 0.0]]
    with pytest.raises(SchemaError, match="'age' holds a missing value"):
        Number(name="age", low=0, high=10).encode(np.array([np.nan]))
    marked = Category(name="w", values=("a", "b"), missing=True).encode(np.array(["b", None], dtype=object))
    assert marked.tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    with pytest.raises(SchemaError, match="'w' holds a missing value"):
        Category(name="w", values=("a", "b")).encode(np.array(["a", None], dtype=object))


def test_values_outside_are_clipped_and_infinities_refused():
    age = Number(name="age", low=0, high=10)
    assert age.encode(np.array([-5.0, 1e9])).ravel().tolist() == [0.0, 10.0]
    with pytest.raises(SchemaError, match="infinite"):
        age.encode(np.array([np.inf]))
    with pytest.raises(SchemaError, match="not a number"):
        age.encode(np.array(["x"], dtype=object))


def test_errors_name_the_column_never_the_value():
    with pytest.raises(SchemaError) as caught:
        Category(name="ward", values=("a", "b")).encode(np.array(["Mrs Smith"], dtype=object))
    assert "Smith" not in str(caught.value)
    assert "ward" in str(caught.value)


@pytest.mark.parametrize(
    "bad",
    [
        {"columns": ()},
        {"columns": (Number(name="a", low=0, high=1), Number(name="a", low=0, high=1))},
        {"columns": (Number(name="a", low=0, high=1),), "size": 0},
        {"columns": (Number(name="a", low=0, high=1),), "person_id": "p"},
        {"columns": (Number(name="a", low=0, high=1),), "max_rows": 3},
    ],
)
def test_schemas_that_are_none(bad):
    with pytest.raises(InputError):
        Schema(**bad)


def test_a_schema_of_plain_numbers():
    schema = Schema.of_numbers(bounds=(0, [1, 2, 3]))
    assert schema.box.high == (1.0, 2.0, 3.0)
    with pytest.raises(InputError, match="width"):
        Schema.of_numbers(bounds=(0, 1))
    with pytest.raises(InputError, match="no class label"):
        schema.classes


def test_read_from_toml():
    schema = Schema.from_section(Section.parse(TEXT, name="owner.toml").section("schema"))
    assert schema.features == ("age", "age is missing", "ward = a", "ward = b")
    assert schema.classes.names == ("no", "yes")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("size = 100", 'size = "many"'), r"line 3, schema\.size: expected a whole number"),
        (("size = 100", "sise = 100"), r"line 3, schema\.sise: nobody knows"),
        (("high = 120", "high = -1"), r"line 5, schema\.columns.*age: Expected low < high"),
        (('values = ["no", "yes"]', "values = 3"), r"line 10, schema\.label\.values: expected a list"),
    ],
)
def test_errors_name_line_and_key(change, message):
    with pytest.raises(StudyError, match=message):
        Schema.from_section(Section.parse(TEXT.replace(*change), name="owner.toml").section("schema"))


def test_broken_toml_is_a_study_error(tmp_path):
    with pytest.raises(StudyError, match=r"owner\.toml.*line 1"):
        Section.parse("x = = 1", name="owner.toml")
    with pytest.raises(StudyError, match="Cannot read"):
        Section.read(tmp_path / "absent.toml")


@pytest.mark.parametrize("name", ["size", "max_rows"])
def test_no_schema_has_more_rows_than_can_be_counted(name):
    more = {"person_id": "who", "max_rows": 1} | {name: 10**16}
    with pytest.raises(SchemaError, match=f"{name} of at most"):
        Schema(columns=[Number(name="x", low=0, high=1)], **more)
    with pytest.raises(InputError, match=f"{name} below"):
        Schema(columns=[Number(name="x", low=0, high=1)], **(more | {name: 10**5000}))


KINDS = """
[schema]
columns = [
  { name = "born", kind = "date", low = "1900-01-01", high = "2000-01-01", missing = true },
  { name = "seen", low = 2024-01-01T12:00:00, high = 2024-02-01T00:00:00 },
  { name = "visits", kind = "integer", low = 0, high = 9 },
  { name = "smoker", kind = "boolean", missing = true },
  { name = "grade", kind = "ordered", values = ["low", "middle", "high"] },
]
"""


def read(text):
    return Schema.from_section(Section.parse(text, name="owner.toml").section("schema"))


def test_every_kind_of_column_is_read_and_written_to_the_card(tmp_path):
    schema = read(KINDS)
    names = ("born", "born is missing", "seen", "visits", "smoker = False", "smoker = True")
    assert schema.features == (*names, "smoker is missing", "grade")
    card = Card(schema=schema, relation=Relation.ADD_REMOVE)
    (tmp_path / "schema.toml").write_text(card.to_toml())
    assert Card.read(tmp_path / "schema.toml").schema == schema


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"ordered"', '"sorted"'), r"kind: expected one of number, integer, date.*got 'sorted'"),
        (('"1900-01-01"', '"long ago"'), r"born: Expected dates as bounds of column 'born', got 'long ago'"),
        (('"1900-01-01"', "3"), r"low: expected a date"),
        (('"1900-01-01"', '"2001-01-01"'), r"born: Expected first before last"),
        (('kind = "integer", low', 'kind = "number", lov'), r"low: expected a number, but it is missing"),
    ],
)
def test_wrong_kinds_are_named(change, message):
    with pytest.raises(StudyError, match=message):
        read(KINDS.replace(*change))


def test_a_label_is_no_date():
    with pytest.raises(StudyError, match="is a date; declare a number or a category"):
        read(KINDS + '[schema.label]\nname = "died"\nlow = 2024-01-01\nhigh = 2025-01-01\n')


SCHEMA = Schema(
    columns=[
        Number(name="age", low=0, high=120, whole=True),
        Number(name="marker", low=-1.5, high=2.5, missing=True),
        Category(name="ward", values=("a", "b", "c"), missing=True),
        Category(name="grade", values=("low", "mid", "high"), ordered=True),
        Category(name="smoker", values=(False, True)),
        Date(name="seen", first=date(2020, 1, 1), last=date(2024, 12, 31), missing=True),
    ],
    label=Category(name="ill", values=("no", "yes")),
    person_id="person",
    max_rows=2,
)


@pytest.fixture(scope="module")
def table():
    return make_dummy_rows(SCHEMA, rows=2000)


def test_an_owner_of_the_schema_accepts_them(table):
    budget = PureDP(epsilon=1, relation="add/remove", unit=Unit(name="person", max_rows=2))
    Owner(table, schema=SCHEMA, dataset="dummy", budget=budget)
    assert set(table.column_names) == set(SCHEMA.needed)


def test_every_value_is_one_that_the_card_names(table):
    rows = table.to_pydict()
    assert set(rows["ward"]) == {"a", "b", "c", None}
    assert set(rows["grade"]) == {"low", "mid", "high"}
    assert set(rows["ill"]) == {"no", "yes"}
    assert all(0 <= age <= 120 and age == int(age) for age in rows["age"])
    for name in ("marker", "ward", "seen"):
        share = np.mean([value is None or value != value for value in rows[name]])
        assert MISSING_SHARE / 2 < share < MISSING_SHARE * 2
    _, counts = np.unique(rows["person"], return_counts=True)
    assert counts.max() <= 2


def test_classes_are_even(table):
    """5 standard deviations of a fair coin: a false alarm in a million."""
    share = np.mean(np.array(table.to_pydict()["ill"]) == "yes")
    assert abs(share - 0.5) < 5 * 0.5 / np.sqrt(2000)


def test_the_same_seed_gives_the_same_rows():
    one, same, other = (make_dummy_rows(SCHEMA, rows=5, random_state=seed) for seed in (1, 1, 2))
    assert one.equals(same)
    assert not one.equals(other)


@pytest.mark.parametrize("rows", [0, -1, 1.5, 10**9])
def test_a_bad_number_of_rows_is_refused(rows):
    with pytest.raises(InputError, match="Expected rows"):
        make_dummy_rows(SCHEMA, rows=rows)
