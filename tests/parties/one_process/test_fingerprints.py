"""Rows are recognised in whatever form they come, and nothing can be made of their fingerprints."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privada.parties.one_process.recognition import RowHasher, digest_rows

ROWS = np.random.default_rng(0).normal(size=(40, 3)) * [1, 100, 1e-3]


@pytest.fixture
def hasher():
    return RowHasher()


def forms():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    yield "a copy", ROWS.copy()
    yield "another order", ROWS[np.random.default_rng(1).permutation(40)]
    yield "rows twice", np.vstack([ROWS, ROWS[:5]])
    yield "columns contiguous", np.asfortranarray(ROWS)
    yield "single precision", ROWS.astype(np.float32)
    yield "a list", ROWS.tolist()
    yield "objects", ROWS.astype(object)
    yield "texts of numbers", ROWS.astype(str)
    yield "pandas", pandas.DataFrame(ROWS, columns=list("abc"))
    yield "polars", polars.DataFrame(ROWS, schema=["a", "b", "c"])


def test_the_same_rows_in_another_form_are_the_same(hasher):
    for form, rows in forms():
        assert np.array_equal(hasher.hash_rows(rows), hasher.hash_rows(ROWS)), form


def test_no_row_decides_for_another_what_its_fingerprint_is():
    """Not even one whose text makes a column of numbers a column of words: searches hold rows out by it."""
    rows = np.array([["1", 2.0], ["2", None], ["3", 4.0], ["many", 5.0]], dtype=object)
    alone, beside = (digest_rows(some, key=b"public") for some in (rows[:3], rows))
    assert np.array_equal(alone, beside[:3])
    assert len(set(beside.tolist())) == 4


BIG = 2**53 + 1
VALUES = st.one_of(
    st.integers(-(2**70), 2**70),
    st.integers(2**53, 2**63 - 1),
    st.floats(width=64),
    st.booleans(),
    st.none(),
    st.text(max_size=3),
    st.sampled_from(["1", "0.5", "True", "nan", "many", str(BIG)]),
)
TABLES = st.integers(1, 3).flatmap(lambda d: st.lists(st.tuples(*[VALUES] * d), min_size=2, max_size=6))
HALF_WAY = st.integers(0, 1000).map(lambda steps: 2**53 + 2**29 + 1 + 2**31 * steps)
NUMBERS = st.lists(st.integers(-(2**63), 2**63 - 1) | HALF_WAY, min_size=2, max_size=6)


def digests(rows):
    return digest_rows(rows, key=b"public")


@given(TABLES)
def test_one_row_more_changes_the_fingerprint_of_no_other(rows):
    """In a list, an array of objects, and a frame, whatever type the last row makes of a column."""
    pandas = pytest.importorskip("pandas")
    rows = [list(row) for row in rows]
    expected = digests(rows)
    assert np.array_equal(digests(rows[:-1]), expected[:-1])
    assert np.array_equal(digests(np.array(rows, dtype=object)), expected)
    frames = [pandas.DataFrame(some, dtype=object).convert_dtypes() for some in (rows, rows[:-1])]
    assert np.array_equal(digests(frames[0])[:-1], digests(frames[1]))


@given(NUMBERS)
def test_whole_numbers_are_the_same_beside_a_fraction(values):
    """NumPy makes doubles of all of them then, and rounds those above 2^53."""
    polars = pytest.importorskip("polars")
    whole = np.array(values, dtype=np.int64)[:, None]
    beside = np.vstack([whole, [[0.5]]])
    assert beside.dtype == np.float64
    expected = digests(beside)[:-1]
    for form in (whole, whole.astype(object), whole.tolist(), polars.DataFrame(whole)):
        assert np.array_equal(digests(form), expected)
    if (whole >= 0).all():
        assert np.array_equal(digests(whole.astype(np.uint64)), expected)


def test_rows_of_large_whole_numbers_are_recognised_beside_a_fraction(hasher):
    # Rounded to doubles they are half-way between two numbers of single precision, as they are they are not.
    whole = 2**53 + 2**29 + 1 + 2**31 * np.arange(2000)[:, None]
    beside = np.vstack([whole, [[0.5]]])
    assert np.isin(hasher.hash_rows(whole), hasher.hash_rows(beside)).all()


def test_dates_are_the_same_in_every_unit_and_beside_a_word():
    pandas = pytest.importorskip("pandas")
    dates = pandas.date_range("2020-01-01", periods=3)
    frame = pandas.DataFrame({"day": dates})
    mixed = pandas.DataFrame({"day": [*dates, "never"]}, dtype=object)
    assert np.array_equal(digests(frame), digests(mixed)[:-1])
    assert np.array_equal(digests(frame), digests(frame.to_numpy().astype("datetime64[s]")))
    gaps = pandas.DataFrame({"day": [*dates, pandas.NaT]})
    assert np.array_equal(digests(gaps)[:-1], digests(frame))


def test_numbers_are_the_same_in_every_type(hasher):
    whole = np.arange(12).reshape(6, 2)
    expected = hasher.hash_rows(whole)
    for kind in (np.int8, np.uint16, np.float32, np.float64, object):
        assert np.array_equal(hasher.hash_rows(whole.astype(kind)), expected)


def test_zeros_and_missing_values_are_one_each(hasher):
    nan = np.frombuffer(np.uint64(0xFFF8000000000001).tobytes(), dtype=np.float64)[0]
    assert np.array_equal(hasher.hash_rows([[-0.0, np.nan]]), hasher.hash_rows([[0.0, nan]]))
    words = np.array([["a", None], ["b", 1.5]], dtype=object)
    other = np.array([["a", float("nan")], ["b", 1.5]], dtype=object)
    assert np.array_equal(hasher.hash_rows(words), hasher.hash_rows(other))


def test_what_differs_is_told_apart(hasher):
    assert len(hasher.hash_rows(ROWS)) == 40
    assert not np.isin(hasher.hash_rows(ROWS + 1e-3), hasher.hash_rows(ROWS)).any()
    assert not np.isin(hasher.hash_rows(ROWS[:, :2]), hasher.hash_rows(ROWS)).any()
    words = np.array([["a", 1], ["b", 1]], dtype=object)
    assert len(hasher.hash_rows(words)) == 2
    assert not np.isin(hasher.hash_rows(ROWS, kind="person"), hasher.hash_rows(ROWS)).any()
    assert len(hasher.hash_rows(np.empty((0, 3)))) == 0


def test_another_process_makes_others(hasher):
    assert not np.isin(RowHasher().hash_rows(ROWS), hasher.hash_rows(ROWS)).any()


@pytest.mark.parametrize("attempt", [pickle.dumps, copy.copy, copy.deepcopy])
def test_the_key_stays(hasher, attempt):
    with pytest.raises(TypeError, match="keyed for one process"):
        attempt(hasher)
    assert repr(hasher) == "<RowHasher>"
    assert not hasattr(hasher, "__dict__")
