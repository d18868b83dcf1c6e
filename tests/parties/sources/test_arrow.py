import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from privada.exceptions import SchemaError, SourceError
from privada.parties import Number, Schema
from privada.parties.sources.arrow import ArrowSource

SCHEMA = Schema(columns=[Number(name="x", low=0, high=999)])


def test_parts_have_all_rows_in_order(tmp_path):
    for i in range(3):
        pq.write_table(pa.table({"x": np.arange(5.0) + 5 * i, "y": ["a"] * 5}), tmp_path / f"{i}.parquet")
    source = ArrowSource(ds.dataset(tmp_path), SCHEMA)
    parts = source.parts()
    assert len(parts) == 3
    found = [x for part in parts for table in part.tables(2) for x in table["x"]]
    assert found == source.column("x").tolist() == list(range(15))


def test_what_cannot_be_read_is_named(tmp_path):
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "rows.parquet")
    dataset = ds.dataset(tmp_path)
    with pytest.raises(SchemaError, match="lacks columns of the schema: x"):
        ArrowSource(ds.dataset(pa.table({"z": [1.0]})), SCHEMA)
    (tmp_path / "rows.parquet").unlink()
    with pytest.raises(SourceError, match="out of reach"):
        list(ArrowSource(dataset, SCHEMA).tables(5))
