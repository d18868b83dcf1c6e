"""Both forms of a problem: a matrix of distances, and points alone."""

import numpy as np
import pytest

from privada.methods.clustering.learner.solver import problem, solve
from privada.methods.clustering.learner.solver.objective import source_distances
from privada.methods.clustering.learner.solver.solve import medoids


def instance(seed, n=200, width=2, sources=20, spread=0.05):
    """Clumps of target points, some of them near the source; n points, distinct with probability 1."""
    rng = np.random.default_rng(seed)
    middles = rng.random((12, width))
    T = middles[rng.integers(12, size=n)] + spread * rng.normal(size=(n, width))
    S = middles[rng.integers(6, size=sources)] + 0.1 * rng.normal(size=(sources, width))
    return T, source_distances(T, S), rng


def test_both_forms_of_a_problem_have_the_same_solution(monkeypatch):
    T, caps, _ = instance(9, n=500, width=5)
    found = []
    for matrix in (True, False):
        monkeypatch.setattr(solve, "_pays_off", lambda n, width, answer=matrix: answer)
        found.append(medoids(T, 12, caps=caps).indices.tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("width", [2, 16])
def test_no_matrix_above_20_000_points(monkeypatch, width):
    def refuse(*_):
        raise AssertionError("a matrix")

    monkeypatch.setattr(problem.MatrixProblem, "__init__", refuse)
    T = np.random.default_rng(13).normal(size=(solve.LARGEST_MATRIX + 1, width))
    assert len(medoids(T, 2, random_state=0).indices) == 2
