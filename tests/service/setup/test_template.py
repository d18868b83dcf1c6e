"""A fresh owner's file: valid TOML whatever the names are, and nothing guessed."""

import tomllib

import pytest

from privada.service.setup.headers import ColumnHeader
from privada.service.setup.template import FILL_IN, owner_toml

ODD = 'a "quoted" \\ name\n\t[x]'


def made(*columns, label=None, name="patients", path="rows.csv"):
    return owner_toml(
        name=name,
        source=path,
        ledger="ledger.sqlite",
        key="owner.key",
        methods=("cells",),
        columns=columns,
        label=label,
    )


def test_budget_relation_and_bounds_are_left_to_the_owner():
    read = tomllib.loads(made(ColumnHeader("age", "number"), ColumnHeader("sex", "category")))
    assert {read["privacy"][key] for key in ("relation", "epsilon")} == {FILL_IN}
    age, sex = read["schema"]["columns"]
    assert age == {"name": "age", "low": FILL_IN, "high": FILL_IN}
    assert sex == {"name": "sex", "values": FILL_IN}
    assert "label" not in read["schema"]


def test_questions_wait_for_a_person_and_nobody_is_a_curator():
    policy = tomllib.loads(made())["policy"]
    assert policy["approval"] is True
    assert policy["curators"] == []
    assert policy["methods"] == ["cells"]


def test_the_label_is_no_column():
    read = tomllib.loads(made(ColumnHeader("age"), ColumnHeader("ill", "category"), label="ill"))
    assert [column["name"] for column in read["schema"]["columns"]] == ["age"]
    assert read["schema"]["label"]["name"] == "ill"


def test_a_column_of_no_declared_type_may_be_a_category():
    assert "instead of low and high, if it is a category" in made(ColumnHeader("age"))
    assert "instead of low and high" not in made(ColumnHeader("age", "number"))


@pytest.mark.parametrize("odd", [ODD, "Größe", "'''"])
def test_names_are_quoted(odd):
    read = tomllib.loads(made(ColumnHeader(odd), name=odd, path=odd))
    assert read["data"] == {"name": odd, "path": odd}
    assert read["schema"]["columns"][0]["name"] == odd
