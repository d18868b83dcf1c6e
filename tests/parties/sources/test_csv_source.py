import numpy as np
import pyarrow as pa
import pytest

from privada.exceptions import SchemaError, SourceError
from privada.parties import Category, Number, Rows, Schema
from privada.parties.compute.threads import Threads
from privada.parties.csv_files import CsvFile, Dialect
from privada.parties.sources import StoredRows
from privada.parties.sources.csv_source import CsvSource

SCHEMA = Schema(columns=[Number(name="x", low=0, high=9)], person_id="who", max_rows=1)


def opened(text, schema=SCHEMA):
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
