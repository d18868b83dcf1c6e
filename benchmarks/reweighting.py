"""One gradient beside one pass over memory, and the discrepancy beside DCA.

Gradient: rows of d = 133 features in single precision, 1 GB of them (quick: 0.3 GB), more than any cache
holds; and, printed beside, the m = 16,000 and n = 35,000 rows of the paper's tables, which some caches hold.
*Ours* is the kernel by
which an owner answers a step: score, clipped pull and contribution of every row in whole grid steps. *One
pass* is the time that reading the same rows takes: the sum of all entries on the same two threads. Both walk
over several copies of the rows and take turns; in each turn the least time of each
counts, for other work on the machine only adds, and the figure is the median of the turns' ratios, for other
work comes and goes. NumPy's two products are beside, timed afterwards so that its threads are at rest before.

Discrepancy: d = 133, second moments of two samples ready made for both, one thread each. DCA gets one start
for each sign, and its value must be reached: the ratio counts only where ours is at least as large.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

import numba
import numpy as np

from benchmarks._figures import Figure, main
from privada._threads import count_processors, run_each
from privada.methods.linear.owner import Singles, add_pulls
from privada.methods.reweighting.questions.supremum import moments, of_moments
from privada_lab.baselines.dca import dca_discrepancy

ROWS, WIDTH = 16_000 + 35_000, 133
LARGE = 40  # times the rows: 1.08 GB
COPIES = 5
BOUND, PER_STEP = 0.5, 2.0**19


def measure(quick: bool) -> Iterator[Figure]:
    """Both figures."""
    large = LARGE // 4 if quick else LARGE
    cached = _gradient(ROWS, COPIES, turns=40 if quick else 200)
    found = _gradient(large * ROWS, 1, turns=10 if quick else 40)
    beside = f"{found.beside}; cached, {cached.value:.2f} times {cached.beside}"
    yield Figure(found.figure, found.value, found.goal, found.better, beside, found.runs)
    yield _discrepancy(runs=3 if quick else 10)


def _gradient(size: int, copies_made: int, turns: int) -> Figure:
    rng = np.random.default_rng(0)
    made = (rng.normal(size=(size, WIDTH)) / WIDTH**0.5 for _ in range(copies_made))
    copies = [Singles.of(Z, bound=BOUND, per_step=PER_STEP) for Z in made]
    base, y = rng.normal(size=(2, size))
    v = rng.normal(size=WIDTH).astype(np.float32)
    ways: dict[str, Callable[[Any], Any]] = {
        "pass": lambda singles: _read(singles.rows),
        "ours": lambda singles: _answered(singles, base, y, v),
        "numpy": lambda singles: _products(singles, (base - y).astype(np.float32), v),
    }

    def least(name: str) -> float:
        return min(_timed(partial(ways[name], singles)) for singles in copies)

    assert np.allclose(
        ways["ours"](copies[0]) / PER_STEP, ways["numpy"](copies[0]), rtol=1e-3, atol=0.2 * size / ROWS
    )
    time.sleep(0.5)  # NumPy's threads may wait busily for a while
    pairs = [(least("ours"), least("pass")) for _ in range(turns)]
    ratio, usual = median(ours / read for ours, read in pairs), median(read for _, read in pairs)
    products = median(least("numpy") for _ in range(turns // 4))
    beside = (
        f"a pass of {copies[0].rows.nbytes / 1e6:.0f} MB in {1e3 * usual:.2f} ms; "
        f"numpy's two products {products / usual:.2f} times"
    )
    return Figure("iteration_time_vs_memory_pass", ratio, 1.3, "lower", beside, turns)


def _answered(singles: Singles, base: Any, y: Any, v: Any) -> Any:
    sums = np.zeros(WIDTH, dtype=np.int64)
    add_pulls(sums, singles, base, y, v, loss="squared", threshold=BOUND)
    return sums


def _products(singles: Singles, left: Any, v: Any) -> Any:
    caps = singles.caps.astype(np.float32)
    return singles.rows.T @ np.clip(singles.rows @ v + left, -caps, caps)


@numba.njit(cache=True, nogil=True, fastmath=True)  # type: ignore[untyped-decorator, unused-ignore]
def _sum(flat: Any) -> Any:  # pragma: no cover - compiled
    total = np.float32(0.0)
    for i in range(flat.shape[0]):
        total += flat[i]
    return total


def _read(X: Any) -> float:
    flat = X.reshape(-1)
    sums: list[float] = []
    run_each(lambda part: sums.append(float(_sum(part))), np.array_split(flat, count_processors()))
    return sum(sums)


def _timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _discrepancy(runs: int) -> Figure:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return _against_dca(runs)


def _against_dca(runs: int) -> Figure:
    ratios, reached = [], []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        scales = 10 ** rng.uniform(-2, 0, size=WIDTH)
        w = rng.normal(size=WIDTH)
        S, T = (rng.normal(size=(4000, WIDTH)) * scales for _ in range(2))
        source, target = moments(S, S @ w), moments(T, T @ (w + 0.1 * rng.normal(size=WIDTH)))
        exact = of_moments(target - source, 2.0).value
        ours = min(_timed(partial(of_moments, target - source, 2.0)) for _ in range(10))
        start = time.perf_counter()
        found = dca_discrepancy(target, source, 2.0)
        ratios.append((time.perf_counter() - start) / ours)
        assert exact >= found * (1 - 1e-9)
        reached.append(found / exact)
    beside = f"DCA from one start, d={WIDTH}; it reaches {median(reached):.6f} of the exact value"
    return Figure("discrepancy_speedup_vs_dca", median(ratios), 100.0, "higher", beside, runs)


if __name__ == "__main__":
    main(measure, "One gradient beside one pass over memory; the discrepancy beside DCA")
