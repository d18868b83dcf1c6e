"""Totals over batches: the same bits however rows are cut, and nothing but integers is added."""

import threading
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privada.exceptions import AnswerError, SchemaError
from privada.parties import Category, Number, Rows, Schema
from privada.parties.compute import batch as batch_module
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
