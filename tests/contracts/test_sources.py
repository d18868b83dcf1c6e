"""The same rows from every source give the same bits, for every question of every room."""

import sqlite3
from contextlib import closing

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from privada.audit.transcript import coupled
from privada.methods import methods
from privada.parties import answering
from privada.parties.answering import Draws, answer_rows, answerer
from privada.parties.rows import Rows
from privada.parties.sources import Database

KINDS = {
    case.questions[0].kind: (name, index)
    for name, method in methods().items()
    for index, case in enumerate(method.example().single_cases)
}
CASES = [pytest.param(*place, id=kind) for kind, place in KINDS.items()]


def as_table(example):
    """The example's rows as an Arrow table by name."""
    data = dict(example.data)
    X = np.asarray(data["data"])
    columns = {column.name: X[:, i].tolist() for i, column in enumerate(example.schema.columns)}
    if example.schema.label:
        columns[example.schema.label.name] = np.asarray(data["y"]).tolist()
    if example.schema.person_id:
        columns[example.schema.person_id] = np.asarray(data["person"]).astype(str).tolist()
    return pa.table(columns)


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Every source of the rows of a case, made once for cases of the same rows."""
    made = {}

    def make(name, case):
        key = name, repr(case.schema)
        if key not in made:
            made[key] = written(as_table(case), tmp_path_factory.mktemp(name))
        return made[key]

    return make


def written(table, folder):
    pq.write_table(table, folder / "rows.parquet", row_group_size=7)
    (folder / "parts").mkdir()
    for i in range(3):
        third = -(-table.num_rows // 3)
        pq.write_table(table.slice(i * third, third), folder / f"parts/{i}.parquet")
    csv.write_csv(table, folder / "rows.csv")
    with closing(duckdb.connect(str(folder / "rows.duckdb"))) as connection:
        connection.execute(f"CREATE TABLE rows AS SELECT * FROM read_parquet('{folder}/rows.parquet')")
    with closing(sqlite3.connect(folder / "rows.sqlite")) as connection:
        names = ", ".join(f'"{name}"' for name in table.column_names)
        connection.execute(f"CREATE TABLE rows ({names})")
        marks = ", ".join("?" * table.num_columns)
        columns = [column.to_pylist() for column in table.columns]
        connection.executemany(f"INSERT INTO rows VALUES ({marks})", zip(*columns, strict=True))
        connection.commit()
    return {
        "table": table,
        "reader": table.to_reader(max_chunksize=5),
        "parquet": folder / "rows.parquet",
        "parts": folder / "parts",
        "csv": folder / "rows.csv",
        "lazy": pl.scan_parquet(folder / "rows.parquet"),
        "duckdb": Database(url=f"duckdb:///{folder}/rows.duckdb", table="rows"),
        "sqlite": Database(url=f"sqlite:///{folder}/rows.sqlite", table="rows"),
    }


def answered(question, rows):
    exact = {}
    with rows.pinned() as now:
        payload = answer_rows(
            question, now, noise=coupled(3), witness=lambda name, _, value: exact.setdefault(name, value)
        )
    return exact | payload


@pytest.mark.parametrize(("name", "index"), CASES)
def test_every_source_gives_the_same_bits(name, index, sources):
    example = methods()[name].example().single_cases[index]
    (question,) = example.questions
    first = answered(question, Rows(**example.data, schema=example.schema, noise=coupled(0)))
    for kind, data in sources(name, example).items():
        again = answered(question, loaded(kind, data, example.schema, sources(name, example)))
        assert again.keys() == first.keys()
        for key, value in first.items():
            assert np.array_equal(value, again[key]), (kind, key)


@pytest.mark.parametrize(("name", "index"), CASES)
def test_what_a_question_does_not_need_changes_no_bit(name, index):
    example = methods()[name].example().single_cases[index]
    (question,) = example.questions

    def values(answer):
        rows, exact = Rows(**example.data, schema=example.schema, noise=coupled(0)), {}
        witness = lambda name, _, value: exact.setdefault(name, value)  # noqa: E731
        with np.errstate(all="ignore"):
            payload = answer(question, rows, Draws(question.plan, coupled(3), witness))
        return exact | payload

    needed, all_columns = values(answering.answered), values(answerer(question))
    assert needed.keys() == all_columns.keys()
    for key, value in all_columns.items():
        assert np.array_equal(value, needed[key]), key


def loaded(kind, data, schema, made):
    if kind == "reader":  # read once, when the rows are loaded
        data = made["table"].to_reader(max_chunksize=5)
    return Rows(data, schema=schema, noise=coupled(0))
