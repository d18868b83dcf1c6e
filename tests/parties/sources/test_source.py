"""Only rows of the period are seen, whatever they are read from; a row is in by its own date alone."""

import pickle
import sqlite3
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privada import AskOwner, CellStatistics, NearestCells, Owner
from privada.exceptions import LedgerError, SchemaError, SourceError
from privada.parties import Schema
from privada.parties.columns import Category, Date, Number
from privada.parties.rows import Rows
from privada.parties.sources import Database, Source, open_source
from privada.parties.sources.memory import ArraySource
from privada.parties.sources.source import WatchedSource, with_dates
from privada.privacy import PureDP
from privada.privacy.accounting.filters import Vintage
from privada.privacy.noise import SecureNoise

SCHEMA = Schema.of_numbers(bounds=(0, 1), width=1)


class Clock:
    """What tells files apart, as the test says."""

    now = "first"
    settled = True


@pytest.fixture
def watched():
    clock = Clock()
    inner = ArraySource(np.zeros((4, 1)), SCHEMA, None, None)
    return WatchedSource(inner, lambda: clock.now, lambda: clock.settled), clock


def test_what_stays_the_same_is_read_through(watched):
    source, _ = watched
    with source.pinned() as now:
        assert [len(table["x0"]) for table in now.tables(3)] == [3, 1]
        assert len(now.column("x0")) == 4
        assert len(now.parts()) == 1


def test_a_change_before_or_during_a_reading_is_an_error(watched):
    source, clock = watched
    with pytest.raises(SourceError, match="load the owner again"), source.pinned():
        clock.now = "second"
    with pytest.raises(SourceError, match="load the owner again"), source.pinned():
        time.sleep(0)
    with pytest.raises(SourceError, match="load the owner again"):
        source.check_unchanged()
    assert source.identity() is None


def test_what_may_change_unseen_has_no_identity(watched):
    source, clock = watched
    assert source.identity() == "first"
    clock.settled = False
    assert source.identity() is None


def test_rows_in_memory_are_always_of_one_moment():
    source = ArraySource(np.zeros((4, 1)), SCHEMA, None, None)
    with source.pinned() as now:
        assert now is source
    assert source.identity() is None
    source.check_unchanged()


YEAR = Vintage(of="rows", name="2026", column="day", since="2026-01-01", until="2027-01-01")
NEXT = Vintage(of="rows", name="2027", column="day", since="2027-01-01", until="2028-01-01")
DAYS = ["2025-12-31", "2026-01-01", "2026-12-31", "2027-01-01", None, "1500-01-01", "2026-06-01"]
FRAME = pd.DataFrame(
    {
        "x": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        "ward": list("aabbaba"),
        "who": ["p", "q", "q", "p", "q", "p", "q"],
    }
)
TABLE = pa.table(FRAME).append_column(
    "day", pa.array([None if day is None else np.datetime64(day, "D").item() for day in DAYS], pa.date32())
)
VINTAGE_SCHEMA = Schema(columns=[Number(name="x", low=0, high=9), Category(name="ward", values=("a", "b"))])
PERSONS = Schema(columns=VINTAGE_SCHEMA.columns, person_id="who", max_rows=2)


@pytest.fixture(params=["table", "pandas", "polars", "lazy", "parquet", "csv", "folder", "sqlite"])
def data(request, tmp_path):
    kind = request.param
    if kind == "parquet":
        pq.write_table(TABLE, tmp_path / "rows.parquet", row_group_size=2)
        return tmp_path / "rows.parquet"
    if kind in ("csv", "folder"):
        (tmp_path / "rows").mkdir()
        TABLE.to_pandas().to_csv(tmp_path / "rows/rows.csv", index=False)
        return tmp_path / "rows" if kind == "folder" else tmp_path / "rows/rows.csv"
    if kind == "sqlite":
        with sqlite3.connect(tmp_path / "rows.sqlite") as made:
            TABLE.to_pandas().astype({"day": str}).replace("None", None).to_sql("rows", made, index=False)
        made.close()
        return Database(url=f"sqlite:///{tmp_path}/rows.sqlite", table="rows")
    frames = {"table": lambda: TABLE, "pandas": TABLE.to_pandas}
    if kind in frames:
        return frames[kind]()
    polars = pytest.importorskip("polars")
    frame = polars.from_arrow(TABLE)
    return frame.lazy() if kind == "lazy" else frame


def numbers(rows):
    return sorted(rows.gathered().X[:, 0].tolist())


def test_only_rows_of_the_period_are_there(data):
    rows = Rows(data, schema=VINTAGE_SCHEMA, vintage=YEAR)
    assert numbers(rows) == [1, 2, 6]
    assert rows.check() == 3
    only = rows.reading(features=frozenset({0}), label=False)
    assert only.total(lambda batch: batch.X.astype(np.int64).sum(axis=0))[0] == 9
    assert numbers(Rows(data, schema=VINTAGE_SCHEMA, vintage=NEXT)) == [3]


def test_wards_stay_with_their_rows(data):
    X = Rows(data, schema=VINTAGE_SCHEMA, vintage=YEAR).gathered().X
    assert sorted(map(tuple, X.tolist())) == [(1, 1, 0), (2, 0, 1), (6, 1, 0)]


def test_the_bound_on_a_persons_rows_counts_those_of_the_vintage(data):
    rows = Rows(data, schema=PERSONS, vintage=YEAR, noise=SecureNoise())
    with rows.pinned() as now:
        kept = numbers(now)
    assert len(kept) == 2  # three rows of one person in the period, at most two count
    assert set(kept) < {1.0, 2.0, 6.0}


def test_a_declared_date_may_be_a_feature_too():
    dated = Schema(columns=[*VINTAGE_SCHEMA.columns, Date(name="day", first="2020-01-01", last="2030-01-01")])
    assert numbers(Rows(TABLE, schema=dated, vintage=YEAR)) == [1, 2, 6]  # the missing one is not in it


def test_times_are_taken_in_utc_and_the_last_moment_belongs_to_one_vintage():
    moments = pd.to_datetime(
        ["2026-12-31T23:59:59.999999Z", "2027-01-01T00:00:00Z", "2027-01-01T00:30:00+01:00"],
        format="ISO8601",
        utc=True,
    )
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "ward": ["a"] * 3, "day": moments})
    assert numbers(Rows(frame, schema=VINTAGE_SCHEMA, vintage=YEAR)) == [1, 3]
    assert numbers(Rows(frame, schema=VINTAGE_SCHEMA, vintage=NEXT)) == [2]


def test_every_row_with_a_date_is_in_one_of_adjacent_vintages():
    rng = np.random.default_rng(0)
    micros = rng.integers(
        np.datetime64("2025-12-30", "us").astype(int), np.datetime64("2027-01-03", "us").astype(int), 999
    )
    edges = np.array(["2026-01-01", "2027-01-01"], dtype="datetime64[us]")
    days = np.concatenate([micros.astype("datetime64[us]"), edges, edges - 1])
    frame = pd.DataFrame({"x": 1.0, "ward": "a", "day": days})
    old = Vintage(of="rows", name="old", column="day", since="0001-01-01", until="2026-01-01")
    found = [Rows(frame, schema=VINTAGE_SCHEMA, vintage=each).check() for each in (old, YEAR, NEXT)]
    assert sum(found) == len(frame)
    assert found[1] == int(((days >= edges[0]) & (days < edges[1])).sum())


@pytest.mark.parametrize(
    ("schema", "column", "said"),
    [
        (VINTAGE_SCHEMA, "x", "to be of kind date"),
        (PERSONS, "who", "Expected a column of dates"),
        (VINTAGE_SCHEMA, "nowhere", "lacks columns of the schema: nowhere"),
    ],
)
def test_a_column_that_is_no_date_is_named(schema, column, said):
    wrong = Vintage(of="rows", name="2026", column=column, since="2026-01-01", until="2027-01-01")
    with pytest.raises(SchemaError, match=said):
        Rows(TABLE, schema=schema, vintage=wrong, noise=SecureNoise())


def test_text_that_is_no_date_is_an_error_without_its_value():
    frame = pd.DataFrame({"x": [1.0], "ward": ["a"], "day": ["secret"]})
    with pytest.raises(SchemaError) as error:
        Rows(frame, schema=VINTAGE_SCHEMA, vintage=YEAR).check()
    assert "secret" not in str(error.value)


def test_arrays_have_no_names():
    with pytest.raises(SchemaError, match="beside a vintage"):
        Rows(np.zeros((2, 2)), schema=VINTAGE_SCHEMA, vintage=YEAR)


def test_what_is_remembered_of_rows_is_of_the_vintage(tmp_path):
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    sources = [
        open_source(tmp_path / "rows.parquet", VINTAGE_SCHEMA, None, None, each) for each in (YEAR, NEXT)
    ]
    assert all(isinstance(part, Source) for part in pickle.loads(pickle.dumps(sources[0].addresses())))
    assert with_dates(VINTAGE_SCHEMA, YEAR).needed == ("x", "ward", "day")
    one, other = (str(source._with(source)._vintage) for source in sources)
    assert one != other


def test_an_owner_answers_from_its_vintage_alone_and_another_period_is_another_budget():
    settings = {"schema": VINTAGE_SCHEMA, "budget": PureDP(epsilon=1000, relation="add/remove")}
    owner = Owner(TABLE, dataset="rows-2026", vintage=YEAR, **settings)
    cells = NearestCells(centers=np.array([[1.0, 0, 0], [9.0, 0, 0]]))
    asked = CellStatistics(tables=(cells,), guarantee=PureDP(epsilon=200, relation="add/remove"))
    release = owner.answer(AskOwner("x", asked).question)
    assert sum(np.ravel(release[next(iter(release.payload))])) == 3
    assert release.receipt.dataset == "rows-2026"
    with pytest.raises(LedgerError, match="cannot become"):
        Owner(TABLE, dataset="rows-2026", ledger=owner.ledger, **settings)
