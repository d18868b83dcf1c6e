"""Scores on generated domains."""

import numpy as np
import pytest

from privada_lab.datasets.adaptation import BENCHMARKS, Domain
from privada_lab.experiments import transport
from privada_lab.experiments.transport import accuracies, headline


def _domain(name, seed, n=80, width=30):
    rng = np.random.default_rng(seed)
    y = rng.integers(10, size=n)
    X = 4 * np.abs(np.random.default_rng(9).normal(size=(10, width)))[y] + np.abs(rng.normal(size=(n, width)))
    return Domain(name, X, y)


def _domains(benchmark, n=80):
    return {name: _domain(name, i, n) for i, name in enumerate(BENCHMARKS[benchmark].domains)}


@pytest.fixture(scope="session")
def domain():
    """Make a domain of ten classes from a name and a seed."""
    return _domain


@pytest.fixture(scope="session")
def domains():
    """Make all domains of a benchmark."""
    return _domains


@pytest.fixture(scope="session")
def scores():
    with pytest.MonkeyPatch.context() as patch:  # one run of everything, to save time
        for module in (accuracies, headline):
            patch.setattr(module, "QUICK", 0)
        patch.setattr(accuracies, "has_network", lambda: False)  # test_contenders has one
        return transport.benchmark("googlenet", _domains("googlenet"), 1)


@pytest.fixture(scope="session")
def quick():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accuracies, "has_network", lambda: False)
        return transport.benchmark("googlenet", _domains("googlenet"), 1)
