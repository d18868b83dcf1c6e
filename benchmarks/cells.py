"""The nearest of many public cells, and a scan of labelled rows.

*Nearest*: a million rows of 8 features (quick: a tenth, time scaled), 1,000 centres; processor seconds of all
threads. Beside it the plain rule that it must agree with: every distance of every row, compiled as well, on
a hundredth of the rows. Rows and centres are drawn from one normal law.

*Scan*: reading and checking a million rows of 8 numbers and a label of five words from a Parquet file (quick:
the same), beside the same without the label; medians of runs that take turns. What a label of text costs must
not depend on comparing texts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks._figures import Figure, main
from privada.methods.cells import NearestCells
from privada.methods.cells.questions.nearest import assign_exactly
from privada.parties.rows import Rows
from privada.parties.schema import Category, Number, Schema

ROWS, WIDTH, CENTERS = 1_000_000, 8, 1_000
WORDS = ("benign", "malignant", "unknown", "stage one", "stage two")
NUMBERS = Schema(columns=tuple(Number(name=f"x{i}", low=-3, high=3) for i in range(WIDTH)))
LABELLED = Schema(columns=NUMBERS.columns, label=Category(name="y", values=WORDS))


def measure(quick: bool) -> Iterator[Figure]:
    """Both, nearest first."""
    yield from _nearest(ROWS // 10 if quick else ROWS, runs=3)
    yield from _scan(runs=3 if quick else 9)


def _nearest(size: int, runs: int) -> Iterator[Figure]:
    rng = np.random.default_rng(0)
    cells = NearestCells(centers=rng.normal(size=(CENTERS, WIDTH)))
    X = rng.normal(size=(size, WIDTH))
    few, found = X[: size // 100], np.empty(size // 100, dtype=np.int64)
    cells.assign(few)  # compile
    assign_exactly(few[:1], cells.centers, found[:1])
    ours = median(_processor_seconds(lambda: cells.assign(X)) for _ in range(runs)) * ROWS / size
    plain = median(_processor_seconds(lambda: assign_exactly(few, cells.centers, found)) for _ in range(runs))
    beside = f"every distance compared, {CENTERS:,} centres, d={WIDTH}"
    yield Figure("nearest_cells_seconds_per_million", ours, 1.5, "lower", beside, runs)
    yield Figure("nearest_cells_time_vs_plain", ours / (plain * ROWS / len(few)), 0.4, "lower", beside, runs)


def _scan(runs: int) -> Iterator[Figure]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        _write(path)
        scans = [Rows(path, schema=schema) for schema in (LABELLED, NUMBERS)]
        pairs = [[_processor_seconds(rows.check) for rows in scans] for _ in range(runs)]
    labelled, bare = (median(times) for times in zip(*pairs, strict=True))
    beside = f"{ROWS:,} rows of {WIDTH} numbers without their label of text"
    yield Figure("scan_million_rows_per_second", ROWS / labelled / 1e6, 5.0, "higher", beside, runs)
    yield Figure("labelled_scan_time_vs_bare", labelled / bare, 2.5, "lower", beside, runs)


def _write(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    columns = {f"x{i}": rng.normal(size=ROWS) for i in range(WIDTH)}
    pq.write_table(pa.table(columns | {"y": np.array(WORDS)[rng.integers(len(WORDS), size=ROWS)]}), path)


def _processor_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main(measure, "The nearest of many cells, and a scan of labelled rows")
