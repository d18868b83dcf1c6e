import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privada.exceptions import SchemaError
from privada.parties import Number, Rows, Schema
from privada.parties.sources import Source
from privada.privacy import SecureNoise


def test_no_person_has_more_rows_than_the_bound(rehearsal):
    people = np.repeat([7, 8, 9], [1, 5, 40])
    X = np.arange(46.0)[:, None]
    schema = Schema(columns=[Number(name="x", low=0, high=100)], person_id="who", max_rows=3)
    rows = Rows(X, schema=schema, person=people, noise=rehearsal)
    kept = np.concatenate([b.X[:, 0] for b in rows.batches()]).astype(int)
    counts = np.bincount(people[kept], minlength=10)
    assert counts[7:].tolist() == [1, 3, 3]
    again = np.concatenate([b.X[:, 0] for b in rows.batches()]).astype(int)
    assert np.array_equal(kept, again), "the choice is made once"
    with pytest.raises(SchemaError, match="noise source"):
        Rows(X, schema=schema, person=people)


@pytest.mark.statistical
def test_dropped_rows_are_chosen_at_random(rehearsal):
    """Each of 10 rows of one person is kept with probability 3/10; 6 standard errors on 2,000 runs."""
    schema = Schema(columns=[Number(name="x", low=0, high=100)], person_id="who", max_rows=3)
    X, hits = np.arange(10.0)[:, None], np.zeros(10)
    for _ in range(2000):
        rows = Rows(X, schema=schema, person=np.zeros(10), noise=rehearsal)
        hits[next(rows.batches()).X[:, 0].astype(int)] += 1
    assert np.all(np.abs(hits / 2000 - 0.3) < 6 * np.sqrt(0.21 / 2000))


@pytest.mark.parametrize(
    "people",
    [
        np.array([np.nan, np.nan, 1.0]),
        np.array([None, "a", "b"], dtype=object),
        np.array(["NaT", "NaT", "2020-01-01"], dtype="datetime64[D]"),
    ],
)
def test_a_missing_person_is_refused_whatever_the_column_type(people, rehearsal):
    """Two rows without a person are not one person: adding one could drop the other."""
    schema = Schema(columns=[Number(name="x", low=0, high=1)], person_id="who", max_rows=1)
    with pytest.raises(SchemaError, match="missing person"):
        Rows(np.zeros((3, 1)), schema=schema, person=people, noise=rehearsal).check()


def test_a_file_whose_persons_changed_is_not_read_with_the_old_choice(tmp_path):
    """One person must not get more rows than allowed because the file was refreshed meanwhile."""
    path = tmp_path / "rows.parquet"
    schema = Schema(columns=[Number(name="a", low=0, high=1)], person_id="who", max_rows=1)
    pq.write_table(pa.table({"a": [0.1] * 10, "who": list(range(10))}), path)
    rows = Rows(path, schema=schema, noise=SecureNoise())
    assert rows.check() == 10
    pq.write_table(pa.table({"a": [0.1] * 10, "who": [0] * 10}), path)
    with pytest.raises(SchemaError, match="load the owner again"):
        rows.check()
    person = np.arange(5)
    rows = Rows(np.zeros((5, 1)), person=person, y=None, schema=schema, noise=SecureNoise())
    rows.check()
    person[:] = 0
    with pytest.raises(SchemaError, match="load the owner again"):
        rows.check()


FEW = Schema(columns=[Number(name="x", low=0, high=100)], person_id="who", max_rows=1)


@pytest.mark.parametrize(
    ("people", "word"),
    [
        (np.array([16_777_216, 16_777_217, 3], dtype=np.float32), r"float32 too .* 2\*\*24"),
        (np.array([2048, 2049, 3], dtype=np.float16), r"float16 too .* 2\*\*11"),
        (np.array([2.0**53, 1.0, 2.0]), r"float64 too .* 2\*\*53"),
        (np.array([np.inf, 1.0, 2.0]), "float64"),
        (np.array([0.1, 0.2, 0.3], dtype=np.float32), "fractions"),
        ([2**53 + 1, 2**53, 1.0], "several types"),
        ([np.float32(2**24), np.float32(1), np.float32(2)], r"float32 too .* 2\*\*24"),
        ([1, "1", "2"], "several types"),
        ([True, 1, 2], "several types"),
        (np.array([1, "1", 2], dtype=object), "several types"),
        (np.array([1j, 2j, 3j]), "complex"),
    ],
)
def test_persons_who_may_have_become_one_are_refused(people, word, rehearsal):
    """Merged persons share their rows: whether one is there would decide which rows of the other count."""
    with pytest.raises(SchemaError, match=word):
        Rows(np.zeros((3, 1)), schema=FEW, person=people, noise=rehearsal).check()


def test_float_persons_of_a_table_are_refused_alike(tmp_path, rehearsal):
    table = pa.table({"x": [0.0, 0.0], "who": pa.array([16_777_216.0, 16_777_216.0], pa.float32())})
    pq.write_table(table, tmp_path / "rows.parquet")
    for data in (table, tmp_path / "rows.parquet", table.to_pandas(), pl.from_arrow(table)):
        with pytest.raises(SchemaError, match="float32"):
            Rows(data, schema=FEW, noise=rehearsal).check()


@pytest.mark.parametrize(
    "people",
    [
        [2**63, 2**63 + 1, -1],
        [2**70, 2**70 + 1, 1],
        ["a", "a\0", "b"],
        np.array([2**53, 2**53 + 1, 5]),
        np.array([1, 2, 3], dtype=np.float32),
        np.array([1.0, 2.0, 3.0], dtype=object),
        (b"a", b"a\0", b""),
    ],
)
def test_persons_are_told_apart_exactly(people, rehearsal):
    assert Rows(np.zeros((3, 1)), schema=FEW, person=people, noise=rehearsal).check() == 3


def test_persons_that_floats_cannot_tell_apart_are_refused(rehearsal):
    schema = Schema(columns=[Number(name="x", low=0, high=100)], person_id="who", max_rows=1)
    with pytest.raises(SchemaError, match="too large to tell apart"):
        Rows(
            np.zeros((2, 1)), schema=schema, person=np.array([2.0**53, 2.0**53 + 1]), noise=rehearsal
        ).check()


class _Parts(Source):
    """Two parts, of which the second has no rows; a source without rows knows no type."""

    def __init__(self, people):
        self._people = people

    def tables(self, size, names=None):
        if len(self._people):
            yield {"x": np.zeros(len(self._people)), "who": self._people}

    def column(self, name):
        return self._people if len(self._people) else np.zeros(0)

    def parts(self):
        return [self, _Parts(np.zeros(0))]


def test_a_part_without_rows_does_not_change_the_type_of_persons(rehearsal):
    """As floats, large numbers are refused: an answer on a live table would fail after its charge."""
    people = np.array([2**60, 2**60 + 1])
    assert Rows(_Parts(people), schema=FEW, noise=rehearsal).check() == 2
