import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from privada import Owner
from privada.exceptions import SchemaError, SourceError
from privada.methods.cells import Bins, CellStatistics
from privada.parties import Number, Rows, Schema
from privada.parties.csv_files import Dialect
from privada.parties.sources import Source, StoredRows, open_source
from privada.privacy import PureDP

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
    assert Rows(StoredRows(tmp_path, Dialect()), schema=SCHEMA).check() == 1


class Made(Source):
    """Rows that a program computes, in two parts."""

    def __init__(self, start=0, stop=200_000, spoil=lambda table: table):
        self.start, self.stop, self.spoil = start, stop, spoil

    def tables(self, size, names=None):
        for at in range(self.start, self.stop, size):
            yield self.spoil({"x": np.arange(at, min(at + size, self.stop)) % 10.0})

    def column(self, name):
        return np.arange(self.start, self.stop) % 10.0

    def parts(self):
        return [Made(0, 70_001, self.spoil), Made(70_001, 200_000, self.spoil)]


def test_an_owner_takes_a_source_of_ones_own():
    """It answers as for the same rows in an array, and charges once."""
    budget = PureDP(epsilon=1.0, relation="add/remove")
    question = CellStatistics(tables=(Bins(feature=0, edges=np.arange(9.0)),), guarantee=budget)
    found = []
    for data in (Made(), Made().column("x")[:, None]):
        with pytest.warns(match="not private"):
            house = Owner(data, schema=SCHEMA, dataset="rows", budget=budget, insecure_seed=1)
        found.append(house.answer(question).payload)
        assert [line.kind for line in house.ledger.lines("rows")] == ["budget", "charge"]
    assert found[0].keys() == found[1].keys()
    assert all(np.array_equal(found[0][name], found[1][name]) for name in found[0])


def test_columns_of_a_source_of_ones_own_are_looked_at_before_compiled_code_is():
    for spoil, message in (
        (lambda table: {"other": table["x"]}, "no column 'x'"),
        (lambda table: table | {"x2": np.zeros(1)}, "several lengths"),
        (lambda table: {"x": np.r_[table["x"], table["x"]]}, "more than 65536 rows"),
    ):
        with pytest.raises(SourceError, match=message):
            Rows(Made(spoil=spoil), schema=SCHEMA).check()
    with pytest.raises(SchemaError, match="among its columns"):
        Rows(Made(), y=np.zeros(3), schema=SCHEMA)
