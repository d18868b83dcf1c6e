"""A million discrete Gaussian draws at sigma = 1000 grid steps: `SecureNoise` beside OpenDP.

Both sides draw the same law, ours from the operating system's words and OpenDP from OpenSSL's
generator, in one process, one after the other. OpenDP adds it to a sized vector of zeros with
``k=-40``, that is on the grid of step ``2**-40``, so its scale is ``1000 * 2**-40``. Ours is the
median of several runs after a first one, which builds the tables; OpenDP's is one run. The quick
version lets OpenDP draw a tenth, multiplies its time by ten, and says so in ``beside``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from statistics import median

from benchmarks._figures import Figure, main
from privada.privacy.noise import SecureNoise

DRAWS = 1_000_000
SIGMA = 1000.0
GRID = -40


def measure(quick: bool) -> Iterator[Figure]:
    """Time both sides."""
    runs = 5 if quick else 15
    peer_draws = DRAWS // 10 if quick else DRAWS
    source = SecureNoise()
    source.discrete_gaussian(SIGMA, DRAWS)
    ours = median(_seconds(lambda: source.discrete_gaussian(SIGMA, DRAWS)) for _ in range(runs))
    theirs = _seconds(_opendp(peer_draws)) * DRAWS / peer_draws
    beside = f"opendp {version('opendp')} make_gaussian k={GRID}"
    note = f" ({peer_draws:,} draws, time scaled)" if quick else ""
    yield Figure("gaussian_million_speedup_vs_opendp", theirs / ours, 100, "higher", beside + note, runs)


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _opendp(draws: int) -> Callable[[], object]:
    import opendp.domains
    import opendp.measurements
    import opendp.metrics
    import opendp.mod

    opendp.mod.enable_features("contrib")
    domain = opendp.domains.vector_domain(opendp.domains.atom_domain(T="f64", nan=False), size=draws)
    metric = opendp.metrics.l2_distance(T="f64")
    mechanism = opendp.measurements.make_gaussian(domain, metric, SIGMA * 2.0**GRID, k=GRID)
    zeros = [0.0] * draws
    return lambda: mechanism(zeros)


if __name__ == "__main__":
    main(measure, "Exact noise beside OpenDP")
