"""A PostgreSQL snapshot that the workers of a real cluster read, while others write."""

import dataclasses
import sqlite3
import sys
import time
from contextlib import closing
from datetime import date

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pytest

from privada.audit.transcript import coupled
from privada.exceptions import InputError, SchemaError, SourceError, SourceOutageError
from privada.parties import Number, Owner, Rows, Schema
from privada.parties.compute.threads import Threads
from privada.parties.sources import databases
from privada.parties.sources.databases import ENGINES, Database, DatabaseSource, SharedSnapshot
from privada.privacy import PureDP, SecureNoise
from tests.clusters import running_cluster

TABLE = 'CREATE TABLE rows ("Age" {real}, ward {text}, seen {date}, ill {flag}, extra integer)'
TYPES = {
    "sqlite": {"real": "REAL", "text": "TEXT", "date": "TEXT", "flag": "INTEGER"},
    "duckdb": {"real": "DOUBLE", "text": "VARCHAR", "date": "DATE", "flag": "BOOLEAN"},
    "postgresql": {"real": "numeric(6,2)", "text": "text", "date": "date", "flag": "boolean"},
}


def connected(kind, place):
    if kind == "sqlite":
        return sqlite3.connect(place)
    return duckdb.connect(str(place)) if kind == "duckdb" else psycopg.connect(place)


def filled(kind, place, lines):
    mark = "%s" if kind == "postgresql" else "?"
    with closing(connected(kind, place)) as connection:
        cursor = connection.cursor()
        cursor.execute(TABLE.format(**TYPES[kind]))
        insert = f"INSERT INTO rows VALUES ({', '.join([mark] * 4)}, 1)"
        cursor.executemany(insert, [_typed(kind, line) for line in lines])
        connection.commit()
        cursor.close()


def _typed(kind, line):
    age, ward, seen, ill = line
    return (
        age,
        ward,
        seen if kind == "sqlite" else date.fromisoformat(seen),
        int(ill) if kind == "sqlite" else ill,
    )


@pytest.fixture(params=["sqlite", "duckdb", pytest.param("postgresql", marks=pytest.mark.postgres)])
def place(request, tmp_path, lines):
    """A kind of database, a way to connect to it, and the URL of one that is filled."""
    kind = request.param
    address = request.getfixturevalue("postgres") if kind == "postgresql" else tmp_path / "rows.db"
    filled(kind, address, lines)
    return kind, address, address if kind == "postgresql" else f"{kind}:///{address}"


def in_memory(lines):
    names = ("Age", "ward", "seen", "ill")
    columns = dict(zip(names, zip(*lines, strict=True), strict=True))
    return pa.table(columns)


def gathered(data, schema):
    batch = Rows(data, schema=schema).gathered()
    order = np.lexsort(np.column_stack([batch.X, batch.y]).T)
    return batch.X[order], batch.y[order]


def test_a_table_and_a_query_give_the_rows(place, schema, lines):
    _, _, url = place
    X, y = gathered(in_memory(lines), schema)
    for database in (Database(url=url, table="rows"), Database(url=url, query="SELECT * FROM rows;")):
        found = gathered(database, schema)
        assert np.array_equal(found[0], X)
        assert np.array_equal(found[1], y)
    some = Database(url=url, query="SELECT * FROM rows WHERE ward IS NULL -- only these")
    assert len(gathered(some, schema)[0]) == sum(line[1] is None for line in lines)


def test_a_session_cannot_write(place, schema):
    kind, address, url = place
    attack = Database(url=url, query='DELETE FROM rows RETURNING "Age", ward, seen, ill')
    with pytest.raises(SourceError, match="cannot be read"):
        Rows(attack, schema=schema).check()
    with closing(connected(kind, address)) as connection, closing(connection.cursor()) as cursor:
        assert cursor.execute("SELECT count(*) FROM rows").fetchone() == (500,)


def test_an_answer_reads_one_snapshot(place, schema):
    """Rows that are written meanwhile are in the next answer, wholly, and in no part of this one."""
    kind, address, url = place
    rows = Rows(Database(url=url, table="rows"), schema=schema)
    with rows.pinned() as now:
        assert now.check() == 500
        if kind == "duckdb":  # it lets nobody write meanwhile
            with pytest.raises(duckdb.Error):
                connected(kind, address)
            return
        with closing(connected(kind, address)) as writer, closing(writer.cursor()) as cursor:
            if kind == "sqlite":
                writer.execute("PRAGMA busy_timeout = 10")
                with pytest.raises(sqlite3.OperationalError, match="locked"):
                    writer.execute("DELETE FROM rows")
                    writer.commit()
                return
            cursor.execute("DELETE FROM rows WHERE ill")
            writer.commit()
        assert now.check() == 500
    with rows.pinned() as now:
        assert now.check() == 250


def test_wal_of_sqlite_has_snapshots_beside_a_writer(tmp_path, schema, lines):
    with closing(sqlite3.connect(tmp_path / "rows.db")) as connection:
        connection.execute("PRAGMA journal_mode = wal")
    filled("sqlite", tmp_path / "rows.db", lines)
    rows = Rows(Database(url=f"sqlite:///{tmp_path}/rows.db", table="rows"), schema=schema)
    with rows.pinned() as now:
        assert now.check() == 500
        with closing(sqlite3.connect(tmp_path / "rows.db")) as writer:
            writer.execute("DELETE FROM rows")
            writer.commit()
        assert now.check() == 500
    assert rows.check() == 0


@pytest.mark.parametrize("max_rows", [1, 3])
def test_persons_are_bounded_in_each_snapshot(place, max_rows):
    kind, address, url = place
    schema = Schema(
        columns=[Number(name="Age", low=0, high=1, missing=True)], person_id="who", max_rows=max_rows
    )
    database = Database(url=url, query='SELECT "Age", extract(year from seen) AS who FROM rows')
    if kind == "sqlite":
        database = Database(url=url, query='SELECT "Age", substr(seen, 1, 4) AS who FROM rows')
    if kind == "postgresql":  # extract gives a numeric, which ADBC gives as text
        database = Database(url=url, query='SELECT "Age", extract(year from seen)::int AS who FROM rows')
    rows = Rows(database, schema=schema, noise=SecureNoise())
    for _ in range(2):
        with rows.pinned() as now:
            assert now.check() == 5 * max_rows
    with closing(connected(kind, address)) as connection, closing(connection.cursor()) as cursor:
        cursor.execute("DELETE FROM rows WHERE ill")
        connection.commit()
    with rows.pinned() as now:
        assert now.check() == 5 * max_rows


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"table": "nothing"}, "The database cannot be read"),
        ({"table": None, "query": "SELECT FROM FROM"}, "The database cannot be read"),
        ({"table": None, "query": "SELECT 1 AS ward"}, "lacks columns of the schema: Age, seen, ill"),
    ],
)
def test_what_is_not_there_is_one_named_error(place, schema, change, message):
    with pytest.raises(SchemaError, match=message) as caught:
        Rows(Database(**{"url": place[2], "table": "rows"} | change), schema=schema)
    assert len(str(caught.value)) < 120


def test_a_row_that_does_not_fit_is_named_without_its_value(place, schema):
    kind, address, url = place
    with closing(connected(kind, address)) as connection, closing(connection.cursor()) as cursor:
        cursor.execute("UPDATE rows SET ward = 'Mrs Smith' WHERE ill")
        connection.commit()
    with pytest.raises(SchemaError, match="'ward' holds a value outside") as caught:
        Rows(Database(url=url, table="rows"), schema=schema).check()
    assert "Smith" not in str(caught.value)


def test_an_owner_whose_database_goes_away_charges_once_and_answers_when_it_is_back(
    tmp_path, lines, schema, monkeypatch
):
    from privada import CellStatistics, NearestCells

    filled("sqlite", tmp_path / "rows.db", lines)
    budget = PureDP(epsilon=1.0, relation="add/remove")
    database = Database(url=f"sqlite:///{tmp_path}/rows.db", table="rows")
    owner = Owner(database, schema=schema, dataset="rows", budget=budget)
    half = PureDP(epsilon=0.5, relation="add/remove")
    centers = np.repeat([[0.0], [1.0]], schema.width, axis=1)
    question = CellStatistics(tables=(NearestCells(centers=centers),), guarantee=half)
    (tmp_path / "rows.db").rename(tmp_path / "away")
    with pytest.raises(SourceOutageError, match="no database") as caught:
        owner.answer(question)
    assert caught.value.part == "database"
    assert owner.ledger.spent("rows") is None
    with monkeypatch.context() as patch:  # it goes away just after the charge
        patch.setattr(Owner, "_check_rows", lambda _: None)
        for _ in range(2):
            with pytest.raises(SourceOutageError):
                owner.answer(question)
    assert owner.ledger.debt("rows", question.digest).tries == 2
    for _ in range(30):  # none of these counts as a try
        with pytest.raises(SourceOutageError):
            owner.answer(question)
    (tmp_path / "away").rename(tmp_path / "rows.db")
    assert owner.answer(question).receipt
    assert owner.ledger.debt("rows", question.digest).tries == 3
    assert [line.kind for line in owner.ledger.lines("rows")] == ["budget", "charge"]


def test_a_snapshot_of_another_size_than_is_public_is_not_answered(tmp_path, lines, schema):
    from privada import CellStatistics, NearestCells
    from privada.exceptions import AnswerError

    filled("sqlite", tmp_path / "rows.db", lines)
    sized = dataclasses.replace(schema, size=500)
    owner = Owner(
        Database(url=f"sqlite:///{tmp_path}/rows.db", table="rows"),
        schema=sized,
        dataset="rows",
        budget=PureDP(epsilon=1.0, relation="replace-one"),
    )
    centers = np.repeat([[0.0], [1.0]], schema.width, axis=1)
    part = PureDP(epsilon=0.25, relation="replace-one")
    tables = (NearestCells(centers=centers),)
    owner.answer(CellStatistics(tables=tables, guarantee=part))
    with closing(sqlite3.connect(tmp_path / "rows.db")) as connection:
        connection.execute("DELETE FROM rows WHERE rowid = 1")
        connection.commit()
    with pytest.raises(AnswerError, match="The charge stands"):
        owner.answer(CellStatistics(tables=tables, guarantee=part, salt="again"))


@pytest.mark.postgres
def test_a_server_that_ends_the_session_is_one_named_error(postgres, schema, lines):
    filled("postgresql", postgres, lines)
    rows = Rows(Database(url=postgres, table="rows"), schema=schema)
    end = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    with pytest.raises(SourceError, match="cannot be read, or went away") as caught, rows.pinned() as now:
        assert now.check() == 500
        with closing(psycopg.connect(postgres, autocommit=True)) as other:
            other.execute(end)
        now.check()
    assert isinstance(caught.value, SourceOutageError)
    assert "postgres@" not in str(caught.value)
    assert rows.check() == 500  # the next answer connects anew


@pytest.mark.postgres
def test_a_value_that_cannot_be_read_is_no_outage(postgres):
    """It says something about the rows, so an answer that fails on it is not tried for ever."""
    numbers = Schema.of_numbers(bounds=(0, 1), width=1)
    query = "SELECT 1.0 / (400000 - x) AS x0 FROM generate_series(1, 500000) AS x"
    rows = Rows(Database(url=postgres, query=query), schema=numbers)
    with pytest.raises(SourceError, match="cannot be read") as caught, rows.pinned() as now:
        now.check()
    assert not isinstance(caught.value, SourceOutageError)


@pytest.mark.parametrize(
    "bad",
    [
        {"url": "postgresql://u:secret@host/db", "table": "t"},
        {"url": "postgresql://host/db?password=secret", "table": "t"},
        {"url": "postgresql://host/db?sslpassword=secret", "table": "t"},
        {"url": "mysql://host/db", "table": "t"},
        {"url": "sqlite:///x.db"},
        {"url": "sqlite:///x.db", "table": "t", "query": "SELECT 1"},
        {"url": "sqlite:///x.db", "query": "SELECT 1; DELETE FROM t"},
    ],
)
def test_databases_that_are_none_are_refused_without_the_secret(bad):
    with pytest.raises(InputError) as caught:
        Database(**bad)
    assert "secret@" not in str(caught.value)
    assert "=secret" not in str(caught.value)


def test_names_are_quoted():
    hostile = Database(url="sqlite:///x.db", table='a"; DROP TABLE b')
    assert hostile.select(('c"d',)) == 'SELECT "c""d" FROM "a""; DROP TABLE b"'
    assert (
        Database(url="sqlite:///x.db", table="clinic.rows").select(("c",))
        == 'SELECT "c" FROM "clinic"."rows"'
    )


def test_a_file_of_a_database_has_an_identity(tmp_path, schema, lines):
    filled("sqlite", tmp_path / "rows.db", lines)
    rows = Rows(Database(url="sqlite:///rows.db", table="rows").relative_to(tmp_path), schema=schema)
    assert rows.identity is None  # it was written within this tick of the clock
    time.sleep(0.15)
    before = rows.identity
    assert before
    assert before == rows.identity
    with closing(sqlite3.connect(tmp_path / "rows.db")) as writer:
        writer.execute("DELETE FROM rows")
        writer.commit()
    assert rows.identity != before


SCHEMA = Schema(columns=[Number(name="x", low=0, high=9)])


@pytest.mark.parametrize(
    ("url", "module"),
    [("duckdb:///x.duckdb", "duckdb"), ("postgresql://host/db", "adbc_driver_postgresql.dbapi")],
)
def test_a_driver_that_is_not_installed_is_named(url, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    database = Database(url=url, table="rows")
    with pytest.raises(InputError, match=r"pip install 'privada\[sql\]'"), ENGINES[database.engine](database):
        pytest.fail("it was opened")


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_file_that_is_none_is_named_and_not_made(kind, tmp_path):
    database = Database(url=f"{kind}:///{tmp_path}/rows.db", table="rows")
    with pytest.raises(SourceError, match=r"no database at rows\.db"), ENGINES[kind](database):
        pytest.fail("it was opened")
    assert not list(tmp_path.iterdir())
    (tmp_path / "rows.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(SourceError, match="cannot be read"), ENGINES[kind](database) as session:
        session.names("SELECT * FROM rows")


def test_values_of_sqlite_keep_their_types(tmp_path):
    """A column whose first values are whole has fractions and text later, and none is lost."""
    with closing(sqlite3.connect(tmp_path / "rows.db")) as connection:
        connection.execute("CREATE TABLE rows (x)")
        connection.executemany("INSERT INTO rows VALUES (?)", [(1,), (None,), (2.5,), ("three",)])
        connection.commit()
    database = Database(url=f"sqlite:///{tmp_path}/rows.db", table="rows")
    with ENGINES["sqlite"](database) as session:
        tables = list(session.tables(database.select(("x",)), SCHEMA, 3))
    assert [table["x"].tolist() for table in tables] == [[1, None, 2.5], ["three"]]


def test_an_engine_of_postgresql_that_nobody_answers_for_is_named():
    database = Database(url="postgresql://127.0.0.1:1/db?connect_timeout=2", table="rows")
    with pytest.raises(SourceError, match="cannot be read, or went away") as caught:
        with ENGINES["postgresql"](database):
            pytest.fail("it was opened")
    assert "127.0.0.1" not in str(caught.value)


SHARED_SCHEMA = Schema(columns=[Number(name="x", low=0, high=10_000)])
PERSONS = Schema(columns=SHARED_SCHEMA.columns, person_id="who", max_rows=2)
N = 3000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running_cluster(tmp_path_factory.mktemp("tls")) as (found, _):
        yield found


@pytest.fixture
def numbers(postgres, monkeypatch):
    """A table of many pages, with deleted rows, an index that tempts the planner, and a view."""
    monkeypatch.setattr(databases, "PART_PAGES", 4)
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute('CREATE SCHEMA "the clinic"')
        connection.execute('CREATE TABLE "the clinic".rows (x double precision, who text)')
        connection.execute(
            f"INSERT INTO \"the clinic\".rows SELECT i, 'p' || i % 700 FROM generate_series(1, {N}) i"
        )
        connection.execute('DELETE FROM "the clinic".rows WHERE x::integer % 10 = 0')
        connection.execute('CREATE INDEX ON "the clinic".rows (who)')
        connection.execute('CREATE VIEW doubled AS SELECT x, who FROM "the clinic".rows')
        yield Database(url=postgres, table="the clinic.rows"), connection


def sums(batch):
    return np.array([len(batch), batch.X.sum()], dtype=np.int64)


def both(rows):
    with rows.pinned() as now:
        return now.gathered().X, now.total(sums)


@pytest.mark.postgres
@pytest.mark.parametrize("schema", [SHARED_SCHEMA, PERSONS], ids=["rows", "persons"])
@pytest.mark.parametrize("kind", ["table", "view", "query"])
def test_workers_read_the_same_rows_as_one_process(numbers, cluster, schema, kind):
    database, _ = numbers
    others = {"view": {"table": "doubled"}, "query": {"query": "SELECT who, x FROM doubled WHERE x < 2000"}}
    if kind != "table":
        database = Database(url=database.url, **others[kind])
    alone, spread = (
        both(Rows(database, schema=schema, noise=coupled(1), compute=compute))
        for compute in (Threads(1), cluster)
    )
    assert all(np.array_equal(one, other) for one, other in zip(alone, spread, strict=True))


@pytest.mark.postgres
def test_all_workers_see_one_moment(numbers, cluster):
    database, connection = numbers
    rows = Rows(database, schema=SHARED_SCHEMA, compute=cluster)
    with rows.pinned() as now:
        before = now.total(sums)
        connection.execute('INSERT INTO "the clinic".rows SELECT 5, NULL FROM generate_series(1, 2000)')
        connection.execute('DELETE FROM "the clinic".rows WHERE x < 100')
        assert np.array_equal(before, now.total(sums))
    with rows.pinned() as later:
        assert not np.array_equal(before, later.total(sums))


@pytest.mark.postgres
def test_a_table_is_divided_by_its_pages(numbers):
    database, _ = numbers
    with DatabaseSource(database, SHARED_SCHEMA).pinned() as now:
        parts = now.addresses()
        pages = [part.pages for part in parts]
        read = [len(table["x"]) for part in parts for table in part.tables(10_000)]
    assert len(parts) > 2
    assert all(isinstance(part, SharedSnapshot) for part in parts)
    assert [first for first, _ in pages[1:]] == [end for _, end in pages[:-1]]
    assert (pages[0][0], pages[-1][1]) == (0, None)
    assert sum(read) == N - N // 10
    assert repr(parts[0]) == "<SharedSnapshot>"


@pytest.mark.postgres
def test_a_snapshot_whose_session_has_ended_is_a_named_error(numbers):
    database, _ = numbers
    with DatabaseSource(database, SHARED_SCHEMA).pinned() as now:
        part = now.addresses()[0]
    with pytest.raises(SourceError, match="cannot be read, or went away"):
        part.column("x")


def test_a_database_that_shares_no_snapshot_is_refused(cluster, tmp_path):
    import sqlite3

    sqlite3.connect(tmp_path / "rows.sqlite").execute("CREATE TABLE rows (x)").connection.close()
    with pytest.raises(InputError, match="share no snapshot"):
        Rows(
            Database(url=f"sqlite:///{tmp_path}/rows.sqlite", table="rows"),
            schema=SHARED_SCHEMA,
            compute=cluster,
        )
