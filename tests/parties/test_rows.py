"""Totals over batches: the same bits however rows are cut, and nothing but integers is added."""

import threading
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privada.exceptions import AnswerError, SchemaError
from privada.parties import Category, Number, Rows, Schema
from privada.parties.compute import batch as batch_module
from privada.parties.sources import Source
from privada.privacy import SecureNoise
from privada.privacy.bounds import Grid

NUMBERS = Schema(columns=[Number(name=f"x{i}", low=-9, high=9) for i in range(3)])
LABELLED = Schema(columns=NUMBERS.columns, label=Category(name="y", values=("a", "b")))
GRID = Grid(-40)


def labelled_rows(n, seed=0):
    rng = np.random.default_rng(seed)
    return Rows(rng.normal(size=(n, 3)), schema=LABELLED, y=np.array(["a", "b"])[rng.integers(2, size=n)])


def sums(batch):
    """Counts by class and sums by class, in whole steps."""
    total = np.zeros((2, 3), dtype=np.int64)
    np.add.at(total, batch.labels, GRID.truncate(batch.X))
    return {"counts": np.bincount(batch.labels, minlength=2), "sums": total}


def assert_same(mine, other):
    assert mine.keys() == other.keys()
    for name, value in mine.items():
        assert value.dtype == np.int64
        assert np.array_equal(value, other[name]), name


@settings(max_examples=40)
@given(st.integers(0, 60), st.integers(1, 70), st.integers(1, 200))
def test_a_total_has_the_same_bits_for_every_split(n, size, numbers):
    rows = labelled_rows(n)
    whole = rows.total(sums)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_module, "BATCH", size)
        patch.setattr(batch_module, "AT_ONCE", 100)
        assert_same(whole, rows.total(sums))
        assert_same(whole, rows.total(sums, numbers=numbers))
        assert_same(whole, rows.prepared(lambda batch: batch).total(sums))
        assert_same(whole, sums(rows.gathered()))


def test_a_total_has_the_same_bits_for_every_order_and_source(tmp_path, monkeypatch):
    X = np.random.default_rng(1).normal(size=(20_000, 3))
    pq.write_table(pa.table({f"x{i}": X[:, i] for i in range(3)}), tmp_path / "x.parquet", row_group_size=700)

    def steps(batch):
        return GRID.truncate(batch.X).sum(axis=0)

    found = [Rows(data, schema=NUMBERS).total(steps) for data in (X, X[::-1], tmp_path / "x.parquet")]
    monkeypatch.setattr(batch_module, "BATCH", 4999)
    found += [Rows(data, schema=NUMBERS).total(steps) for data in (X, tmp_path / "x.parquet")]
    for other in found[1:]:
        assert np.array_equal(found[0], other)


def test_no_rows_give_zeros_of_the_same_shape():
    nothing = labelled_rows(0)
    assert {name: value.tolist() for name, value in nothing.total(sums).items()} == {
        "counts": [0, 0],
        "sums": [[0, 0, 0], [0, 0, 0]],
    }
    assert (
        nothing.prepared(lambda batch: batch.X).total(lambda X: X.astype(int).sum(axis=0)).tolist() == [0] * 3
    )
    everything = nothing.gathered()
    assert everything.X.shape == (0, 3)
    assert everything.labels.dtype == np.int64
    assert Rows(np.zeros((0, 3)), schema=NUMBERS).gathered().y is None


def test_an_answer_is_always_asked_about_no_rows_too():
    """An answerer that fails on none would tell an owner of none from others; here it fails at everybody."""

    def needs_rows(batch):
        return np.array([batch.X[0, 0]]).astype(np.int64)

    with pytest.raises(IndexError):
        labelled_rows(5).total(needs_rows)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda batch: batch.X.sum(axis=0), "not integers"),
        (lambda batch: np.zeros(len(batch), dtype=np.int64), "another shape"),
        (lambda _: np.ones(1, dtype=np.int64), "not zero"),
        (lambda batch: {"a": np.zeros(1, dtype=np.int64)} if batch else {}, "other names"),
        (lambda batch: {"a": batch.X.sum(axis=0)}, "not integers"),
        (lambda batch: np.zeros(1, dtype=np.uint64 if batch else np.int64), "not integers"),
    ],
)
def test_what_is_no_sum_of_integers_is_refused(wrong, message):
    """Floats depend on the order in which they are added, shapes and constants on the number of batches."""
    with pytest.raises(AnswerError, match=message):
        labelled_rows(5).total(wrong)


def test_integers_of_fewer_bits_are_added_in_64():
    X = np.full((1000, 3), 9.0)
    rows = Rows(X, schema=NUMBERS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_module, "BATCH", 10)
        found = rows.total(lambda batch: batch.X.astype(np.int8).sum(axis=0, dtype=np.int8))
    assert found.dtype == np.int64
    assert found.tolist() == [9000] * 3


def test_what_a_function_returns_is_not_written_to():
    kept = np.zeros(3, dtype=np.int64)
    rows = labelled_rows(7)
    found = rows.total(lambda batch: GRID.truncate(batch.X).sum(axis=0) if len(batch) else kept)
    assert found.any()
    assert not kept.any()


@pytest.mark.parametrize("named", [False, True])
def test_a_large_total_takes_the_memory_of_two(named, monkeypatch):
    """The total, and what is made of one batch; the one before it is gone."""
    monkeypatch.setattr(batch_module, "BATCH", 10)
    rows = labelled_rows(50)

    def large(batch):
        found = np.zeros(500_000, dtype=np.int64)
        found[0] = len(batch)
        return {"a": found} if named else found

    tracemalloc.start()
    found = rows.total(large)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found["a"] if named else found)[0] == 50
    assert most < 2.3 * 8 * 500_000


def test_the_best_are_kept_for_every_split(monkeypatch):
    rows = labelled_rows(500)

    def largest(batch):
        return np.sort(np.r_[np.full(4, -np.inf), batch.X[:, 0]])[-4:]

    def merge(one, other):
        return np.sort(np.r_[one, other])[-4:]

    whole = rows.merged(largest, merge)
    assert whole.tolist() == np.sort(rows.gathered().X[:, 0])[-4:].tolist()
    for size in (1, 3, 77, 1000):
        monkeypatch.setattr(batch_module, "BATCH", size)
        assert rows.merged(largest, merge).tolist() == whole.tolist()
    assert np.isinf(labelled_rows(0).merged(largest, merge)).all()


def test_prepared_batches_are_read_once_and_totalled_again_and_again(monkeypatch):
    monkeypatch.setattr(batch_module, "BATCH", 10)
    rows, seen = labelled_rows(35), []

    def prepare(batch):
        seen.append(len(batch))
        return GRID.truncate(batch.X)

    prepared = rows.prepared(prepare)
    first = prepared.total(lambda steps: steps.sum(axis=0))
    assert seen == [0, 10, 10, 10, 5]
    assert np.array_equal(prepared.total(lambda steps: 2 * steps.sum(axis=0)), 2 * first)
    assert len(seen) == 5


def failing(batch):
    if len(batch):
        raise ArithmeticError("in an answerer")
    return np.zeros(1, dtype=np.int64)


@pytest.mark.parametrize("n", [3, 20_000])
def test_a_failing_function_surfaces_as_it_is_and_leaves_no_thread(n):
    before = threading.active_count()
    for run in (
        lambda rows: rows.total(failing),
        lambda rows: rows.merged(failing, lambda a, _: a),
        lambda rows: rows.prepared(lambda batch: batch).total(failing),
    ):
        with pytest.raises(ArithmeticError, match="in an answerer"):
            run(labelled_rows(n))
    assert threading.active_count() == before


def test_rows_that_cannot_be_read_surface_as_they_are(monkeypatch):
    """Also when they are read in the background."""
    monkeypatch.setattr(batch_module, "BATCH", 5000)
    X = np.zeros((20_000, 3))
    X[-1, 0] = np.nan
    with pytest.raises(SchemaError, match="'x0' holds a missing value"):
        Rows(X, schema=NUMBERS).total(lambda batch: np.zeros(1, dtype=np.int64) * len(batch))


def test_a_batch_has_parts_that_fit_whatever_is_made_of_a_row(monkeypatch):
    monkeypatch.setattr(batch_module, "AT_ONCE", 100)
    batch = batch_module.Batch(np.arange(7.0)[:, None], np.arange(7))
    for numbers, sizes in ((30, [3, 3, 1]), (10_000, [1] * 7), (0, [7])):
        parts = list(batch.parts(numbers))
        assert [len(part) for part in parts] == sizes
        assert np.concatenate([part.y for part in parts]).tolist() == list(range(7))


def test_reprs_show_nothing(schema, table):
    rows = Rows(pd.DataFrame(table), schema=schema)
    assert repr(rows) == "<Rows>"
    assert repr(next(rows.batches())) == "<Batch>"
    assert repr(rows.prepared(lambda batch: batch.X)) == "<Prepared>"


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
