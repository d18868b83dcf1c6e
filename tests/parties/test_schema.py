import numpy as np
import pytest

from privada._toml import Section
from privada.exceptions import InputError, SchemaError, StudyError
from privada.parties import Category, Number, Schema

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
