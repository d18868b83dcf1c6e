"""Totals in threads: the same bits for every number of them, whatever the source."""

import dataclasses
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privada import Owner
from privada._toml import Section
from privada.audit.transcript import coupled
from privada.exceptions import AnswerError, InputError, SchemaError, StudyError
from privada.parties import Category, Number, Rows, Schema
from privada.parties.compute import Adding, Merging, read_engine
from privada.parties.compute import batch as batch_module
from privada.parties.compute.threads import Threads
from privada.parties.sources import files as dividing
from privada.privacy.bounds import Grid

SCHEMA = Schema(
    columns=[Number(name=f"x{i}", low=-9, high=9) for i in range(3)],
    label=Category(name="y", values=("a", "b")),
    person_id="who",
    max_rows=2,
)
N, GRID = 3000, Grid(-40)
RNG = np.random.default_rng(4)
TABLE = pa.table(
    {f"x{i}": RNG.normal(size=N) for i in range(3)}
    | {"y": np.array(["a", "b"])[RNG.integers(2, size=N)], "who": RNG.integers(900, size=N)}
)


@pytest.fixture(params=["table", "one file", "files", "csv"])
def source(request, tmp_path, monkeypatch):
    monkeypatch.setattr(batch_module, "BATCH", 130)
    monkeypatch.setattr(dividing, "PART_ROWS", 200)
    if request.param == "table":
        return TABLE
    if request.param == "csv":
        import pyarrow.csv

        pyarrow.csv.write_csv(TABLE, tmp_path / "rows.csv")
        return tmp_path / "rows.csv"
    cuts = [0, N] if request.param == "one file" else [0, 10, 11, 900, 2500, N]
    for i, (start, end) in enumerate(pairwise(cuts)):
        pq.write_table(TABLE.slice(start, end - start), tmp_path / f"{i}.parquet", row_group_size=70)
    return tmp_path / "0.parquet" if request.param == "one file" else tmp_path


def sums(batch):
    total = np.zeros((2, 3), dtype=np.int64)
    np.add.at(total, batch.labels, GRID.truncate(batch.X))
    return {"counts": np.bincount(batch.labels, minlength=2), "sums": total}


def rows_of(source, threads):
    return Rows(source, schema=SCHEMA, noise=coupled(3), compute=Threads(threads))


def first_three(batch):
    return np.sort(np.r_[np.full(3, -np.inf), batch.X[:, 0]])[-3:]


def merge(one, other):
    return np.sort(np.r_[one, other])[-3:]


def test_all_sums_have_the_same_bits_for_every_number_of_threads(source):
    """Also which rows of a person count: their places in all files together decide."""
    whole = Rows(TABLE, schema=SCHEMA, noise=coupled(3), compute=Threads(1)).gathered()
    for threads in (1, 2, 7):
        rows = rows_of(source, threads)
        assert np.array_equal(rows.gathered().X, whole.X)
        assert rows.check() == len(whole) < N
        found = rows.total(sums), rows.prepared(lambda batch: batch).total(sums)
        for each in found:
            for name, value in sums(whole).items():
                assert np.array_equal(each[name], value)
        assert rows.merged(first_three, merge).tolist() == first_three(whole).tolist()
        fewer = rows.at_most(500, coupled(1)).gathered()
        assert len(fewer) == 500
        expected = Rows(TABLE, schema=SCHEMA, noise=coupled(3)).at_most(500, coupled(1)).gathered()
        assert np.array_equal(fewer.X, expected.X)


def test_states_of_records_advance_where_they_are(source):
    states = rows_of(source, 3).prepared(lambda batch: GRID.truncate(batch.X))
    total = states.total(lambda steps: steps.sum(axis=0))
    later = states.advanced(lambda steps: 2 * steps).advanced(lambda steps: steps + (steps > 0))
    positive = states.total(lambda steps: (steps > 0).sum(axis=0))
    assert np.array_equal(later.total(lambda steps: steps.sum(axis=0)), 2 * total + positive)


def test_rows_that_cannot_be_read_are_named_on_every_thread(tmp_path, monkeypatch):
    monkeypatch.setattr(dividing, "PART_ROWS", 200)
    bad = TABLE.set_column(0, "x0", pa.array([float("nan")] + [0.0] * (N - 1)))
    pq.write_table(bad, tmp_path / "a.parquet", row_group_size=200)
    for threads in (1, 4):
        with pytest.raises(SchemaError, match="'x0' holds a missing value"):
            rows_of(tmp_path / "a.parquet", threads).check()


@pytest.mark.parametrize("wrong", [0, -1, 33, 1.5, True, "two"])
def test_threads_are_a_number(wrong):
    with pytest.raises(InputError, match="threads"):
        Threads(wrong)


def test_an_answer_that_would_not_fit_the_memory_is_refused_before_its_charge(monkeypatch):
    """A process that the system stops for want of memory has charged already."""
    from privada.methods import methods

    example = methods()["reweighting"].example()
    question = next(each for each in example.questions if each.kind == "reweighting.linear")
    assert question.kept_bytes == example.schema.size * (4 * question.coordinates + 24)
    budget = dataclasses.replace(question.guarantee, epsilon=9.0)
    house = Owner(**example.data, schema=example.schema, dataset="rows", budget=budget)
    monkeypatch.setattr("privada.parties.compute.threads.count_memory", lambda: question.kept_bytes)
    with pytest.raises(InputError, match="GB of prepared rows in memory"):
        house.answer(question)
    assert [line.kind for line in house.ledger.lines("rows") if line.kind == "charge"] == []
    monkeypatch.setattr("privada.parties.compute.threads.count_memory", lambda: 2 * question.kept_bytes)
    house.answer(question)


def test_integers_are_added_modulo_two_to_the_64th():
    fold = Adding()
    total = fold.begin(np.zeros(2, dtype=np.int8))
    for more in (np.array([2**63 - 1, 1]), np.array([1, -3])):
        total = fold.join(total, more)
    assert total.dtype == np.int64
    assert total.tolist() == [-(2**63), -2]


def test_names_stay_the_same():
    fold = Adding()
    total = fold.begin({"a": np.zeros(1, dtype=np.int64)})
    assert fold.join(total, {"a": np.array([4])})["a"].tolist() == [4]
    with pytest.raises(AnswerError, match="other names"):
        fold.join(total, {"b": np.array([4])})


@pytest.mark.parametrize("wrong", [np.zeros(1), np.zeros(2, dtype=np.int64), np.zeros(1, dtype=np.uint64)])
def test_anything_else_is_no_sum(wrong):
    fold = Adding()
    with pytest.raises(AnswerError, match="not integers"):
        fold.join(fold.begin(np.zeros(1, dtype=np.int64)), wrong)
    with pytest.raises(AnswerError, match="not zero"):
        fold.begin(np.ones(1, dtype=np.int64))


def test_other_results_are_merged():
    fold = Merging(max)
    assert fold.join(fold.join(fold.begin(-1), 5), 3) == 5


def test_an_engine_of_another_package_is_chosen_by_name(tmp_path, monkeypatch):
    """It is found by an entry point, and reads its own keys of [compute]."""
    folder = tmp_path / "looms-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: looms\nVersion: 1.0\n")
    points = "loom = looms:Loom\nbroken = looms:Absent\n"
    (folder / "entry_points.txt").write_text(f"[privada.engines]\n{points}")
    (tmp_path / "looms.py").write_text(
        "from privada.parties.compute.threads import Threads\n"
        "class Loom(Threads):\n"
        "    @classmethod\n"
        "    def from_section(cls, section, home):\n"
        "        return cls(section.whole('spindles'))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def read(text):
        section = Section.parse(f"[compute]\n{text}", name="owner.toml").section("compute")
        return read_engine(section, tmp_path)

    engine = read('engine = "loom"\nspindles = 3')
    assert (type(engine).__name__, engine.count) == ("Loom", 3)
    assert (
        Rows(np.ones((5, 1)), schema=Schema.of_numbers(bounds=(0, 1), width=1), compute=engine).check() == 5
    )
    with pytest.raises(StudyError, match="threads: nobody knows this key"):
        read('engine = "loom"\nspindles = 3\nthreads = 2')
    with pytest.raises(StudyError, match="The engine broken cannot be loaded"):
        read('engine = "broken"')
    assert read("threads = 2") == Threads(2)
