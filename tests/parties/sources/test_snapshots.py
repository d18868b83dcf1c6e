"""A PostgreSQL snapshot that the workers of a real cluster read, while others write."""

import numpy as np
import psycopg
import pytest

from privada.audit.transcript import coupled
from privada.exceptions import InputError, SourceError
from privada.parties import Number, Rows, Schema
from privada.parties.compute.threads import Threads
from privada.parties.sources import Database, snapshots
from privada.parties.sources.databases import DatabaseSource
from privada.parties.sources.snapshots import SharedSnapshot
from tests.clusters import running_cluster

SCHEMA = Schema(columns=[Number(name="x", low=0, high=10_000)])
PERSONS = Schema(columns=SCHEMA.columns, person_id="who", max_rows=2)
N = 3000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running_cluster(tmp_path_factory.mktemp("tls")) as (found, _):
        yield found


@pytest.fixture
def numbers(postgres, monkeypatch):
    """A table of many pages, with deleted rows, an index that tempts the planner, and a view."""
    monkeypatch.setattr(snapshots, "PART_PAGES", 4)
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
@pytest.mark.parametrize("schema", [SCHEMA, PERSONS], ids=["rows", "persons"])
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
    rows = Rows(database, schema=SCHEMA, compute=cluster)
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
    with DatabaseSource(database, SCHEMA).pinned() as now:
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
    with DatabaseSource(database, SCHEMA).pinned() as now:
        part = now.addresses()[0]
    with pytest.raises(SourceError, match="cannot be read, or went away"):
        part.column("x")


def test_a_database_that_shares_no_snapshot_is_refused(cluster, tmp_path):
    import sqlite3

    sqlite3.connect(tmp_path / "rows.sqlite").execute("CREATE TABLE rows (x)").connection.close()
    with pytest.raises(InputError, match="share no snapshot"):
        Rows(Database(url=f"sqlite:///{tmp_path}/rows.sqlite", table="rows"), schema=SCHEMA, compute=cluster)
