"""Exact values have the same bits for every source, batch size, number of threads, and on a cluster."""

import dataclasses
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from privada.audit.transcript import coupled
from privada.methods import methods
from privada.parties.answering import answer_rows
from privada.parties.compute import Merging
from privada.parties.compute import batch as batch_module
from privada.parties.compute.cluster import Task
from privada.parties.compute.threads import Threads
from privada.parties.rows import Rows
from privada.parties.sources import files as dividing
from tests.clusters import running_cluster

pytestmark = pytest.mark.filterwarnings("ignore::privada.exceptions.RehearsalWarning")
FIRST_OF_KIND = {
    case.questions[0].kind: (name, index)
    for name, method in methods().items()
    for index, case in reversed(list(enumerate(method.example().single_cases)))
}
CASES = [pytest.param(place, id=kind) for kind, place in FIRST_OF_KIND.items()]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running_cluster(tmp_path_factory.mktemp("tls")) as (found, _):
        yield found


def frame_of(example):
    """The example's rows as a frame with the names of its schema."""
    schema, data = example.schema, example.data
    X = np.asarray(data["data"])
    columns = {column.name: X[:, place] for place, column in enumerate(schema.columns)}
    if schema.label is not None:
        columns[schema.label.name] = np.asarray(data["y"])
    if schema.person_id is not None:
        columns[schema.person_id] = np.asarray(data["person"])
    return pd.DataFrame(columns)


def exact_values(question, rows):
    """What is said before noise is added, and the payload, under one fixed noise."""
    exact = {}
    payload = answer_rows(
        question, rows, noise=coupled(3), witness=lambda name, _, value: exact.setdefault(name, value)
    )
    return {**exact, **{f"payload {name}": np.asarray(value) for name, value in payload.items()}}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert np.array_equal(value, other[name]), name


@pytest.fixture(params=CASES)
def case(request, tmp_path, monkeypatch):
    """A question, a way to open its rows, and what one thread says of them in one batch."""
    name, index = request.param
    example = methods()[name].example().single_cases[index]
    schema = dataclasses.replace(example.schema, size=None)
    table = pa.Table.from_pandas(frame_of(example), preserve_index=False)
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=11)
    pyarrow.csv.write_csv(table, tmp_path / "rows.csv")

    def values(source, compute):
        data = {"parquet": tmp_path / "rows.parquet", "csv": tmp_path / "rows.csv", "frame": table}[source]
        rows = Rows(data, schema=schema, noise=coupled(0), compute=compute)
        return exact_values(example.questions[0], rows)

    alone = values("frame", Threads(1))
    monkeypatch.setattr(batch_module, "BATCH", 7)
    monkeypatch.setattr(dividing, "PART_ROWS", 20)
    return values, alone


def test_sources_and_threads_change_no_bit(case):
    values, alone = case
    for source, threads in (("frame", 3), ("csv", 1), ("parquet", 2)):
        assert_same(alone, values(source, Threads(threads)))


def test_a_cluster_changes_no_bit(case, cluster):
    values, alone = case
    assert_same(alone, values("parquet", cluster))


class Travelling(Threads):
    """Threads that take only functions that a cluster would: they are found by their names."""

    @staticmethod
    def _send(make):
        task = pickle.loads(pickle.dumps(Task.of(make)))
        return task.without_question().function(task.question)

    def fold(self, parts, schema, make, fold, numbers):
        if isinstance(fold, Merging):
            Task.of(fold.merge)
        return super().fold(parts, schema, self._send(make), fold, numbers)

    def prepare(self, parts, schema, make):
        return super().prepare(parts, schema, self._send(make))

    def fold_prepared(self, prepared, make, fold):
        return super().fold_prepared(prepared, self._send(make), fold)

    def map_prepared(self, prepared, make):
        return super().map_prepared(prepared, self._send(make))


@pytest.mark.parametrize("place", CASES)
def test_no_function_stays_behind_when_a_cluster_answers(place):
    """Else an answer on a cluster would fail after its charge, for good."""
    name, index = place
    case = methods()[name].example().single_cases[index]
    here, there = (
        Rows(
            case.data["data"],
            schema=case.schema,
            y=case.data.get("y"),
            person=case.data.get("person"),
            noise=coupled(3),
            compute=engine,
        )
        for engine in (Threads(1), Travelling(1))
    )
    (question,) = case.questions
    assert_same(exact_values(question, here), exact_values(question, there))
