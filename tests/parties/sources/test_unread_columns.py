"""Columns that a question does not need are not read: here, reading one of them fails."""

import sqlite3
from contextlib import closing

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privada.exceptions import PrivadaError
from privada.methods.cells import Bins, CellStatistics, NearestCells
from privada.parties import Category, Number, Rows, Schema
from privada.parties.answering import answer_rows
from privada.parties.sources import Database
from privada.privacy import PureDP
from privada.privacy.noise import SecureNoise

SCHEMA = Schema(
    columns=[Number(name="a", low=0, high=9), Number(name="b", low=0, high=9)],
    label=Category(name="y", values=(0, 1)),
)
A, B = np.arange(8.0), np.arange(8.0)[::-1]
PURE = PureDP(epsilon=1, relation="add/remove")
BINS = Bins(feature=0, edges=np.array([4.0]))
CENTERS = NearestCells(centers=np.array([[0.0, 7.0], [7.0, 0.0]]))


def parquet(folder, bad):
    """The pages of a column are overwritten; its footer is not."""
    path = folder / "rows.parquet"
    table = pa.table({"a": A, "b": B, "y": np.zeros(8, dtype=np.int64)})
    pq.write_table(table, path, use_dictionary=False, compression="none")
    column = pq.ParquetFile(path).metadata.row_group(0).column(table.column_names.index(bad))
    blob = bytearray(path.read_bytes())
    start = column.data_page_offset
    blob[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(blob)
    return path


def csv(folder, bad):
    lines = [{"a": a, "b": b, "y": 0} | {bad: "?"} for a, b in zip(A, B, strict=True)]
    path = folder / "rows.csv"
    path.write_text("a,b,y\n" + "".join("{a},{b},{y}\n".format(**line) for line in lines))
    return path


def lazy(folder, bad):
    frame = pl.LazyFrame({"a": A, "b": B, "y": np.zeros(8, dtype=np.int64), "text": ["?"] * 8})
    return frame.with_columns(pl.col("text").cast(pl.Int64).alias(bad))


def sql(fault, bad):
    columns = {"a": "a", "b": "b", "y": "y"} | {bad: fault}
    return f"SELECT {', '.join(f'{value} AS {name}' for name, value in columns.items())} FROM numbers"


def sqlite(folder, bad):
    with closing(sqlite3.connect(folder / "rows.sqlite")) as connection:
        connection.execute("CREATE TABLE numbers (a, b, y)")
        connection.executemany("INSERT INTO numbers VALUES (?, ?, 0)", zip(A, B, strict=True))
        connection.commit()
    overflow = "abs(-9223372036854775807 - 1 + y)"
    return Database(url=f"sqlite:///{folder}/rows.sqlite", query=sql(overflow, bad))


def duck(folder, bad):
    with closing(duckdb.connect(str(folder / "rows.duckdb"))) as connection:
        connection.execute("CREATE TABLE numbers (a DOUBLE, b DOUBLE, y BIGINT)")
        connection.executemany("INSERT INTO numbers VALUES (?, ?, 0)", list(zip(A, B, strict=True)))
    return Database(url=f"duckdb:///{folder}/rows.duckdb", query=sql("error('read ' || a)", bad))


def counts(question, data):
    exact = {}
    rows = Rows(data, schema=SCHEMA)
    answer_rows(question, rows, noise=SecureNoise(), witness=lambda name, _, x: exact.setdefault(name, x))
    return exact["counts"] >> -question.plan.lattice("counts").grid.exponent


@pytest.mark.parametrize("make", [parquet, csv, lazy, sqlite, duck])
def test_a_column_that_is_not_needed_is_not_read(make, tmp_path):
    by_class = CellStatistics(tables=(CENTERS,), n_classes=2, guarantee=PURE)
    data = make(tmp_path, "y")
    assert counts(CellStatistics(tables=(CENTERS,), guarantee=PURE), data).tolist() == [4, 4]
    with pytest.raises(PrivadaError):
        counts(by_class, data)


@pytest.mark.parametrize("make", [parquet, csv, lazy, sqlite, duck])
def test_a_feature_that_is_not_needed_is_not_read(make, tmp_path):
    data = make(tmp_path, "b")
    assert counts(CellStatistics(tables=(BINS,), guarantee=PURE), data).tolist() == [4, 4]
    with pytest.raises(PrivadaError):
        counts(CellStatistics(tables=(CENTERS,), guarantee=PURE), data)


def test_loading_rows_still_checks_every_column(tmp_path):
    with pytest.raises(PrivadaError, match="column 3 'y': not a whole number at line 2"):
        Rows(csv(tmp_path, "y"), schema=SCHEMA).check()


def test_an_index_over_persons_changes_no_order(tmp_path):
    """SQLite reads one column from an index of it, in the index's order."""
    with closing(sqlite3.connect(tmp_path / "rows.sqlite")) as connection:
        connection.execute("CREATE TABLE numbers (a, b, y, person)")
        lines = zip(A, B, [*"hgfedcba"], strict=True)
        connection.executemany("INSERT INTO numbers VALUES (?, ?, 0, ?)", lines)
        connection.execute("CREATE INDEX persons ON numbers (person)")
        connection.commit()
    schema = Schema(columns=SCHEMA.columns, label=SCHEMA.label, person_id="person", max_rows=1)
    rows = Rows(
        Database(url=f"sqlite:///{tmp_path}/rows.sqlite", table="numbers"), schema=schema, noise=SecureNoise()
    )
    with rows.pinned() as now:
        assert now.reading(features=frozenset({0}), label=False).gathered().X[:, 0].tolist() == A.tolist()
