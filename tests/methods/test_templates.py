"""Templates of example studies: tables as CSV, and what an owner's file says of them."""

import tomllib

import numpy as np

from privada.methods.templates import Table, describe_owner

TABLE = Table(names=("age", "weight"), rows=np.array([[1.0, 2.5]]), label="ill", labels=np.array(["yes"]))


def test_a_table_has_a_header_and_its_label_last():
    assert TABLE.to_csv() == "age,weight,ill\n1.000,2.500,yes\n"


def test_a_number_as_label_is_written_like_one():
    table = Table(names=("age",), rows=np.ones((1, 1)), label="days", labels=np.array([2.5]))
    assert table.to_csv() == "age,days\n1.000,2.500\n"


def test_an_owner_declares_columns_label_and_size():
    given = {"name": "rows", "method": "cells", "privacy": "epsilon = 1.0", "bounds": (0.0, 9.0)}
    said = tomllib.loads(describe_owner(TABLE, **given, label=("ill", ("no", "yes"))))
    assert [each["name"] for each in said["schema"]["columns"]] == ["age", "weight"]
    assert said["schema"]["label"]["values"] == ["no", "yes"]
    assert said["schema"]["size"] == 1
    hidden = tomllib.loads(describe_owner(TABLE, **given, label=("days", (0.0, 5.0)), public_size=False))
    assert hidden["schema"]["label"]["high"] == 5.0
    assert "size" not in hidden["schema"]
