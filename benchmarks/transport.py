"""The group-lasso coupling beside POT's ``SinkhornLpl1Transport``: time, and what both make small.

n = 2,000 source rows of ten classes by 1,800 target rows in 50 features, squared costs scaled to a largest
value of 1, entropic 0.01 and group 0.1 as the paper has them. POT runs with its defaults (ten rounds of at
most 200 iterations). Both start from the rows and take turns; ratios are medians over seeds.
The objective is computed for both by `transport.learner.coupling.objective`. ``..._objective_vs_pot``
is the ratio of POT's improvement on the independent coupling to ours, so that a sign cannot hide a loss;
``..._objective_ratio`` the plain one, ours over POT's. Memory is the peak of what is allocated, the costs
included, over the size of the costs: costs, one kernel and the plan make 3.
"""

from __future__ import annotations

import os
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from statistics import median

import numpy as np
import numpy.typing as npt

from benchmarks._figures import Figure, main
from privada.methods.transport.learner.coupling import group_lasso, objective

FloatArray = npt.NDArray[np.float64]
SOURCES, TARGETS, WIDTH, CLASSES = 2_000, 1_800, 50, 10
REG_E, REG_CL = 0.01, 0.1
GOALS = {"time_vs_pot": 0.3, "objective_vs_pot": 1.01, "objective_ratio": 1.01}


def measure(quick: bool) -> Iterator[Figure]:
    """Time and objective, relative to POT's."""
    os.environ.setdefault("POT_BACKEND_DISABLE_PYTORCH", "1")
    seeds = range(1 if quick else 5)
    ratios = [_pair(seed) for seed in seeds]
    beside = f"POT {version('POT')} SinkhornLpl1Transport, n={SOURCES} by {TARGETS}"
    runs = len(ratios)
    for place, (name, goal) in enumerate(GOALS.items()):
        value = median(found[place] for found in ratios)
        yield Figure(f"group_lasso_{name}", value, goal, "lower", beside, runs)
    own, theirs = _peaks()
    beside = f"POT {version('POT')} {theirs:.1f}, n={SOURCES} by {TARGETS}"
    yield Figure("group_lasso_peak_over_cost", own, 3.2, "lower", beside, 1)


def _peaks() -> tuple[float, float]:
    """Peak allocations of both, over the size of the costs, which count once."""
    import ot

    cost, y, _, _ = _case(0)
    rows, columns = (np.full(n, 1 / n) for n in cost.shape)
    solvers: list[Callable[[], object]] = [
        lambda: group_lasso(cost, y, reg_e=REG_E, reg_cl=REG_CL),
        lambda: ot.da.sinkhorn_lpl1_mm(rows, y, columns, cost, REG_E, eta=REG_CL, numItermax=2),
    ]
    found = []
    for solve in solvers:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tracemalloc.start()
            solve()
            found.append(1 + tracemalloc.get_traced_memory()[1] / cost.nbytes)
            tracemalloc.stop()
    return found[0], found[1]


def _case(seed: int) -> tuple[FloatArray, npt.NDArray[np.int64], FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    middles = rng.normal(size=(CLASSES, WIDTH))
    y = rng.integers(CLASSES, size=SOURCES)
    S = middles[y] + 0.7 * rng.normal(size=(SOURCES, WIDTH))
    T = middles[rng.integers(CLASSES, size=TARGETS)] + 0.7 * rng.normal(size=(TARGETS, WIDTH)) + 0.3
    return _cost(S, T), y, S, T


def _cost(S: FloatArray, T: FloatArray) -> FloatArray:
    from scipy.spatial.distance import cdist

    cost = np.asarray(cdist(S, T, "sqeuclidean"))
    return np.asarray(cost / cost.max())


def _pair(seed: int) -> tuple[float, float, float]:
    import ot

    cost, y, S, T = _case(seed)
    start = time.perf_counter()
    ours = group_lasso(_cost(S, T), y, reg_e=REG_E, reg_cl=REG_CL)
    own_time = time.perf_counter() - start
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ot.da.SinkhornLpl1Transport(reg_e=REG_E, reg_cl=REG_CL, norm="max")
        start = time.perf_counter()
        theirs = model.fit(Xs=S, ys=y, Xt=T).coupling_
        their_time = time.perf_counter() - start
    worst = np.full(cost.shape, 1 / cost.size)
    value = [
        objective(np.asarray(plan), cost, y, reg_e=REG_E, reg_cl=REG_CL) for plan in (ours, theirs, worst)
    ]
    improvement = (value[2] - value[1]) / (value[2] - value[0])
    return own_time / their_time, improvement, value[0] / value[1]


if __name__ == "__main__":
    main(measure, "The group-lasso coupling beside POT")
