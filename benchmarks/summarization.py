"""Greedy herding over many rows beside bare matrix-vector products, and its memory.

100,000 rows of 140 random Fourier features in single precision, p = 400. *Ours* chooses 400 rows;
*bare* multiplies the same matrix with 400 vectors. Both take turns, and the ratio of each turn
is kept; the figure is the median. *Owners in parallel*: the same rows at 8 owners in 8 threads beside
one after the other, each with one thread for matrix products, as a curator runs them.
Memory: the largest resident set of a process of its own, interpreter included, that embeds rows of
256 columns and chooses 400.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from statistics import median

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from benchmarks._figures import Figure, main
from privada.methods.summarization.learner.summary import herd
from privada.methods.summarization.questions.matching import FourierEmbedding

Matrix = npt.NDArray[np.float32]
N, FEATURES, P, WIDTH, OWNERS = 100_000, 140, 400, 256, 8


def measure(quick: bool) -> Iterator[Figure]:
    """Memory first, as a process inherits the peak of the one that starts it."""
    yield Figure("greedy_peak_gb", _peak(), 1.0, "lower", f"n={N:,}, {WIDTH} columns, p={P}", 1)
    turns = 3 if quick else 9
    H, target = _features()
    ratios = [_ratio(H, target, seed) for seed in range(turns)]
    beside = f"{P} products of the same matrix, numpy {version('numpy')}"
    yield Figure("greedy_time_vs_matvecs", median(ratios), 1.2, "lower", beside, turns)
    parallel = median(_parallel(H, target) for _ in range(turns))
    yield Figure("owners_in_parallel_vs_in_turn", parallel, None, "lower", f"{OWNERS} owners", turns)


def _features() -> tuple[Matrix, Matrix]:
    """Unit rows, as an embedding has them."""
    rng = np.random.default_rng(0)
    phases = rng.uniform(0, 2 * np.pi, size=(N, FEATURES // 2)).astype(np.float32)
    H = np.concatenate([np.cos(phases), np.sin(phases)], axis=1) / np.float32(np.sqrt(FEATURES // 2))
    return np.ascontiguousarray(H), H[:500].mean(axis=0)


def _ratio(H: Matrix, target: Matrix, seed: int) -> float:
    """Half of the bare products come before and half after: a change of pace meets both alike."""
    vectors = np.random.default_rng(seed).normal(size=(P, FEATURES)).astype(np.float32)
    before = _products(H, vectors[: P // 2])
    start = time.perf_counter()
    herd(H, target, P)
    ours = time.perf_counter() - start
    return ours / (before + _products(H, vectors[P // 2 :]))


def _products(H: Matrix, vectors: Matrix) -> float:
    out = np.empty(len(H), dtype=np.float32)
    start = time.perf_counter()
    for vector in vectors:
        np.dot(H, vector, out=out)
    return time.perf_counter() - start


def _parallel(H: Matrix, target: Matrix) -> float:
    parts = np.array_split(H, OWNERS)
    with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(OWNERS) as pool:
        start = time.perf_counter()
        for part in parts:
            herd(part, target, P // OWNERS)
        turn = time.perf_counter() - start
        start = time.perf_counter()
        list(pool.map(lambda part: herd(part, target, P // OWNERS), parts))
        return (time.perf_counter() - start) / turn


def _peak() -> float:
    """Largest resident set, in GB, of a process that chooses once."""
    code = "from benchmarks.summarization import choose_many; choose_many()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def choose_many() -> None:
    """Embed and choose among 100,000 rows; print the largest resident set so far, in GB."""
    import resource

    rows = np.random.default_rng(0).random((N, WIDTH))
    embedding = FourierEmbedding.of(width=WIDTH, n_features=FEATURES, gamma=0.01, random_state=0)
    H = embedding.transform(rows).astype(np.float32)
    herd(H, H[:500].mean(axis=0), P)
    unit = 1 if sys.platform == "darwin" else 1024
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9)


if __name__ == "__main__":
    main(measure, "Greedy herding beside bare matrix-vector products")
