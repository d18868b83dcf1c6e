"""Headers: names and declared types, never a value."""

import sqlite3

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privada.exceptions import InputError
from privada.parties.sources.databases import Database
from privada.service.setup.headers import ColumnHeader, read_header, read_table_header

TABLE = pa.table(
    {
        "age": pa.array([1], pa.int32()),
        "weight": pa.array([1.5]),
        "born": pa.array([0], pa.date32()),
        "ill": pa.array([True]),
        "city": pa.array(["x"]),
    }
)
KINDS = {"age": "integer", "weight": "number", "born": "date", "ill": "boolean", "city": "category"}


def test_parquet_declares_kinds(tmp_path):
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    assert {each.name: each.kind for each in read_header(tmp_path / "rows.parquet")} == KINDS


def test_kinds_do_not_depend_on_values(tmp_path):
    pq.write_table(TABLE, tmp_path / "some.parquet")
    pq.write_table(TABLE.slice(0, 0), tmp_path / "none.parquet")
    assert read_header(tmp_path / "some.parquet") == read_header(tmp_path / "none.parquet")


def test_csv_declares_names_only(tmp_path):
    (tmp_path / "rows.csv").write_text("age,city\n1,x\n")
    assert read_header(tmp_path / "rows.csv") == [ColumnHeader("age"), ColumnHeader("city")]


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nothing at .*rows\.csv"):
        read_header(tmp_path / "rows.csv")


def test_a_table_of_duckdb_declares_kinds(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE patients (age INTEGER, weight DOUBLE, born DATE, ill BOOLEAN, city TEXT)"
        )
    database = Database(url=f"duckdb:///{tmp_path / 'rows.duckdb'}", table="patients")
    assert {each.name: each.kind for each in read_table_header(database)} == KINDS


def test_a_table_of_sqlite_declares_names_only(tmp_path):
    with sqlite3.connect(tmp_path / "rows.sqlite") as connection:
        connection.execute("CREATE TABLE patients (age INTEGER, city TEXT)")
    connection.close()
    database = Database(url=f"sqlite:///{tmp_path / 'rows.sqlite'}", table="patients")
    assert read_table_header(database) == [ColumnHeader("age"), ColumnHeader("city")]
