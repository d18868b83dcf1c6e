"""A real cluster of two workers: the same bits as one thread, whatever happens to a worker."""

import os
import pickle
import signal
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from privada import Owner
from privada.audit.transcript import coupled
from privada.exceptions import (
    AnswerError,
    InputError,
    OutageError,
    SchemaError,
    SourceError,
    SourceOutageError,
    WireError,
)
from privada.methods.cells import Bins, CellStatistics
from privada.methods.cells.owner import tabulate
from privada.parties import Category, Number, Rows, Schema
from privada.parties.compute import cluster as cluster_module
from privada.parties.compute.batch import Batch
from privada.parties.compute.cluster import Cluster, QuestionFile, Task
from privada.parties.compute.threads import Threads
from privada.parties.sources import files as dividing
from privada.parties.sources import open_source
from privada.privacy import PureDP, Vintage
from privada.privacy.bounds import Grid
from tests.clusters import running_cluster

COLUMNS = [Number(name=f"x{i}", low=-9, high=9) for i in range(3)]
LABEL = Category(name="y", values=("a", "b"))
SCHEMA = Schema(columns=COLUMNS, label=LABEL)
PERSONS = Schema(columns=COLUMNS, label=LABEL, person_id="who", max_rows=2)
N, GRID = 2000, Grid(-40)
EPSILON = PureDP(epsilon=1.0, relation="add/remove")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running_cluster(tmp_path_factory.mktemp("tls")) as (found, _):
        yield found


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(dividing, "PART_ROWS", 150)
    rng = np.random.default_rng(0)
    columns = {f"x{i}": rng.normal(size=N) for i in range(3)}
    words = np.array(["a", "b"])[rng.integers(2, size=N)]
    table = pa.table(columns | {"y": words, "who": rng.integers(700, size=N)})
    for i in range(2):
        pq.write_table(table.slice(i * 1000, 1000), tmp_path / f"{i}.parquet", row_group_size=90)
    return tmp_path


def sums(batch):
    total = np.zeros((2, 3), dtype=np.int64)
    np.add.at(total, batch.labels, GRID.truncate(batch.X))
    return {"counts": np.bincount(batch.labels, minlength=2), "sums": total}


def largest(count, batch):
    return np.sort(np.r_[np.full(count, -np.inf), batch.X[:, 0]])[-count:]


def merge(one, other):
    return np.sort(np.r_[one, other])[-len(one) :]


def steps(batch):
    return GRID.truncate(batch.X)


def scale(factor, state):
    return factor * state


def add_up(state):
    return state.sum(axis=0)


def refuse(batch):
    if len(batch):
        raise SchemaError("Column 'x0' holds a missing value; the schema allows none.")
    return np.zeros(1, dtype=np.int64)


def die(batch):
    if len(batch):
        os._exit(1)
    return np.zeros(1, dtype=np.int64)


def all_of(rows):
    """Everything that rows can be asked for."""
    fewer = rows.at_most(300, coupled(2))
    states = rows.prepared(steps)
    found = rows.total(sums) | {f"fewer {name}": value for name, value in fewer.total(sums).items()}
    found["largest"] = rows.merged(partial(largest, 4), merge)
    found["states"] = states.total(add_up)
    found["advanced"] = states.advanced(partial(scale, 3)).total(add_up)
    found["gathered"], found["size"] = rows.gathered().X, np.array([rows.check()])
    return found


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert value.dtype == other[name].dtype
        assert np.array_equal(value, other[name]), name


@pytest.mark.parametrize("schema", [SCHEMA, PERSONS], ids=["rows", "persons"])
def test_everything_has_the_bits_of_one_thread(cluster, folder, schema):
    """Which rows of a person count is decided over all parts together."""
    alone = Rows(folder, schema=schema, noise=coupled(1), compute=Threads(1))
    spread = Rows(folder, schema=schema, noise=coupled(1), compute=cluster)
    assert_same(all_of(alone), all_of(spread))


@pytest.mark.parametrize("schema", [SCHEMA, PERSONS], ids=["rows", "persons"])
def test_csv_files_have_the_bits_of_one_thread(cluster, folder, tmp_path_factory, schema):
    """A file is one part: a line end in it may be within quotes."""
    exports = tmp_path_factory.mktemp("exports")
    for file in folder.glob("*.parquet"):
        pyarrow.csv.write_csv(pq.read_table(file), exports / f"{file.stem}.csv")
    alone = Rows(exports, schema=schema, noise=coupled(1), compute=Threads(1))
    spread = Rows(exports / "*.csv", schema=schema, noise=coupled(1), compute=cluster)
    assert_same(all_of(alone), all_of(spread))
    (exports / "2.csv").write_text("x0,x1,x2,y,who\n1,1,?,a,7\n")
    with pytest.raises(SchemaError, match="2.csv: column 3 'x2': not a number at line 2"):
        Rows(exports, schema=schema, noise=coupled(1), compute=cluster).check()


@pytest.mark.filterwarnings("ignore")  # of Dask about pandas
@pytest.mark.parametrize("schema", [SCHEMA, PERSONS], ids=["rows", "persons"])
def test_a_vintage_has_the_bits_of_one_thread(cluster, folder, schema):
    for place in sorted(folder.glob("*.parquet")):
        table = pq.read_table(place)
        days = np.arange(len(table)) % 400 + np.datetime64("2026-01-01")
        pq.write_table(table.append_column("day", pa.array(days)), place, row_group_size=90)
    year = Vintage(of="rows", name="2026", column="day", since="2026-01-01", until="2027-01-01")
    given = {"schema": schema, "vintage": year}
    alone = Rows(folder, noise=coupled(1), compute=Threads(1), **given)
    spread = Rows(folder, noise=coupled(1), compute=cluster, **given)
    assert_same(all_of(alone), all_of(spread))
    if schema is SCHEMA:
        inside = sum(day % 400 < 365 for day in range(1000))
        assert alone.check() == 2 * inside < N


def test_partitions_of_a_dask_frame_stay_where_they_are(cluster, folder):
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_map(pd.read_parquet, sorted(folder.glob("*.parquet")))
    alone = all_of(Rows(folder, schema=PERSONS, noise=coupled(1), compute=Threads(1)))
    for compute in (cluster, Threads(2)):
        assert_same(alone, all_of(Rows(frame, schema=PERSONS, noise=coupled(1), compute=compute)))
    with pytest.raises(SchemaError, match="lacks columns of the schema: x2"):
        Rows(frame[["x0", "x1", "y", "who"]], schema=PERSONS, noise=coupled(1), compute=cluster)


def test_an_owner_answers_on_its_cluster(cluster, folder):
    question = CellStatistics(tables=(Bins(feature=0, edges=np.linspace(-2, 2, 9)),), guarantee=EPSILON)
    found = []
    for compute in (Threads(1), cluster):
        with pytest.warns(match="not private"):
            house = Owner(
                folder, schema=SCHEMA, dataset="rows", budget=EPSILON, insecure_seed=5, compute=compute
            )
        found.append(house.answer(question).payload)
    assert_same(*found)


def test_an_owner_answers_about_csv_files_on_its_cluster_for_one_charge(cluster, folder, tmp_path_factory):
    """Asked twice, it is charged once; the bits are those of Parquet files in one thread."""
    exports = tmp_path_factory.mktemp("exports")
    for file in folder.glob("*.parquet"):
        pyarrow.csv.write_csv(pq.read_table(file), exports / f"{file.stem}.csv")
    question = CellStatistics(tables=(Bins(feature=0, edges=np.linspace(-2, 2, 9)),), guarantee=EPSILON)
    found, more = [], {"schema": SCHEMA, "dataset": "rows", "budget": EPSILON, "insecure_seed": 5}
    for data, compute in ((folder, Threads(1)), (exports, cluster), (exports / "*.csv", Threads(2))):
        with pytest.warns(match="not private"):
            house = Owner(data, compute=compute, **more)
        found.append(house.answer(question).payload)
        assert_same(found[0], house.answer(question).payload)
        assert [line.kind for line in house.ledger.lines("rows")] == ["budget", "charge"]
        assert_same(found[0], found[-1])


def test_a_killed_worker_is_computed_again(folder, tmp_path_factory):
    with running_cluster(tmp_path_factory.mktemp("tls")) as (cluster, running):
        rows = Rows(folder, schema=SCHEMA, compute=cluster)
        states = rows.prepared(steps)
        expected = states.total(add_up)
        first = next(iter(running.workers.values()))
        os.kill(first.pid, signal.SIGKILL)
        assert np.array_equal(states.total(add_up), expected)
        alone = Rows(folder, schema=SCHEMA, compute=Threads(1))
        assert_same(alone.total(sums), rows.total(sums))


@pytest.mark.filterwarnings("ignore")  # of Dask about pandas
def test_a_frame_that_is_another_one_when_it_is_computed_again_is_refused(tmp_path, tmp_path_factory):
    """Which rows are kept was chosen for other persons: one could have any number of rows."""
    dd = pytest.importorskip("dask.dataframe")
    file, columns = tmp_path / "rows.parquet", dict.fromkeys(("x0", "x1", "x2"), np.zeros(50)) | {"y": "a"}
    pd.DataFrame(columns | {"who": np.arange(50)}).to_parquet(file)
    with running_cluster(tmp_path_factory.mktemp("tls")) as (cluster, running):
        frame = dd.from_map(pd.read_parquet, [file])
        rows = Rows(frame, schema=PERSONS, noise=coupled(1), compute=cluster)
        assert rows.total(sums)["counts"].sum() == 50
        pd.DataFrame(columns | {"who": np.full(50, 7)}).to_parquet(file)
        for each in list(running.workers.values()):
            os.kill(each.pid, signal.SIGKILL)
        with pytest.raises(SourceError, match="persons have changed"):
            rows.total(sums)


def test_an_answer_whose_workers_leave_is_charged_once_and_drawn_when_they_are_back(
    folder, tmp_path_factory, monkeypatch
):
    question = CellStatistics(tables=(Bins(feature=0, edges=np.zeros(1)),), guarantee=EPSILON)
    with running_cluster(tmp_path_factory.mktemp("tls"), workers=1) as (cluster, running):
        house = Owner(folder, schema=SCHEMA, dataset="rows", budget=EPSILON, compute=cluster)
        monkeypatch.setattr(cluster_module, "PATIENCE", 3.0)
        running.scale(0)
        running.sync(running._correct_state)
        with pytest.raises(OutageError, match="no workers") as caught:
            house.answer(question)
        assert caught.value.part == "cluster"
        assert len(list(house.ledger.lines("rows"))) == 1  # nothing was charged
        with monkeypatch.context() as patch:
            patch.setattr(Cluster, "check_ready", lambda *_: None)  # they leave just after the charge
            with pytest.raises(OutageError, match="no worker is left"):
                house.answer(question)
        assert [line.kind for line in house.ledger.lines("rows")] == ["budget", "charge"]
        for _ in range(30):  # none of these counts as a try
            with pytest.raises(OutageError, match="no workers"):
                house.answer(question)
        running.scale(1)
        running.sync(running._correct_state)
        cluster._client.wait_for_workers(1, timeout=20)
        assert house.answer(question).receipt
        assert house.ledger.debt("rows", question.digest).tries == 2
        assert [line.kind for line in house.ledger.lines("rows")] == ["budget", "charge"]


def test_a_question_never_travels_under_a_key_that_was_released(cluster):
    """Dask may lose such a task: an answer waited for ever, beside workers that had nothing to do."""
    one = cluster._keep_question(b"one")
    assert cluster._keep_question(b"one") is one
    key = one.key
    cluster._keep_question(b"two")
    assert cluster._keep_question(b"one").key != key


def test_a_task_that_no_worker_has_is_not_waited_for_for_ever(cluster, monkeypatch):
    monkeypatch.setattr(cluster_module, "PATIENCE", 1.0)
    lost = cluster._client.submit(sum, [1], resources={"of no worker": 1}, pure=False)
    with pytest.raises(OutageError, match="none works on it"):
        cluster._results([lost])


def test_errors_of_workers_are_those_of_one_thread(cluster, folder):
    with pytest.raises(SchemaError, match="'x0' holds a missing value"):
        Rows(folder, schema=SCHEMA, compute=cluster).total(refuse)
    (folder / "1.parquet").unlink()
    with pytest.raises(SourceOutageError, match="out of reach"):
        rows = Rows(folder, schema=SCHEMA, compute=cluster)
        (folder / "0.parquet").unlink()
        rows.total(sums)


def test_only_functions_that_are_installed_travel(cluster, folder):
    rows = Rows(folder, schema=SCHEMA, compute=cluster)
    for made in (
        lambda _: np.zeros(1, dtype=np.int64),
        partial(largest, object()),
        partial(largest, count=3),
    ):
        with pytest.raises(AnswerError, match=r"functions of modules only|does not travel|by place"):
            rows.total(made)
    with pytest.raises(AnswerError, match="functions of modules only"):
        rows.merged(partial(largest, 4), lambda a, _: a)


def test_rows_in_memory_are_not_sent_to_a_cluster(cluster):
    with pytest.raises(InputError, match="memory of this process"):
        Rows(np.zeros((5, 3)), y=np.array(["a"] * 5), schema=SCHEMA, compute=cluster)
    with pytest.raises(InputError, match="memory of this process"):
        Rows(pa.table({"x0": [0.0], "x1": [0.0], "x2": [0.0], "y": ["a"]}), schema=SCHEMA, compute=cluster)


@pytest.mark.parametrize(
    ("scheduler", "message"),
    [
        ("tcp://10.0.0.1:8786", "tcp:// is for this machine only"),
        ("tls://10.0.0.1:8786", "needs the files ca, certificate and key"),
        ("http://localhost:1", "tls://host:port"),
        ("", "tls://host:port"),
    ],
)
def test_a_cluster_is_reached_by_tls(scheduler, message):
    with pytest.raises(InputError, match=message):
        Cluster(scheduler)


def test_a_scheduler_that_is_not_there_is_named_before_anything_is_opened(folder, monkeypatch):
    from distributed import Client

    monkeypatch.setattr("distributed.Client", lambda *args, **more: Client(*args, **{**more, "timeout": 0.5}))
    with pytest.raises(OutageError, match="cannot be reached"):
        Rows(folder, schema=SCHEMA, compute=Cluster("tcp://127.0.0.1:1")).check()


def test_strangers_do_not_get_in(cluster, tmp_path):
    """Another authority's certificate is refused by the scheduler."""
    from distributed import Security

    other = Security.temporary()
    for name, text in (
        ("ca", other.tls_ca_file),
        ("cert", other.tls_client_cert),
        ("key", other.tls_client_key),
    ):
        (tmp_path / name).write_text(text)
    stranger = Cluster(
        cluster.scheduler, ca=tmp_path / "ca", certificate=tmp_path / "cert", key=tmp_path / "key"
    )
    with pytest.raises(OutageError, match="cannot be reached"):
        stranger.check_ready()


QUESTION = CellStatistics(
    tables=(Bins(feature=0, edges=np.array([0.0])),),
    guarantee=PureDP(epsilon=1.0, relation="add/remove"),
)
BATCH = Batch(np.array([[-1.0], [2.0], [3.0]]), None)


def scale_named(factor, name, steps, array):
    return factor * array if name else steps


def test_a_task_is_the_function_that_it_was_made_of():
    task = pickle.loads(pickle.dumps(Task.of(partial(tabulate, QUESTION))))
    expected = tabulate(QUESTION, BATCH)
    for function in (task.function(), task.without_question().function(task.question)):
        found = function(BATCH)
        assert found.keys() == expected.keys()
        assert all(np.array_equal(found[name], value) for name, value in expected.items())


def test_a_question_travels_as_its_file_and_is_checked_on_arrival():
    task = Task.of(partial(tabulate, QUESTION))
    assert task.question == QUESTION.to_bytes()
    assert task.arguments[0].blob == task.question
    assert task.without_question().arguments[0].blob == b""
    with pytest.raises(WireError):
        task.without_question().function(task.question[:-1])


def test_plain_arguments_travel_as_they_are():
    task = Task.of(partial(scale_named, 2.0, "twice", 3))
    assert task.question == b""
    assert task.function()(np.arange(3)).tolist() == [0, 2, 4]
    assert not any(isinstance(each, QuestionFile) for each in task.arguments)


@pytest.mark.parametrize(
    "made",
    [
        lambda batch: batch,
        partial(lambda a, b: a, 1),
        partial(scale_named, factor=2.0),
        partial(scale_named, {"a": 1}),
        partial(scale_named, scale_named),
        Batch.where,
        BATCH.where,
        3,
    ],
)
def test_what_has_no_name_or_is_not_plain_stays_here(made):
    with pytest.raises(AnswerError):
        Task.of(made)


def test_a_data_frame_is_opened_again_under_new_keys(cluster, folder, monkeypatch):
    """The scheduler may lose a task whose key was released just before, so no key is used twice."""
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_map(pd.read_parquet, sorted(folder.glob("*.parquet")))
    client, keys = cluster._client, []
    compute = client.compute

    def note_keys(parts):
        futures = compute(parts)
        keys.extend(future.key for future in futures)
        return futures

    monkeypatch.setattr(client, "compute", note_keys)
    for _ in range(3):
        Rows(frame, schema=PERSONS, noise=coupled(1), compute=cluster).check()
    assert len(set(keys)) == len(keys) >= 6


def test_a_partition_can_move_to_another_worker(cluster, folder):
    """Dask moves results when workers are busy; one that cannot be pickled would be waited for for ever."""
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_map(pd.read_parquet, sorted(folder.glob("*.parquet")))
    client = cluster._client
    parts = cluster.place(open_source(frame, PERSONS, None, None), PERSONS)
    first, second = client.scheduler_info()["workers"]
    counts = [
        [
            client.submit(cluster_module.count_rows, part, workers=[place], pure=False).result(60)
            for part in parts
        ]
        for place in (first, second)
    ]
    assert counts[0] == counts[1]
    assert sum(counts[0]) == N
