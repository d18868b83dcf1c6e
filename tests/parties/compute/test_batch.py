"""Parts are read in batches; only rows that count are seen, and persons must not change."""

import numpy as np
import pytest

from privada.exceptions import SchemaError
from privada.parties import Category, Number, Rows, Schema
from privada.parties.compute import batch as batch_module
from privada.parties.compute.batch import WORTH_COMPILED, Batch, Part, encode_features
from privada.parties.sources import open_source

SCHEMA = Schema(
    columns=[Number(name="x", low=0, high=99)],
    label=Category(name="y", values=("a", "b")),
    person_id="who",
    max_rows=1,
)
X, Y, WHO = np.arange(10.0)[:, None], np.array(["a", "b"] * 5), np.arange(10)


def part(**more):
    return Part(open_source(X, SCHEMA, Y, WHO.copy()), SCHEMA, **more)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(batch_module, "BATCH", 3)


def test_rows_that_do_not_count_are_not_seen():
    kept = WHO % 3 == 0
    found = list(part(counted=kept).batches())
    assert [len(each) for each in found] == [1, 1, 1, 1]
    assert np.concatenate([each.X[:, 0] for each in found]).tolist() == [0, 3, 6, 9]
    again = part(counted=kept).only(np.array([True, False, False, True]))
    assert np.concatenate([each.X[:, 0] for each in again.batches()]).tolist() == [0, 9]
    assert sum(len(each) for each in part().only(kept).batches()) == 4


@pytest.mark.parametrize("people", [WHO[::-1], WHO[:7], WHO + 1])
def test_other_persons_than_those_that_were_chosen_from_are_refused(people):
    assert sum(len(each) for each in part(people=WHO).batches()) == 10
    with pytest.raises(SchemaError, match="load the owner again"):
        list(part(people=people).batches())


def test_no_rows_have_the_schemas_width_and_type():
    nothing = Batch.of_none(SCHEMA)
    assert nothing.X.shape == (0, 1)
    assert nothing.labels.dtype == np.int64
    assert repr(part()) == "<Part>"


N = WORTH_COMPILED + 5
MIXED = Schema(
    columns=[
        Number(name="a", low=-1, high=2),
        Number(name="b", low=0, high=1, missing=True),
        Category(name="c", values=("u", "v")),
        Number(name="d", low=0, high=9, whole=True),
        Number(name="e", low=-5, high=5),
    ]
)


def table():
    rng = np.random.default_rng(0)
    return {
        "a": rng.normal(size=N) * 3,
        "b": np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N)),
        "c": np.array(["u", "v"])[rng.integers(2, size=N)],
        "d": rng.integers(12, size=N),
        "e": rng.normal(size=N).astype(np.float32),
    }


def test_features_are_those_of_the_schema():
    assert np.array_equal(encode_features(MIXED, table()), MIXED.encode_features(table()))


@pytest.mark.parametrize(("value", "message"), [(np.nan, "missing value"), (np.inf, "infinite value")])
def test_a_value_that_is_not_finite_is_named_as_ever(value, message):
    schema = Schema.of_numbers(bounds=(0, 1), width=2)
    X = np.zeros((N, 2))
    X[17, 1] = value
    with pytest.raises(SchemaError, match=f"'x1' holds an? {message}"):
        Rows(X, schema=schema).check()
