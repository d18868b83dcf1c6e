"""Errors of TOML files name the line and the key, also in arrays of tables and inline tables."""

import pytest

from privada._toml import Section
from privada.exceptions import InputError, StudyError

TEXT = """\
a = 1
[schema]
size = 3
[[schema.columns]]
name = "x"
low = 0
[[schema.columns]]
name = "y"
low = "no"
[method]
bins = { age = "x" }
[owners.clinic]
owner = 3
"""


@pytest.fixture
def top():
    return Section.parse(TEXT, name="o.toml")


def test_the_line_of_each_kind_of_key(top):
    columns = top.section("schema").sections("columns")
    bins = top.section("method").section("bins")
    owners = top.section("owners").named_sections()
    for take, said in (
        (lambda: top.string("a"), "o.toml, line 1, a: expected a string, got 1"),
        (lambda: columns[1].number("low"), "line 9, schema.columns.low: expected a number, got 'no'"),
        (
            lambda: columns[0].number("high"),
            "line 4, schema.columns.high: expected a number, but it is missing",
        ),
        (
            lambda: columns[1].number("high"),
            "line 7, schema.columns.high: expected a number, but it is missing",
        ),
        (lambda: bins.array("age"), "line 11, method.bins.age: expected a list, got 'x'"),
        (lambda: owners["clinic"].string("owner"), "line 13, owners.clinic.owner: expected a string, got 3"),
    ):
        with pytest.raises(StudyError) as failed:
            take()
        assert said in str(failed.value)


def test_blame_goes_to_the_key_that_the_message_names(top):
    section = top.section("schema")
    with (
        pytest.raises(StudyError, match=r"line 3, schema\.size: Expected size > 0"),
        section.blaming("name", "size"),
    ):
        raise InputError("Expected size > 0, got 3.")
    with pytest.raises(StudyError, match=r"schema\.name: Something else"), section.blaming("name", "size"):
        raise InputError("Something else.")
    with pytest.raises(StudyError, match=r"^already placed$"), section.blaming("name"):
        raise StudyError("already placed")


@pytest.mark.parametrize("text", [f"size = {'9' * 5000}", f"size = {'[' * 5000}{']' * 5000}"])
def test_a_number_of_thousands_of_digits_is_named(text):
    with pytest.raises(StudyError, match="owner.toml"):
        Section.parse(text, name="owner.toml")


def test_an_integer_beyond_floats_is_named_and_a_long_one_is_shown_in_part():
    top = Section.parse(f"low = -{'9' * 400}\nname = {'9' * 4000}", name="owner.toml")
    with pytest.raises(StudyError, match="expected a number below 1.8e308"):
        top.number("low")
    with pytest.raises(StudyError, match="expected a string, got 999") as caught:
        top.string("name")
    assert len(str(caught.value)) < 250


def test_a_key_that_is_only_looked_for_is_known():
    top = Section.parse("stpes = 3", name="study.toml")
    assert "steps" not in top
    with pytest.raises(StudyError, match="stpes: nobody knows this key; known here: steps"):
        top.done()
