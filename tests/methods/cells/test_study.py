"""Cells in a declarative study: centres or bins, with labels and sums where they are wanted."""

import numpy as np
import pytest

from privada._toml import Section
from privada.exceptions import StudyError
from privada.methods.cells.method import Cells
from privada.methods.cells.questions.partition import Bins, NearestCells
from privada.parties import Category, Number, Schema
from privada.privacy import PureDP

GUARANTEE = PureDP(epsilon=1, relation="add/remove")
SCHEMA = Schema(
    columns=[Number(name="age", low=0, high=120, missing=True), Number(name="dose", low=0, high=1)],
    label=Category(name="ill", values=("no", "yes")),
)


def asked(text, home, seed=0):
    section = Section.parse(f"[method]\n{text}", name="study.toml").section("method")
    inquiry = Cells.inquire(section, schemas={"clinic": SCHEMA}, guarantee=GUARANTEE, home=home, seed=seed)
    return inquiry.first_round[0]


@pytest.fixture
def home(tmp_path):
    np.savetxt(tmp_path / "centers.csv", np.eye(3)[:2], delimiter=",")
    return tmp_path


def test_centres_become_one_table_of_the_first_owner(home):
    ask = asked('centers = "centers.csv"\nby_label = true', home)
    assert (ask.owner, ask.question.n_classes) == ("clinic", 2)
    (table,) = ask.question.tables
    assert isinstance(table, NearestCells)
    assert table.centers.shape == (2, 3)
    assert ask.question.guarantee == GUARANTEE


def test_bins_become_one_table_each_that_knows_where_values_are_missing(home):
    tables = asked("bins = { age = [40, 60], dose = [0.5] }", home).question.tables
    assert all(isinstance(table, Bins) for table in tables)
    names = [SCHEMA.features[table.feature] for table in tables]
    assert names == ["age", "dose"]
    assert SCHEMA.features[tables[0].missing] == "age is missing"
    assert tables[1].missing is None


def test_a_radius_asks_for_sums_and_a_seed_has_nothing_to_draw(home):
    plain, other = (asked('centers = "centers.csv"\nradius = 1.0', home, seed).question for seed in (0, 1))
    assert (plain.radius, plain.width) == (1.0, 3)
    assert plain.digest == other.digest


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bins = { age = [60, 40] }", r"line 2, method\.bins\.age: .*"),
        ("bins = { aged = [60] }", r"method\.bins\.aged: nobody knows this key"),
        ('centers = "centers.csv"\nradius = -1.0', "radius"),
        ('centers = "centers.csv"\nradios = 1.0', r"line 3, method\.radios: nobody knows this key"),
        ('centers = "centers.csv"\nbins = { age = [60] }', "Expected either centers or bins"),
        ("bins = { age = ['old'] }", r"line 2, method\.bins\.age: .*a list of numbers"),
        ("by_label = true", "expected centers or bins"),
    ],
)
def test_mistakes_are_named(text, message, home):
    with pytest.raises(StudyError, match=message):
        asked(text, home)


def test_centres_of_another_width_than_the_schema_are_refused(home):
    np.savetxt(home / "centers.csv", np.eye(2), delimiter=",")
    with pytest.raises(StudyError, match="method"):
        asked('centers = "centers.csv"', home)
