"""Dummy rows: of the card alone, and such that an owner of that schema would accept them."""

from datetime import date

import numpy as np
import pytest

from privada import Owner, Schema
from privada.exceptions import InputError
from privada.parties import Category, Number
from privada.parties.columns import Date
from privada.parties.dummy import MISSING, make_dummy_rows
from privada.privacy import PureDP, Unit

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
        assert MISSING / 2 < share < MISSING * 2
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
