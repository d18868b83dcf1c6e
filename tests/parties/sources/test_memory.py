import numpy as np
import polars as pl
import pytest

from privada.exceptions import SchemaError, SourceError
from privada.parties import Category, Number, Rows, Schema
from privada.parties import rows as rows_module
from privada.parties.sources.memory import ArraySource

SCHEMA = Schema(
    columns=[Number(name="a", low=0, high=1), Number(name="b", low=0, high=1)], person_id="who", max_rows=1
)


def test_columns_have_names_by_their_place():
    source = ArraySource(np.arange(6.0).reshape(3, 2), SCHEMA, None, ["p", "q", "p"])
    (table,) = source.tables(10)
    assert {name: values.tolist() for name, values in table.items()} == {
        "a": [0, 2, 4],
        "b": [1, 3, 5],
        "who": ["p", "q", "p"],
    }
    assert source.column("who").tolist() == ["p", "q", "p"]


def test_persons_of_a_list_keep_their_types():
    """As strings, 1 and "1" would be one person."""
    source = ArraySource(np.zeros((2, 2)), SCHEMA, None, [1, "1"])
    assert source.column("who").tolist() == [1, "1"]


@pytest.mark.parametrize(("person", "message"), [(None, "has a person"), (["p"], "lengths differ")])
def test_persons_that_do_not_fit_are_named(person, message):
    with pytest.raises(SchemaError, match=message):
        ArraySource(np.zeros((2, 2)), SCHEMA, None, person)


LAZY_SCHEMA = Schema(columns=[Number(name="x", low=0, high=99), Category(name="w", values=("a", "b"))])
FRAME = pl.DataFrame({"x": range(50), "w": ["a", "b"] * 25, "more": ["m"] * 50})


def test_a_lazy_frame_is_computed_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(rows_module, "BATCH", 8)
    FRAME.write_parquet(tmp_path / "rows.parquet")
    lazy = pl.scan_parquet(tmp_path / "rows.parquet").filter(pl.col("x") < 20).with_columns(pl.col("x") * 2)
    rows = Rows(lazy, schema=LAZY_SCHEMA)
    for _ in range(2):
        assert [x for batch in rows.batches() for x in batch.X[:, 0]] == list(range(0, 40, 2))


def test_what_a_lazy_frame_lacks_is_named(tmp_path):
    with pytest.raises(SchemaError, match="lacks columns of the schema: w"):
        Rows(FRAME.lazy().drop("w"), schema=LAZY_SCHEMA)
    with pytest.raises(SourceError, match="cannot be computed: ColumnNotFoundError"):
        Rows(FRAME.lazy().select("secret"), schema=LAZY_SCHEMA)
    FRAME.write_parquet(tmp_path / "rows.parquet")
    rows = Rows(pl.scan_parquet(tmp_path / "rows.parquet"), schema=LAZY_SCHEMA)
    (tmp_path / "rows.parquet").unlink()
    with pytest.raises(SourceError, match="cannot be computed"):
        rows.check()
