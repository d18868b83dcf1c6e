"""Sanitising a large Parquet source beside the bare nearest-neighbour query that it contains.

The source has 10 million rows of 8 columns (quick: 1 million) and lies in a
Parquet file; the target has 5,000 points. *Ours* is the whole answer to local
means (three shells, with traces): reading and checking the rows, finding the
nearest target point of each by the exact rule, adding up integers, drawing the
noise. *Bare* is `faiss.IndexFlatL2.search` for the same rows, already in memory as
float32, in one call, on as many threads. Both take turns. The peak is the largest
resident set of a process of its own that answers the question once, interpreter
and libraries included.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

from benchmarks._figures import Figure, main
from privada.methods.clustering import LocalMeans
from privada.parties.answering import answer_rows
from privada.parties.rows import Rows
from privada.parties.schema import Number, Schema
from privada.privacy import ZCDP, Relation, SecureNoise

ROWS, QUICK_ROWS = 10_000_000, 1_000_000
WIDTH, TARGETS = 8, 5_000
PART = 1_000_000
SPREAD = 0.12
SCHEMA = Schema(columns=tuple(Number(name=f"x{i}", low=-0.5, high=0.5) for i in range(WIDTH)))


def figures(quick: bool) -> list[Figure]:
    """Time both sides in turn, then measure the peak."""
    size, runs = (QUICK_ROWS, 3) if quick else (ROWS, 3)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "source.parquet"
        _write(path, size)
        ours, bare = _times(path, size, runs)
        peak = _peak(path)
    beside = f"faiss-cpu {version('faiss-cpu')} IndexFlatL2, {size:,} rows"
    return [
        Figure("sanitise_time_vs_bare_query", ours / bare, 1.5, "lower", beside, runs),
        Figure("sanitise_peak_gb", peak, 1.0, "lower", f"{size:,} rows, {size * WIDTH * 8 / 1e9:.2f} GB", 1),
    ]


def _question() -> LocalMeans:
    """Local means around a target of 5,000 points."""
    targets = np.random.default_rng(1).normal(scale=SPREAD, size=(TARGETS, WIDTH))
    return LocalMeans(
        cells=targets,
        shells=np.array([0.1, 0.2, 0.4]),
        domain=0.5,
        moments="trace",
        guarantee=ZCDP(rho=0.5, relation=Relation.ADD_REMOVE),
    )


def _parts(size: int) -> Iterator[npt.NDArray[np.float64]]:
    rng = np.random.default_rng(0)
    for start in range(0, size, PART):
        yield rng.normal(scale=SPREAD, size=(min(PART, size - start), WIDTH))


def _write(path: Path, size: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(column.name, pa.float64()) for column in SCHEMA.columns])
    with pq.ParquetWriter(path, schema) as writer:
        for part in _parts(size):
            columns = [pa.array(part[:, i]) for i in range(WIDTH)]
            writer.write_table(pa.table(columns, schema=schema))


def _times(path: Path, size: int, runs: int) -> tuple[float, float]:
    """Median seconds of the whole answer, and of the bare query."""
    import faiss

    question, rows = _question(), Rows(path, schema=SCHEMA)
    index = faiss.IndexFlatL2(WIDTH)
    index.add(question.cells.astype(np.float32))
    queries = np.vstack([part.astype(np.float32) for part in _parts(size)])
    answer_rows(question, Rows(np.zeros((1, WIDTH)), schema=SCHEMA), noise=SecureNoise())  # compile
    index.search(queries[:1000], 1)
    pairs = [
        (
            _seconds(lambda: answer_rows(question, rows, noise=SecureNoise())),
            _seconds(lambda: index.search(queries, 1)),
        )
        for _ in range(runs)
    ]
    return median(ours for ours, _ in pairs), median(bare for _, bare in pairs)


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _peak(path: Path) -> float:
    """Largest resident set, in GB, of a process that answers once."""
    code = f"from benchmarks._sanitise import answer_once; answer_once({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def answer_once(path: str) -> None:
    """Answer the question and print the largest resident set so far, in GB."""
    answer_rows(_question(), Rows(path, schema=SCHEMA), noise=SecureNoise())
    print(_high_water())


def _high_water() -> float:
    """Largest resident set of this program; on Linux `getrusage` would count its parent's too."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) * 1024 / 1e9
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


if __name__ == "__main__":
    main(figures, "Sanitising a large source beside the bare query")
