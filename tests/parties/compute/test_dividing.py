"""Files are divided into addresses of row groups: the same rows in the same order, readable elsewhere."""

import pickle
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from privada.exceptions import SourceError
from privada.parties import Category, Number, Rows, Schema
from privada.parties.compute import dividing
from privada.parties.sources import open_source

N = 3000
RNG = np.random.default_rng(4)
TABLE = pa.table({"x0": RNG.normal(size=N), "who": RNG.integers(900, size=N)})


def test_parts_are_row_groups_small_ones_together(tmp_path):
    pq.write_table(TABLE, tmp_path / "a.parquet", row_group_size=70)

    def read(piece):
        return pa.Table.from_batches(piece.to_batches(columns=TABLE.schema.names, batch_size=130))

    whole = ds.dataset(tmp_path / "a.parquet", format="parquet")
    (one,) = dividing.divide_dataset(whole)
    assert read(one).equals(TABLE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dividing, "PART_ROWS", 200)
        parts = [read(pickle.loads(pickle.dumps(piece))) for piece in dividing.divide_dataset(whole)]
    assert [part.num_rows for part in parts] == [210] * 14 + [60]
    assert pa.concat_tables(parts).equals(TABLE)
    assert dividing.divide_dataset(ds.dataset(TABLE))[0].to_table().equals(TABLE)


def test_files_of_other_types_are_read_as_the_first_and_missing_columns_are_named(tmp_path):
    pq.write_table(TABLE, tmp_path / "0.parquet")
    other = TABLE.set_column(1, "who", TABLE["who"].cast(pa.int16()))
    pq.write_table(other, tmp_path / "1.parquet")
    pq.write_table(TABLE.drop_columns(["who"]), tmp_path / "2.parquet")
    pieces = dividing.divide_dataset(ds.dataset(tmp_path, format="parquet"))
    options = {"columns": ["x0", "who"], "batch_size": 100}
    assert pa.Table.from_batches(pieces[1].to_batches(**options)).schema == TABLE.schema
    with pytest.raises(SourceError, match="lacks columns: who"):
        list(pieces[2].to_batches(**options))


def test_only_parquet_files_have_an_address(tmp_path):
    schema = Schema(columns=[Number(name="x0", low=-1, high=1)])
    pq.write_table(TABLE, tmp_path / "0.parquet")
    assert open_source(tmp_path, schema, None, None).travels
    assert not open_source(TABLE, schema, None, None).travels
    assert not open_source(np.zeros((2, 1)), schema, None, None).travels


@pytest.mark.parametrize("values", [[{"deep": "SECRET"}], [["SECRET"]]], ids=["structure", "list"])
def test_a_nested_column_of_a_category_is_named(tmp_path, values):
    """pyarrow raises a bare KeyError for it."""
    pq.write_table(pa.table({"x": [1.0], "y": values}), tmp_path / "rows.parquet")
    schema = Schema(columns=[Number(name="x", low=0, high=9)], label=Category(name="y", values=("a", "b")))
    with pytest.raises(SourceError, match="column of y, or has lists or structures") as caught:
        Rows(tmp_path / "rows.parquet", schema=schema).check()
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([Decimal("1.25"), Decimal(2), None]),
        pa.array([1.25, 2.0, None]).dictionary_encode(),
        pa.array([1.25, 2.0, float("nan")], pa.float32()),
    ],
    ids=["decimal", "dictionary", "single"],
)
def test_numbers_of_every_type_have_the_same_bits(tmp_path, values):
    pq.write_table(pa.table({"x": values}), tmp_path / "rows.parquet", row_group_size=1)
    schema = Schema(columns=[Number(name="x", low=0, high=9, missing=True)])
    found = Rows(tmp_path / "rows.parquet", schema=schema).gathered().X
    assert found.tolist() == [[1.25, 0.0], [2.0, 0.0], [4.5, 1.0]]
