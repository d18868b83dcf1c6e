"""Files are divided into addresses of row groups: the same rows in the same order, readable elsewhere."""

import os
import pickle
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from privada.exceptions import SchemaError, SourceError, SourceOutageError
from privada.parties import Category, Number, Rows, Schema
from privada.parties.compute.threads import Threads
from privada.parties.csv_files import CsvFile, Dialect
from privada.parties.sources import StoredRows, open_source
from privada.parties.sources import files as dividing
from privada.parties.sources.files import ArrowSource, CsvSource, identify, identify_files

SCHEMA = Schema(columns=[Number(name="x", low=0, high=9)])


def test_every_change_of_a_file_changes_its_identity(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("x\n1\n")
    first = identify(file)
    assert identify(file) == first
    stat = file.stat()
    file.write_text("x\n2\n")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # same size, same time of change
    second = identify(file)
    assert second != first
    other = tmp_path / "other.csv"
    other.write_text("x\n3\n")
    os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    other.replace(file)
    assert identify(file) not in {first, second}
    assert identify_files([tmp_path / "nothing"]) == ""


@pytest.fixture
def folder(tmp_path):
    for i in range(3):
        pq.write_table(pa.table({"x": [float(i)] * 5}), tmp_path / f"{i}.parquet")
    return tmp_path


def test_a_file_that_changes_during_an_answer_is_an_error(folder):
    rows = Rows(folder, schema=SCHEMA)
    with pytest.raises(SourceError, match="have changed since they were loaded"), rows.pinned() as now:
        assert now.check() == 15
        pq.write_table(pa.table({"x": [1.0] * 5}), folder / "3.parquet")


def test_a_partition_that_is_missing_is_an_error(folder):
    rows = Rows(folder, schema=SCHEMA)
    (folder / "1.parquet").unlink()
    with pytest.raises(SourceOutageError, match=r"1\.parquet is out of reach"), rows.pinned():
        pytest.fail("it was opened")
    with pytest.raises(SourceOutageError, match="out of reach"):
        rows.check()


ARROW_SCHEMA = Schema(columns=[Number(name="x", low=0, high=999)])


def test_parts_have_all_rows_in_order(tmp_path):
    for i in range(3):
        pq.write_table(pa.table({"x": np.arange(5.0) + 5 * i, "y": ["a"] * 5}), tmp_path / f"{i}.parquet")
    source = ArrowSource(ds.dataset(tmp_path), ARROW_SCHEMA)
    parts = source.parts()
    assert len(parts) == 3
    found = [x for part in parts for table in part.tables(2) for x in table["x"]]
    assert found == source.column("x").tolist() == list(range(15))


def test_what_cannot_be_read_is_named(tmp_path):
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "rows.parquet")
    dataset = ds.dataset(tmp_path)
    with pytest.raises(SchemaError, match="lacks columns of the schema: x"):
        ArrowSource(ds.dataset(pa.table({"z": [1.0]})), ARROW_SCHEMA)
    (tmp_path / "rows.parquet").unlink()
    with pytest.raises(SourceError, match="out of reach"):
        list(ArrowSource(dataset, ARROW_SCHEMA).tables(5))


CSV_SCHEMA = Schema(columns=[Number(name="x", low=0, high=9)], person_id="who", max_rows=1)


def opened(text, schema=CSV_SCHEMA):
    return CsvSource(CsvFile("rows.csv", lambda: pa.BufferReader(text), Dialect(), schema.columns), schema)


def test_rows_are_read_again_and_again_and_persons_are_text():
    source = opened(b"who,x,more\n007,1,a\n7,2,b\n")
    for _ in range(2):
        (table,) = source.tables(10)
        assert table["x"].tolist() == [1, 2]
        assert source.column("who").tolist() == ["007", "7"]


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(SchemaError, match="lacks columns of the schema: who"):
        opened(b"x\n1\n")


def folder_of(tmp_path, *texts):
    folder = tmp_path / "exports"
    folder.mkdir()
    for i, text in enumerate(texts):
        (folder / f"{i}.csv").write_text(text)
    (folder / "_SUCCESS").write_text("a mark of another program")
    return folder


PLAIN = Schema(columns=[Number(name="x", low=0, high=9)], label=Category(name="y", values=("a", "b\nc")))
THREE = ('x,y\n1,a\n2,"b\nc"\n', 'y,x\n"b\nc",3\n', "x,y\n")


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", ["", "*.csv"])
def test_csv_files_of_a_folder_are_one_table(tmp_path, threads, name):
    folder = folder_of(tmp_path, *THREE)
    rows = Rows(folder / name, schema=PLAIN, compute=Threads(threads))
    found = rows.gathered()
    assert (found.X[:, 0].tolist(), found.y.tolist()) == ([1, 2, 3], [0, 1, 1])
    assert rows.total(lambda batch: batch.X.astype(np.int64).sum(axis=0)).tolist() == [6]


def test_a_dialect_makes_all_files_of_a_folder_csv(tmp_path):
    folder = tmp_path / "exports"
    folder.mkdir()
    for i in range(2):
        (folder / f"{i}.txt").write_text(f"x;y\n{i},5;a\n")
    rows = Rows(StoredRows(folder, Dialect(delimiter=";", decimal=",")), schema=PLAIN)
    assert rows.gathered().X[:, 0].tolist() == [0.5, 1.5]


def test_a_fault_in_a_folder_names_the_file(tmp_path):
    folder = folder_of(tmp_path, *THREE, "x,y\n1,a\n?,a\n")
    rows = Rows(folder, schema=PLAIN)
    with pytest.raises(SchemaError, match=r"^3.csv: column 1 'x': not a number at line 3"):
        rows.check()
    (folder / "4.csv").write_text("x,z\n")
    with pytest.raises(SchemaError, match=r"^4.csv: The table lacks columns of the schema: y"):
        Rows(folder, schema=PLAIN)


def test_a_new_file_in_a_folder_is_noticed(tmp_path):
    folder = folder_of(tmp_path, *THREE)
    rows = Rows(folder / "*.csv", schema=PLAIN)
    (folder / "7.csv").write_text("x,y\n1,a\n")
    with pytest.raises(SourceError, match="have changed"), rows.pinned():
        pass


@pytest.mark.parametrize("name", ["*.csv", "exports"])
def test_no_file_at_all_is_named(tmp_path, name):
    (tmp_path / "exports").mkdir()
    with pytest.raises(SourceError, match="No file has a name like|has no files"):
        Rows(StoredRows(tmp_path / name, Dialect()), schema=PLAIN)


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
