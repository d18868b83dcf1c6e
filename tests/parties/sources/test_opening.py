import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from privada.exceptions import SchemaError, SourceError
from privada.parties import Number, Rows, Schema
from privada.parties.csv.dialect import Dialect
from privada.parties.sources import StoredRows, open_source

SCHEMA = Schema(columns=[Number(name="x", low=0, high=9)])
TABLE = pa.table({"x": [1.0, 2.0, 3.0], "more": ["a", "b", "c"]})


class Stream:
    """What any library may bring: nothing but the protocol."""

    def __arrow_c_stream__(self, requested_schema=None):
        return TABLE.__arrow_c_stream__(requested_schema)


def test_data_sets_readers_and_streams_are_read_again_and_again(tmp_path):
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    for data in (ds.dataset(tmp_path / "rows.parquet"), ds.dataset(TABLE), TABLE.to_reader(), Stream()):
        rows = Rows(data, schema=SCHEMA)
        for _ in range(2):
            assert rows.gathered().X.tolist() == [[1.0], [2.0], [3.0]]


def test_a_stream_that_breaks_is_named():
    def batches():
        yield TABLE.to_batches()[0]
        raise OSError("Mrs Smith hung up")

    reader = pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    with pytest.raises(SchemaError, match="stream cannot be read to its end") as caught:
        Rows(reader, schema=SCHEMA)
    assert "Smith" not in str(caught.value)


def test_csv_is_known_by_its_name_or_its_dialect(tmp_path):
    (tmp_path / "export").write_text("x\n1\n")
    with pytest.raises(SourceError, match="export cannot be read as parquet"):
        open_source(tmp_path / "export", SCHEMA, None, None)
    assert Rows(StoredRows(tmp_path / "export", Dialect()), schema=SCHEMA).check() == 1
    with pytest.raises(SourceError, match="is a folder; expected one CSV file"):
        Rows(StoredRows(tmp_path, Dialect()), schema=SCHEMA)
