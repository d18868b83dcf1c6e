import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privada.audit import replay
from privada.exceptions import InputError
from privada.methods.cells import Bins, CellStatistics, NearestCells, Projected
from privada.methods.cells.owner import answer
from privada.methods.cells.questions import partition
from privada.parties import Number, Rows, Schema
from privada.parties.compute import batch as batch_module
from privada.privacy import ZCDP


def test_batches_of_any_size_give_the_same_integers(tmp_path, monkeypatch):
    """Sums are of integers, so the order and size of batches cannot move a bit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    schema = Schema(columns=[Number(name=f"x{i}", low=-9, high=9) for i in range(3)])
    question = CellStatistics(
        tables=(NearestCells(centers=rng.normal(size=(6, 3))),),
        radius=1.0,
        width=3,
        guarantee=ZCDP(rho=1, relation="add/remove"),
    )
    pq.write_table(pa.table({f"x{i}": X[:, i] for i in range(3)}), tmp_path / "x.parquet")
    found = []
    for size, data in ((1000, X), (7, X), (100, X[::-1]), (64, tmp_path / "x.parquet")):
        monkeypatch.setattr(batch_module, "BATCH", size)
        seen = {}
        answer(question, Rows(data, schema=schema), lambda n, s, seen=seen: seen.setdefault(n, s.copy()))
        found.append(seen)
    for other in found[1:]:
        assert all(np.array_equal(other[name], found[0][name]) for name in other)


def test_every_cell_is_noised_also_the_empty_ones(rehearsal):
    """Hazard 6: noising only what is there shows what is there."""
    from privada.parties.answering import answer_rows

    question = CellStatistics(
        tables=(NearestCells(centers=np.arange(50.0)[:, None]),),
        guarantee=ZCDP(rho=0.5, relation="add/remove"),
    )
    schema = Schema.of_numbers(bounds=(0, 50), width=1)
    counts = answer_rows(question, Rows(np.empty((0, 1)), schema=schema), noise=rehearsal)["counts"]
    assert np.all(counts != 0)
    assert len(set(counts.tolist())) == 50


def test_a_budget_that_needs_more_steps_than_integers_have_is_refused_before_it_is_charged():
    """So far from its centre a row is 2^97 steps, of which an integer is -2^63."""
    question = CellStatistics(
        tables=(NearestCells(centers=np.full((1, 1), 1e23)),),
        radius=1e30,
        recentred=True,
        width=1,
        count_share=1e-40,
        guarantee=ZCDP(rho=1e60, relation="add/remove"),
    )
    with pytest.raises(InputError, match="grid steps"):
        question.plan  # what an owner works out before the charge


@pytest.mark.parametrize(
    "inner", [NearestCells(centers=np.array([[0.0], [1.0]])), Bins(feature=0, edges=np.zeros(1))]
)
def test_projections_that_overflow_for_some_rows_give_each_row_one_cell(inner):
    steep = Projected(matrix=np.array([[1e308], [-1e308]]), inner=inner)
    question = CellStatistics(tables=(steep,), guarantee=ZCDP(rho=1, relation="add/remove"))
    schema = Schema.of_numbers(bounds=(-100, 100), width=2)
    rows = np.array([[0.1, 0.2], [90.0, 90.0], [90.0, -90.0], [-90.0, 90.0], [0.0, 0.0]])
    for other in range(len(rows)):
        fewer = Rows(np.delete(rows, other, axis=0), schema=schema)
        assert replay(question, Rows(rows, schema=schema), fewer).passed


def test_the_memory_of_a_projection_does_not_follow_the_number_of_rows(monkeypatch):
    """A wide matrix made an answer fail at owners of many rows only: how many, the failure told."""
    matrix = np.random.default_rng(0).normal(size=(2, 500))
    X = np.random.default_rng(1).normal(size=(3000, 2))
    cells = Projected(matrix=matrix, inner=NearestCells(centers=np.eye(500)[:3]))
    whole = cells.assign(X)
    monkeypatch.setattr(partition, "CHUNK_NUMBERS", 5000)
    cells.assign(X[:20])
    tracemalloc.start()
    assert np.array_equal(cells.assign(X), whole)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 500_000  # all projected rows are 12 MB
