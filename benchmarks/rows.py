"""Rows at work beside the engines of others: histograms, nearest centres, threads, a cluster.

*Histograms*: 10 million rows of 8 numbers and a label of text in ten Parquet files (quick: a million), counts
by label over eight binnings of one feature each. Beside it DuckDB computes the same counts, compared with
ours, in the faster of two ways (one scan with grouping sets, or a scan for each feature). Both have two
threads, and the system is told to forget the files before each run. The peak of memory is that of a process
of its own.

*Nearest*: counts over 1,000 centres, beside faiss's bare search among the same rows in memory, two threads.

*Opening*: an owner whose rows were checked before, beside one scan. *Cluster*: the histograms on two Dask
workers of one thread each, beside two threads. *Flat*: processor seconds per row for 1e6, 1e7 and 1e8 rows
(quick: 1e5 and 1e6), where 1e8 rows are the files of 1e7 read ten times.

*Descent*: 100 million rows of 20 features (quick: 2 million), generated part by part by a source of its own,
never all in memory; an `Owner` answers a descent of reweighting and keeps prepared batches in single
precision. The mean time of a step, from the last row read to the signed release, beside one pass over as
many bytes.

Ways take turns and the least time of each counts: other work on the machine only adds.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numba
import numpy as np

from benchmarks._figures import Figure, main
from privada._threads import run_each
from privada.methods.cells import Bins, CellStatistics, NearestCells
from privada.methods.cells.owner import tabulate
from privada.parties import Category, Number, Rows, Schema
from privada.parties.compute.threads import Threads
from privada.parties.sources import Source, Table
from privada.privacy import ApproxDP, PureDP
from privada.privacy.relation import Relation

WIDTH, FILES, CENTERS, BINS, TWO = 8, 10, 1_000, 16, Threads(2)
FEATURES, PART, STEPS = 20, 500_000, 20  # of the descent
WORDS = ("benign", "malignant", "unknown", "stage one", "stage two")
EDGES = np.linspace(-2.0, 2.0, BINS + 1)
NUMBERS = tuple(Number(name=f"x{i}", low=-4, high=4) for i in range(WIDTH))
SCHEMA = Schema(columns=NUMBERS, label=Category(name="y", values=WORDS))
GUARANTEE = PureDP(epsilon=1.0, relation=Relation.ADD_REMOVE)
HISTOGRAMS = CellStatistics(
    tables=tuple(Bins(feature=i, edges=EDGES) for i in range(WIDTH)),
    n_classes=len(WORDS),
    guarantee=GUARANTEE,
)


def measure(quick: bool) -> Iterator[Figure]:
    """All figures."""
    size, runs = (1_000_000, 3) if quick else (10_000_000, 5)
    with TemporaryDirectory() as folder:
        path = Path(folder)
        _write(path, size)
        yield from _histograms(path, runs)
        yield _nearest(path, runs)
        yield _cluster(path, runs)
        yield _open(path, runs)
        yield _flat(path, size, quick)
    yield from _descent(2_000_000 if quick else 100_000_000)


def _write(path: Path, size: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for file in range(FILES):
        rng, each = np.random.default_rng(file), size // FILES
        columns: dict[str, Any] = {f"x{i}": rng.normal(size=each) for i in range(WIDTH)}
        columns["y"] = np.array(WORDS)[rng.integers(len(WORDS), size=each)]
        pq.write_table(pa.table(columns), path / f"{file}.parquet")


def _forget(path: Path) -> None:
    """Let the next reader find the files cold, as far as the system follows the advice."""
    for file in path.glob("*.parquet"):
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def _least(ways: Mapping[str, Callable[[], Any]], runs: int, before: Callable[[], Any]) -> dict[str, float]:
    """The least time of each way, in turns."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(runs):
        for name, work in ways.items():
            before()
            start = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - start)
    return {name: min(each) for name, each in times.items()}


def _count(path: Any, compute: Any = TWO, question: CellStatistics = HISTOGRAMS) -> Any:
    rows = Rows(path, schema=SCHEMA, compute=compute)
    needed = rows.reading(features=question.needed_features, label=question.needs_label)  # as an owner does
    return needed.total(partial(tabulate, question))


def _cell(feature: int) -> str:
    step = float(EDGES[1] - EDGES[0])
    cell = f"cast(floor((x{feature} - ({EDGES[0]})) / {step}) as integer) + 1"
    return f"greatest(0, least({BINS + 1}, {cell}))"


def _duckdb(path: Path, *, scans: bool) -> Any:
    import duckdb

    connection = duckdb.connect(config={"threads": 2})
    table, cells = f"read_parquet('{path}/*.parquet')", [f"{_cell(i)} as b{i}" for i in range(WIDTH)]
    if scans:
        queries = [f"select y, {cell}, count(*) from {table} group by all" for cell in cells]
        return [connection.execute(query).fetchall() for query in queries]
    names = [f"b{i}" for i in range(WIDTH)]
    sets = ", ".join(f"(y, {name})" for name in names)
    inner = f"select y, {', '.join(cells)} from {table}"
    query = f"select y, {', '.join(names)}, count(*) from ({inner}) group by grouping sets ({sets})"
    return connection.execute(query).fetchall()


def _check_counts(path: Path) -> None:
    """DuckDB's counts are ours; its arithmetic may put a value at an edge into the bin beside."""
    ours = _count(path)
    for feature, found in enumerate(_duckdb(path, scans=True)):
        counts = np.zeros((BINS + 2, len(WORDS)), dtype=np.int64)
        for word, cell, count in found:
            counts[cell, WORDS.index(word)] = count
        name, _ = HISTOGRAMS.names(feature)
        mine = ours[name] >> -HISTOGRAMS.plan.lattice(name).grid.exponent
        assert np.abs(mine - counts).sum() <= 4, "not the same counts"


def _histograms(path: Path, runs: int) -> Iterator[Figure]:
    _check_counts(path)
    ways = {
        "ours": partial(_count, path),
        "sets": partial(_duckdb, path, scans=False),
        "scans": partial(_duckdb, path, scans=True),
    }
    least = _least(ways, runs, lambda: _forget(path))
    theirs = min(least["sets"], least["scans"])
    beside = f"DuckDB, two threads, {theirs:.2f} s; ours {least['ours']:.2f} s"
    yield Figure("histograms_vs_duckdb", least["ours"] / theirs, 1.2, "lower", beside, runs)
    command = (
        f"from benchmarks.rows import *; from benchmarks.rows import _count; _count(Path({str(path)!r}))"
    )
    command += "; import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    yield Figure(
        "histograms_peak_gb", float(done.stdout), 1.0, "lower", "a process of its own, imports included", 1
    )


def _nearest(path: Path, runs: int) -> Figure:
    import faiss

    centers = np.random.default_rng(0).normal(size=(CENTERS, WIDTH))
    question = CellStatistics(tables=(NearestCells(centers=centers),), guarantee=GUARANTEE)
    index = faiss.IndexFlatL2(WIDTH)
    index.add(centers.astype(np.float32))
    faiss.omp_set_num_threads(2)
    queries = Rows(path, schema=SCHEMA).gathered().X.astype(np.float32)
    ways = {"ours": lambda: _count(path, question=question), "faiss": lambda: index.search(queries, 1)}
    least = _least(ways, runs, lambda: None)
    beside = f"faiss flat, two threads, rows in memory, {least['faiss']:.2f} s; ours {least['ours']:.2f} s"
    return Figure("nearest_cells_vs_faiss", least["ours"] / least["faiss"], 1.3, "lower", beside, runs)


def _cluster(path: Path, runs: int) -> Figure:
    from distributed import LocalCluster

    from privada.parties.compute.cluster import Cluster

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with LocalCluster(**options) as running:
        cluster = Cluster(running.scheduler_address)
        spread = Rows(path, schema=SCHEMA, compute=cluster)
        here = Rows(path, schema=SCHEMA, compute=TWO)
        work = partial(tabulate, HISTOGRAMS)
        ways = {"cluster": lambda: spread.total(work), "threads": lambda: here.total(work)}
        assert all(
            np.array_equal(value, spread.total(work)[name]) for name, value in here.total(work).items()
        )
        least = _least(ways, runs, lambda: None)
        cluster.close()
    beside = f"two threads {least['threads']:.2f} s"
    return Figure(
        "dask_two_workers_vs_threads", least["cluster"] / least["threads"], 1.3, "lower", beside, runs
    )


def _open(path: Path, runs: int) -> Figure:
    from privada import Owner
    from privada.parties.checks import CheckMemory

    with TemporaryDirectory() as folder:
        memory = CheckMemory(Path(folder) / "checked.json", str(path))
        more: dict[str, Any] = {"dataset": "rows", "budget": GUARANTEE, "memory": memory}
        make = partial(Owner, path, schema=SCHEMA, compute=TWO, **more)
        time.sleep(3)  # files that have just been written are not trusted to be settled
        make()
        ways: dict[str, Callable[[], Any]] = {
            "open": make,
            "scan": lambda: Rows(path, schema=SCHEMA, compute=TWO).check(),
        }
        least = _least(ways, runs, lambda: None)
    beside = f"one scan on two threads, {least['scan']:.2f} s"
    return Figure("open_vs_scan", least["open"] / least["scan"], 0.05, "lower", beside, runs)


def _flat(path: Path, size: int, quick: bool) -> Figure:
    """Largest over least cost per row."""
    import pyarrow.dataset as ds

    files = sorted(path.glob("*.parquet"))
    tables = {size // 10: files[:1], size: files}
    if not quick:
        tables[10 * size] = files * 10
    costs = {}
    for rows, chosen in tables.items():
        runs = max(1, 3 * size // rows)
        spent = []
        for _ in range(min(runs, 5)):
            start = time.process_time()
            for at in range(0, len(chosen), FILES):
                _count(ds.dataset([str(file) for file in chosen[at : at + FILES]]))
            spent.append((time.process_time() - start) / rows)
        costs[rows] = min(spent)
    beside = ", ".join(f"{rows:.0e} rows {1e9 * cost:.0f} ns" for rows, cost in costs.items())
    return Figure(
        "cost_per_row_largest_vs_least", max(costs.values()) / min(costs.values()), 1.2, "lower", beside, 1
    )


class Generated(Source):
    """Parts of rows that are computed whenever they are read; it notes when the last reading ended."""

    def __init__(self, parts: range, read: list[float]) -> None:
        self._parts, self._read = parts, read

    def tables(self, size: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        del names
        for part in self._parts:
            rng = np.random.default_rng(part)
            for start in range(0, PART, size):
                X = rng.random((FEATURES, min(size, PART - start)), dtype=np.float32) * 2 - 1
                noise = rng.random(X.shape[1], dtype=np.float32) - 0.5
                columns = {f"x{i}": column.astype(np.float64) for i, column in enumerate(X)}
                yield columns | {"y": (X[0] + noise).astype(np.float64)}
        self._read[:] = [time.perf_counter()]

    def column(self, name: str) -> Any:
        return np.concatenate([table[name] for table in self.tables(PART)])

    def parts(self) -> list[Source]:
        return [Generated(range(part, part + 1), self._read) for part in self._parts]


@numba.njit(cache=True, nogil=True, fastmath=True)  # type: ignore[untyped-decorator, unused-ignore]
def _sum(flat: Any) -> Any:  # pragma: no cover - compiled
    total = np.float32(0.0)
    for i in range(flat.shape[0]):
        total += flat[i]
    return total


def _descent(size: int) -> Iterator[Figure]:
    """A step of an owner's answer beside one pass over the bytes that the owner keeps for it."""
    from privada import Owner
    from privada.methods.linear.questions.descent import ReweightingDescent

    label = Number(name="y", low=-2, high=2)
    numbers = tuple(Number(name=f"x{i}", low=-1, high=1) for i in range(FEATURES))
    schema = Schema(columns=numbers, label=label, size=size)
    budget, asked = (
        ApproxDP(epsilon=epsilon, delta=1e-10, relation=Relation.REPLACE_ONE) for epsilon in (2.0, 1.0)
    )
    question = ReweightingDescent(
        size=size,
        loss="squared",
        centre=np.zeros(FEATURES),
        spread=np.ones(FEATURES),
        limit=1.0,
        constant=0.0,
        bound=3.0,
        steps=STEPS,
        step_size=0.05,
        decay=1.0,
        guarantee=asked,
    )
    read = [0.0]
    house = Owner(
        Generated(range(size // PART), read), schema=schema, dataset="rows", budget=budget, compute=TWO
    )
    house.answer(question)
    step = (time.perf_counter() - read[0]) / STEPS
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    kept = [
        [np.ones(PART * FEATURES, np.float32), *(np.ones(PART) for _ in range(3))]
        for _ in range(size // PART)
    ]
    least = _least({"pass": lambda: run_each(lambda each: [*map(_sum, each)], kept, threads=2)}, 5, lambda: 0)
    what = f"{size:.0e} rows of {FEATURES} features"
    beside = f"{what}, one pass {least['pass']:.2f} s, a step {step:.2f} s, noise and ledger included"
    yield Figure("descent_100m", step / least["pass"], None, "lower", beside, STEPS)
    yield Figure("descent_100m_peak_gb", peak, None, "lower", f"{what}; rows and all", 1)


if __name__ == "__main__":
    main(measure, "Rows at work beside the engines of others")
