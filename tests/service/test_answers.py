"""What a person answers is checked by name, as text."""

import pytest

from privada.exceptions import InputError
from privada.service.answers import (
    Answers,
    ColumnAnswer,
    is_right,
    read_form,
    read_number,
    read_schema,
    read_whole,
    split_values,
)

AGE = ColumnAnswer(name="age", kind="integer", low="0", high="120")
ILL = ColumnAnswer(name="ill", kind="category", values="no, yes")


def answers(**changed):
    return Answers(**{"columns": (AGE, ILL), "relation": "add/remove", "epsilon": "2", **changed})


def test_a_budget_is_what_is_declared():
    assert str(answers(delta="1e-6").check()) == "(ε = 2, δ = 1e-06), add/remove one row"


def test_persons_are_the_unit_when_they_have_a_column():
    person = ColumnAnswer(name="person", kind="category", values="")
    made = answers(columns=(AGE, ILL, person), person_id="person", max_rows="3")
    assert "person" in str(made.check())
    assert [table["name"] for table in made.column_tables] == ["age", "ill"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (ColumnAnswer(name="age", kind="number", low="a", high="1"), r"low of column 'age' to be a number"),
        (ColumnAnswer(name="age", kind="number", low="2", high="1"), "age"),
        (ColumnAnswer(name="age", kind="number", low="0", high="inf"), "high of column 'age'"),
        (ColumnAnswer(name="age", kind="integer", low="", high="1"), "low of column 'age'"),
        (ColumnAnswer(name="born", kind="date", low="x", high="2024-01-01"), "born"),
        (ColumnAnswer(name="city", kind="category", values=" ; "), "city"),
        (ColumnAnswer(name="city", kind="category", values="a;a"), "city"),
        (ColumnAnswer(name="city", kind="text"), "expected one of number"),
    ],
)
def test_what_is_wrong_with_a_column_is_said_with_its_name(wrong, said):
    with pytest.raises(InputError, match=said):
        wrong.check()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"epsilon": "-1"}, "epsilon"),
        ({"epsilon": "much"}, "epsilon"),
        ({"delta": "2"}, "delta"),
        ({"relation": "both"}, "relation|both"),
        ({"label": "gone"}, "gone"),
        ({"size": "1.5"}, "size"),
        ({"person_id": "age", "max_rows": ""}, "max_rows"),
    ],
)
def test_what_is_wrong_as_a_whole_is_said(changed, said):
    with pytest.raises(InputError, match=said):
        answers(**changed).check()


def test_a_label_is_no_column():
    made = answers(label="ill")
    assert [table["name"] for table in made.column_tables] == ["age"]
    assert made.label_table["values"] == ["no", "yes"]


def test_a_column_that_is_left_out_needs_nothing():
    made = answers(columns=(AGE, ColumnAnswer(name="note", kind="left out")))
    made.check()
    assert [table["name"] for table in made.column_tables] == ["age"]


def test_values_may_hold_commas_where_semicolons_part_them():
    assert split_values("a, b; c") == ["a, b", "c"]
    assert split_values("a, b") == ["a", "b"]
    assert split_values("a\nb\n") == ["a", "b"]


def test_a_form_says_the_same():
    form = {"relation": "add/remove", "epsilon": "2", "kind-0": "integer", "low-0": "0", "high-0": "120"}
    form |= {"kind-1": "category", "values-1": "no, yes"}
    assert read_form(form, ["age", "ill"]) == answers()


def test_numbers_are_read_with_a_name():
    assert read_number("x", " 1.5 ") == 1.5
    assert read_whole("x", " 3 ") == 3
    assert is_right(lambda: read_whole("x", "-3")) == "Expected x to be a whole number such as 3, got '-3'."
    assert read_schema([AGE.pairs()]).features == ("age",)
