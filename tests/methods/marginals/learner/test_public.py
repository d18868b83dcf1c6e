"""Bins of public rows, and of values that are missing."""

import numpy as np
import pytest

from privada import Owner, Schema, run
from privada.methods.cells import GridCells
from privada.methods.marginals import (
    ErrorTables,
    Public,
    default_rounds,
    feature_bins,
    missing_marks,
)
from privada.parties import Category, Number
from privada.privacy import PureDP

PURE = PureDP(epsilon=40, relation="add/remove")
SCHEMA = Schema(
    columns=(
        Number(name="age", low=0.0, high=100.0, missing=True),
        Number(name="dose", low=0.0, high=1.0),
        Category(name="ward", values=("a", "b"), missing=True),
    ),
    label=Category(name="ill", values=(0, 1)),
)
ABSENT = np.array([50.0, 1.0, 0.5, 0.0, 0.0, 1.0])  # no age, no ward


def whole(count=200):
    """Public rows in which nothing is missing."""
    rng = np.random.default_rng(0)
    ward = np.eye(2)[rng.integers(2, size=count)]
    numbers = [rng.uniform(0, 100, count), np.zeros(count), rng.uniform(size=count)]
    return np.column_stack([*numbers, ward, np.zeros(count)])


def test_marks_belong_to_every_feature_of_their_column():
    assert missing_marks(SCHEMA) == {0: 1, 3: 5, 4: 5}


@pytest.mark.parametrize("some", [0, 30], ids=["none is missing", "some are"])
def test_a_missing_value_has_a_bin_of_its_own(some):
    source = whole()
    source[:some] = ABSENT
    made = feature_bins(source, 4, missing=missing_marks(SCHEMA))
    assert [table.feature for table in made] == [0, 2, 3, 4]
    present, absent = source[some:], ABSENT[None]
    for table in (made[0], made[2], made[3]):
        assert table.assign(absent)[0] == table.n_cells - 1
        assert table.assign(present).max() < table.n_cells - 1
    assert np.allclose(made[0].edges, np.quantile(present[:, 0], [0.25, 0.5, 0.75]))
    grid = GridCells(factors=feature_bins(source, 2, (0, 3), missing=missing_marks(SCHEMA)))
    assert grid.assign(absent)[0] not in grid.assign(present)


def test_a_feature_that_no_public_row_has_is_binned_too():
    source = np.repeat(ABSENT[None], 9, axis=0)
    first = feature_bins(source, 3, missing=missing_marks(SCHEMA))[0]
    assert first.n_cells == 3


def test_an_owners_missing_values_are_counted_apart():
    rng = np.random.default_rng(1)
    X, source = whole(400), whole()
    gone = rng.uniform(size=400) < 0.3
    X[gone, :2] = 50.0, 1.0
    ages = [None if mark else age for age, mark in zip(X[:, 0], gone, strict=True)]
    table = {"age": ages, "dose": X[:, 2], "ward": np.array(["a", "b"])[X[:, 3:5].argmax(axis=1)]}
    import pandas as pd

    owner = Owner(pd.DataFrame(table | {"ill": gone.astype(int)}), schema=SCHEMA, dataset="rows", budget=PURE)
    public = Public(source=source, classes=(0, 1), missing=missing_marks(SCHEMA))
    fit = run(ErrorTables(bins=3).inquiry("o", public, guarantee=PURE, size=400), {"o": owner})
    counts = fit.releases[0]["table.0"]  # errors of "all are ill", and correct
    assert counts.shape == (4, 2)
    assert counts[-1] == pytest.approx([0, gone.sum()], abs=3)  # noise of scale 1/10


def test_rounds_draw_features_not_marks():
    plan = default_rounds(
        whole(), guarantee=PURE, size=300, rounds=2, features=3, missing=missing_marks(SCHEMA)
    )
    assert all({table.feature for table in tables} <= {0, 2, 3, 4} for tables in plan.questions)
    assert [len(tables) for tables in plan.questions] == [3, 3]
