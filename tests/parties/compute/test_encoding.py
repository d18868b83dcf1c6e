"""Compiled encoding: the features and errors of the schema's own."""

import numpy as np
import pytest

from privada.exceptions import SchemaError
from privada.parties import Category, Number, Rows, Schema
from privada.parties.compute.batch import WORTH_COMPILED
from privada.parties.compute.encoding import encode_features

N = WORTH_COMPILED + 5
SCHEMA = Schema(
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
    assert np.array_equal(encode_features(SCHEMA, table()), SCHEMA.encode_features(table()))


@pytest.mark.parametrize(("value", "message"), [(np.nan, "missing value"), (np.inf, "infinite value")])
def test_a_value_that_is_not_finite_is_named_as_ever(value, message):
    schema = Schema.of_numbers(bounds=(0, 1), width=2)
    X = np.zeros((N, 2))
    X[17, 1] = value
    with pytest.raises(SchemaError, match=f"'x1' holds an? {message}"):
        Rows(X, schema=schema).check()
