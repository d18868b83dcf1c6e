# ruff: noqa: DTZ001 - columns hold times without a zone, too
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privada.exceptions import SchemaError
from privada.parties import Category, Date, Number, Rows, Schema

BORN = Date(name="born", first="1900-01-01", last="2000-01-01", missing=True)
SEEN = Date(name="seen", first=datetime(2024, 1, 1, 12), last=datetime(2024, 2, 1))
GRADE = Category(name="grade", values=("low", "middle", "high"), ordered=True, missing=True)
KINDS = Schema(
    columns=[
        BORN,
        SEEN,
        GRADE,
        Number(name="visits", low=0, high=9, whole=True),
        Category(name="ward", values=("a", "b"), missing=True),
        Number(name="weight", low=0, high=200, missing=True),
    ]
)


def test_dates_are_days_between_public_bounds():
    days = [date(1900, 1, 3), None, date(1850, 1, 1), date(2050, 1, 1)]
    middle, last = BORN.high / 2, BORN.high
    expected = [[2, 0], [middle, 1], [0, 0], [last, 0]]
    zoned = datetime(1900, 1, 3, 1, tzinfo=timezone(timedelta(hours=1)))
    for values in (
        np.array(days, dtype=object),
        np.array(["1900-01-03", "NaT", "1850-01-01", "2050-01-01"], dtype="datetime64[s]"),
        np.array(["1900-01-03", None, "1850-01-01", "2050-01-01T12:00"], dtype=object),
        np.array(
            [zoned, float("nan"), datetime(1850, 1, 1, tzinfo=UTC), np.datetime64("2050")], dtype=object
        ),
    ):
        assert BORN.encode(values).tolist() == expected
    assert BORN.limits() == ((0.0, 36524.0), (0.0, 1.0))


@pytest.mark.parametrize("unit", ["D", "h", "s", "ms", "us"])
@pytest.mark.parametrize("sign", [-1, 1])
def test_dates_so_far_away_that_a_finer_unit_overflows_are_clipped(unit, sign):
    """In microseconds they would be another time, perhaps one within the bounds."""
    far = np.array([sign * (2**63 - 2)], dtype="int64").view(f"datetime64[{unit}]")
    assert BORN.encode(far)[0, 0] == (0 if sign < 0 else BORN.high)


def test_a_time_has_fractions_of_days():
    assert SEEN.encode(np.array(["2024-01-01T18:00"], dtype="datetime64[ns]")).tolist() == [[0.25]]


@pytest.mark.parametrize(
    "values",
    [np.array([1, 2]), np.array(["soon", "later"]), np.array([b"2024-01-01"]), np.array([3], object)],
)
def test_what_is_no_date_is_refused_without_showing_it(values):
    with pytest.raises(SchemaError, match="'born' holds something that is not a date") as caught:
        BORN.encode(values)
    assert "soon" not in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([date(2024, 1, 1)]),
        pa.array([datetime(2024, 1, 1)], pa.timestamp("ns")),
        pa.array([datetime(2024, 1, 1)], pa.timestamp("s", "UTC")),
        pa.array([timedelta(days=1)]),
    ],
)
def test_a_datetime_declared_as_a_number_is_refused(values):
    """It was read as a count of whatever unit the file happened to have, and clipped."""
    schema = Schema(columns=[Number(name="when", low=0, high=1e6)])
    for data in (pa.table({"when": values}), pa.table({"when": values}).to_pandas()):
        with pytest.raises(SchemaError, match="'when' holds dates or times; declare it with kind"):
            Rows(data, schema=schema).check()
    for value in (np.datetime64("2024-01-01"), date(2024, 1, 1), pd.Timestamp("2024-01-01")):
        with pytest.raises(SchemaError, match="'when' holds dates or times"):
            schema.encode({"when": np.array([1.0, value], dtype=object)})


def test_dates_as_categories_are_matched_by_their_text():
    column = Category(name="d", values=("2024-01-01", "2024-01-02T12:00"), missing=True)
    times = [datetime(2024, 1, 1), datetime(2024, 1, 2, 12), None]
    expected = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert column.encode(np.array(times, dtype="datetime64[us]")).tolist() == expected
    assert column.encode(np.array(times, dtype=object)).tolist() == expected
    (batch,) = Rows(pa.table({"d": pa.array(times)}), schema=Schema(columns=[column])).batches()
    assert batch.X.tolist() == expected


def test_whole_numbers_refuse_fractions():
    visits = Number(name="visits", low=0, high=9, whole=True, missing=True)
    assert visits.encode(np.array([1, 12.0, np.nan])).tolist() == [[1, 0], [9, 0], [4.5, 1]]
    with pytest.raises(SchemaError, match="'visits' holds a fraction"):
        visits.encode(np.array([1.5]))


def test_ordered_categories_are_places():
    assert GRADE.features() == ("grade", "grade is missing")
    assert GRADE.limits() == ((0.0, 2.0), (0.0, 1.0))
    found = GRADE.encode(np.array(["high", None, "low"], dtype=object))
    assert found.tolist() == [[2, 0], [1, 1], [0, 0]]
    assert GRADE.encode_label(np.array(["high", "low"])).tolist() == [2, 0]
    with pytest.raises(SchemaError, match="'grade' holds a value outside"):
        GRADE.encode(np.array(["huge"]))


@pytest.mark.parametrize(
    "bad",
    [
        {"first": "2024-02-30", "last": "2025-01-01"},
        {"first": "2025-01-01", "last": "2024-01-01"},
        {"first": 3, "last": 4},
        {"first": "2024-01-01", "last": "2024-01-01"},
    ],
)
def test_bounds_that_are_no_dates_are_refused(bad):
    with pytest.raises(SchemaError, match="'d'"):
        Date(name="d", **bad)


rows = st.fixed_dictionaries(
    {
        "born": st.none() | st.dates(date(1900, 1, 1), date(2000, 1, 1)),
        "seen": st.datetimes(datetime(2024, 1, 1, 12), datetime(2024, 2, 1)),
        "grade": st.sampled_from([None, "low", "middle", "high"]),
        "visits": st.integers(0, 9),
        "ward": st.sampled_from([None, "a", "b"]),
        "weight": st.none() | st.floats(0, 200),
    }
)


@given(st.lists(rows, min_size=1, max_size=6))
def test_what_is_decoded_is_encoded_again_to_the_same_features(lines):
    """And a learner's frame, of whatever library, has the features of the owner's rows."""
    table = pa.Table.from_pylist(lines, KINDS_ARROW)
    X = KINDS.encode(table)
    assert np.array_equal(KINDS.encode(KINDS.decode(X)), X)
    assert np.array_equal(KINDS.encode(pl.from_arrow(table)), X)
    assert np.array_equal(KINDS.encode(table.to_pandas()), X)
    (batch,) = Rows(table, schema=KINDS).batches()
    assert np.array_equal(batch.X, X)
    decoded = KINDS.decode(X).to_pylist()
    assert [row["born"] for row in decoded] == [row["born"] for row in lines]
    assert [row["grade"] for row in decoded] == [row["grade"] for row in lines]


KINDS_ARROW = pa.schema(
    {
        "born": pa.date32(),
        "seen": pa.timestamp("us"),
        "grade": pa.string(),
        "visits": pa.int64(),
        "ward": pa.string(),
        "weight": pa.float64(),
    }
)
