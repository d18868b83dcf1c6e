"""How a table is split and encoded."""

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.parties.schema import Category, Number
from privada_lab.datasets.table_split import CategoryBySource, NumberBySource, Table, TablePair

RNG = np.random.default_rng(0)
TABLE = Table(
    {
        "side": np.repeat([0.0, 1.0], [100, 60]),
        "size": np.r_[np.linspace(0, 10, 99), np.nan, np.full(60, 99.0)],
        "kind": np.array(["a"] * 50 + ["b"] * 45 + ["rare"] * 5 + ["new"] * 60, dtype=object),
        "y": RNG.normal(size=160) * 5,
    }
)


def pair(**more):
    settings = {
        "name": "made: left to right",
        "half": "development",
        "read": lambda folder: TABLE,
        "columns": (NumberBySource(name="size", missing=True), CategoryBySource(name="kind")),
        "label": Number(name="y", low=-3, high=3),
        "private": lambda table: table["side"] == 1,
        "rows": 50,
    }
    return TablePair(**settings | more)


def test_bounds_and_categories_are_the_public_sides():
    split = pair().split(None, 0)
    size, kind = split.schema.columns
    assert (size.low, size.high) == (-5, 15)
    assert kind.values == ("a", "b")
    names = split.schema.features
    assert split.train.X[:, names.index("size")].tolist() == [15.0] * len(split.train)
    assert split.train.X[:, names.index("kind is missing")].all()
    assert split.source.X[:, names.index("size is missing")].sum() == 1
    assert np.abs(split.train.y).max() <= 3
    assert split.pair.task == "regression"


def test_two_thirds_train_at_most():
    assert (len(pair().split(None, 0).train), len(pair().split(None, 0).test)) == (40, 20)
    assert (len(pair(rows=10).split(None, 0).train), len(pair(rows=10).split(None, 0).test)) == (10, 50)
    assert pair(rows=10).split(None, 0).schema.size == 10


def test_labels_of_classes_are_those_of_the_file():
    made = pair(
        label=Category(name="kind", values=("a", "b", "rare", "new")),
        columns=(Number(name="y", low=-1, high=1),),
    )
    split = made.split(None, 0)
    assert split.classes == ("a", "b", "rare", "new")
    assert set(split.test.y) == {"new"}
    assert split.source.take(slice(3)).X.shape == (3, 1)


def test_what_makes_no_pair_is_named():
    with pytest.raises(InputError, match="both sides"):
        pair(public=lambda table: table["side"] >= 0).split(None, 0)
    with pytest.raises(InputError, match="half"):
        pair(half="both")
    with pytest.raises(InputError, match="'kind'"):
        pair(private=lambda table: table["kind"] != "a").split(None, 0)
