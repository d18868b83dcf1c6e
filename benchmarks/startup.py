"""How long ``import privada`` takes, beside ``import sklearn.linear_model``.

Each side is a fresh interpreter that imports one module and ends; the two
alternate, after one run of each that fills the file cache. What counts is the
wall time of the whole process. Nothing is subtracted: the time of a bare
interpreter is part of both sides, which works against the smaller one, that
is against us. Medians are compared.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from statistics import median

from benchmarks._figures import Figure, main

OURS, THEIRS = "privada", "sklearn.linear_model"


def measure(quick: bool) -> Iterator[Figure]:
    """Time both imports."""
    runs = 7 if quick else 31
    seconds: dict[str, list[float]] = {OURS: [], THEIRS: []}
    for run in range(runs + 1):
        for module, times in seconds.items():
            taken = _seconds(module)
            if run:  # the first one fills the file cache
                times.append(taken)
    ratio = median(seconds[OURS]) / median(seconds[THEIRS])
    beside = f"{THEIRS} {version('scikit-learn')}"
    yield Figure("import_time_vs_sklearn_linear_model", ratio, 0.3, "lower", beside, runs)


def _seconds(module: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    main(measure, "Start-up beside scikit-learn")
