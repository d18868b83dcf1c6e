"""The k-medoids solver beside FasterPAM, its memory for many points, and sanitising a large source.

Solver: n = 10,000 target points in d = 8, k = 70, caps from a source of 5,000
points; three kinds of data, each with several seeds. *Ours* goes from points and
caps to indices, every distance included. *FasterPAM* (`kmedoids.fasterpam`,
random start, at most 100 iterations) gets the capped float32 matrix ready made, so
the making of it counts for nobody but us: rows are points and columns candidates,
the orientation in which it solves the same problem. It runs once on one thread
and once on all, and its better time counts. Both take turns, after a first run of
ours that compiles. The cost of either choice is computed by `objective.cost`, and
ratios are medians over the runs. *AkM*, the accelerated k-medoids of de Mathelin et al. 2022 that the
paper uses, is our own writing of it in NumPy (`privada_lab.baselines.accelerated_medoids`: its authors
publish no package), from points and caps as ours; its time says less than its cost.

Memory: the largest resident set of a process of its own, interpreter included,
that chooses 70 of 100,000 points in d = 8.

FasterPAM's package is under the GPL: it is needed here only, and never installed
with privada: ``pip install kmedoids==0.5.5``.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks._figures import Figure, main
from privada.methods.clustering.learner.medoids import cost, medoids, source_distances

FloatArray = npt.NDArray[np.float64]

N, MANY, WIDTH, K, SOURCES = 10_000, 100_000, 8, 70, 5_000


def measure(quick: bool) -> Iterator[Figure]:
    """All figures whose peers are installed; how to install the others is said on standard error."""
    # First, as a process inherits the peak of the one that starts it.
    yield Figure("solver_100k_peak_gb", _peak(), 2.0, "lower", f"n={MANY:,}, k={K}, d={WIDTH}", 1)
    if _there("kmedoids", "kmedoids==0.5.5"):
        yield from _beside_fasterpam(seeds=1 if quick else 3)
    yield from _beside_accelerated(seeds=1 if quick else 3)
    yield from _sanitising(quick)


# The solver beside FasterPAM


def _two_gaussians(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
    """Make Synthetic 1 in more dimensions: no clusters at all."""
    return rng.normal(0.95, 0.4, size=(n, WIDTH)), rng.normal(0.15, 0.4, size=(SOURCES, WIDTH))


def _random_clusters(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
    """Make Synthetic 3 in more dimensions: 12 narrow target clusters, 6 source clusters elsewhere."""
    return _mixture(rng, rng.random((12, WIDTH)), n, 0.01), _mixture(
        rng, rng.random((6, WIDTH)), SOURCES, 0.03
    )


def _shared_clusters(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
    """Mix 100 wide clusters of which the source has half."""
    middles = rng.random((100, WIDTH))
    return _mixture(rng, middles, n, 0.1), _mixture(rng, middles[:50], SOURCES, 0.1)


def _mixture(rng: np.random.Generator, middles: FloatArray, n: int, spread: float) -> FloatArray:
    return middles[rng.integers(len(middles), size=n)] + spread * rng.normal(size=(n, WIDTH))


KINDS = (_two_gaussians, _random_clusters, _shared_clusters)


def _beside_fasterpam(seeds: int) -> Iterator[Figure]:
    warm, _ = _two_gaussians(np.random.default_rng(0), 5_000)
    medoids(warm, 5)
    pairs = [_pair(make, seed) for seed in range(seeds) for make in KINDS]
    beside, runs = f"kmedoids.fasterpam {version('kmedoids')}", len(pairs)
    yield Figure("solver_time_vs_fasterpam", median(t for t, _ in pairs), 0.25, "lower", beside, runs)
    yield Figure("solver_cost_vs_fasterpam", median(c for _, c in pairs), 1.002, "lower", beside, runs)


def _pair(
    make: Callable[[np.random.Generator, int], tuple[FloatArray, FloatArray]], seed: int
) -> tuple[float, float]:
    """Ratios of time and of cost on one data set."""
    T, S = make(np.random.default_rng(seed), N)
    caps = source_distances(T, S)
    ours, solution = _timed(lambda: medoids(T, K, caps=caps))
    theirs, chosen = _fasterpam(_capped(T, caps), seed)
    return ours / theirs, solution.cost / cost(T, S, T[chosen])


def _beside_accelerated(seeds: int) -> Iterator[Figure]:
    from privada_lab.baselines.accelerated_medoids import accelerated_medoids

    times, costs = [], []
    for seed, make in ((seed, make) for seed in range(seeds) for make in KINDS):
        T, S = make(np.random.default_rng(seed), N)
        caps = source_distances(T, S)
        ours, solution = _timed(partial(medoids, T, K, caps=caps))
        theirs, chosen = _timed(partial(accelerated_medoids, T, K, caps=caps, random_state=seed))
        times.append(ours / theirs)
        costs.append(solution.cost / cost(T, S, T[chosen]))
    beside = "accelerated k-medoids (de Mathelin et al. 2022), our writing"
    yield Figure("solver_time_vs_accelerated", median(times), None, "lower", beside, len(times))
    yield Figure("solver_cost_vs_accelerated", median(costs), 1.0, "lower", beside, len(costs))


def _capped(T: FloatArray, caps: FloatArray) -> npt.NDArray[np.float32]:
    """What point i (row) pays to candidate j (column)."""
    from scipy.spatial.distance import cdist

    paid = np.empty((len(T), len(T)), dtype=np.float32)
    for i in range(0, len(T), 1000):
        rows = slice(i, i + 1000)
        paid[rows] = np.minimum(cdist(T[rows], T), caps[rows, None])
    return paid


def _fasterpam(paid: npt.NDArray[np.float32], seed: int) -> tuple[float, npt.NDArray[np.int64]]:
    """Better time of one thread and all threads, and the centres."""
    solve = partial(import_module("kmedoids").fasterpam, paid, K, max_iter=100, init="random")
    best, result = np.inf, None
    for threads in (1, -1):
        taken, found = _timed(partial(solve, random_state=seed, n_cpu=threads))
        if taken < best:
            best, result = taken, found
    assert result is not None
    return best, np.asarray(result.medoids, dtype=np.int64)


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


# Memory for many points


def _peak() -> float:
    """Largest resident set, in GB, of a process that solves the large problem once."""
    code = "from benchmarks.clustering import solve_many; solve_many()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def solve_many() -> None:
    """Choose among 100,000 points and print the largest resident set so far, in GB."""
    import resource

    T, S = _shared_clusters(np.random.default_rng(0), MANY)
    medoids(T, K, caps=source_distances(T, S), random_state=0)
    unit = 1 if sys.platform == "darwin" else 1024
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9)


# Sanitising: `_sanitise.figures` yields sanitise_time_vs_bare_query and sanitise_peak_gb


def _sanitising(quick: bool) -> Iterator[Figure]:
    if find_spec("benchmarks._sanitise") and _there("faiss", "faiss-cpu"):
        yield from import_module("benchmarks._sanitise").figures(quick)


def _there(module: str, requirement: str) -> bool:
    """Whether a peer is installed; say how to install it if not."""
    if find_spec(module):
        return True
    print(f"{module} is not installed, its figures are left out: pip install {requirement}", file=sys.stderr)
    return False


if __name__ == "__main__":
    main(measure, "The clustering solver beside FasterPAM")
