import sqlite3
import sys
from contextlib import closing

import pytest

from privada.exceptions import InputError, SourceError
from privada.parties import Number, Schema
from privada.parties.sources.databases import Database
from privada.parties.sources.sessions import ENGINES

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
