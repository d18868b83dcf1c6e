"""Files are divided into addresses of row groups: the same rows in the same order, readable elsewhere."""

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from privada.exceptions import SourceError
from privada.parties import Number, Schema
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
    assert dividing.is_parquet(open_source(tmp_path, schema, None, None))
    assert not dividing.is_parquet(open_source(TABLE, schema, None, None))
    assert not dividing.is_parquet(open_source(np.zeros((2, 1)), schema, None, None))
