import polars as pl
import pytest

from privada.exceptions import SchemaError, SourceError
from privada.parties import Category, Number, Rows, Schema
from privada.parties import rows as rows_module

SCHEMA = Schema(columns=[Number(name="x", low=0, high=99), Category(name="w", values=("a", "b"))])
FRAME = pl.DataFrame({"x": range(50), "w": ["a", "b"] * 25, "more": ["m"] * 50})


def test_a_lazy_frame_is_computed_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(rows_module, "BATCH", 8)
    FRAME.write_parquet(tmp_path / "rows.parquet")
    lazy = pl.scan_parquet(tmp_path / "rows.parquet").filter(pl.col("x") < 20).with_columns(pl.col("x") * 2)
    rows = Rows(lazy, schema=SCHEMA)
    for _ in range(2):
        assert [x for batch in rows.batches() for x in batch.X[:, 0]] == list(range(0, 40, 2))


def test_what_a_lazy_frame_lacks_is_named(tmp_path):
    with pytest.raises(SchemaError, match="lacks columns of the schema: w"):
        Rows(FRAME.lazy().drop("w"), schema=SCHEMA)
    with pytest.raises(SourceError, match="cannot be computed: ColumnNotFoundError"):
        Rows(FRAME.lazy().select("secret"), schema=SCHEMA)
    FRAME.write_parquet(tmp_path / "rows.parquet")
    rows = Rows(pl.scan_parquet(tmp_path / "rows.parquet"), schema=SCHEMA)
    (tmp_path / "rows.parquet").unlink()
    with pytest.raises(SourceError, match="cannot be computed"):
        rows.check()
