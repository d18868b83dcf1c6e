"""Local means at the ends of what floats can hold."""

import math
from dataclasses import replace

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.clustering import LocalMeans, NearestMeans, NeighbourAverages
from privada.parties import Rows, Schema
from privada.parties.answering import answerer
from privada.privacy import ZCDP, Approximate, KNorm, Pure
from privada.privacy.accounting import accountant
from privada.privacy.mechanism import KNormCylinder, Lattice

SCHEMA = Schema.of_numbers(bounds=(-1e7, 1e7), width=2)


CELLS = np.array([[-0.25, 0.0], [0.25, 0.0], [0.25, 0.0], [0.0, 0.4]])  # equidistant, and one twice


ROOT = math.sqrt(0.125)


RECORDS = np.array(
    [
        [0.0, 0.0],  # ties between cells
        [-0.5, 0.0],
        [0.5, 0.0],
        [ROOT, ROOT],
        [-ROOT, -ROOT],
        [0.25, 0.0],
        [0.25 + 0.19999 * ROOT, 0.19999 * ROOT],
        [0.25 - 0.19999 * ROOT, -0.19999 * ROOT],
        [-0.25 + 0.19999 * ROOT, 0.19999 * ROOT],
        [1e6, -1e6],
        [-1e6, 1e6],
        [1e-9, 0.3333],
    ]
)


PURE, RHO = Pure(epsilon=1, relation="add/remove"), ZCDP(rho=0.5, relation="add/remove")


GUARANTEES = [
    PURE,
    replace(PURE, relation="replace-one"),
    RHO,
    replace(RHO, relation="replace-one"),
    Approximate(epsilon=2, delta=1e-5, relation="replace-one"),
]


def exact(question, X):
    """What is noised, in value units."""
    seen = {}

    def draw(name, steps):
        mechanism = question.plan.draws[name]
        seen[name] = mechanism.grid.values(steps) if isinstance(mechanism, Lattice) else steps
        return seen[name]

    answerer(question)(question, Rows(np.reshape(X, (-1, 2)), schema=SCHEMA), draw)
    return seen


def loss(question, here, there):
    """Joint privacy loss of all draws as a share of what the plan allows."""
    plan, total = question.plan, 0.0
    for name, draw in plan.draws.items():
        moved = here[name] - there[name]
        if isinstance(draw, KNormCylinder):
            norms = np.maximum(np.abs(moved[:, 0]), np.linalg.norm(moved[:, 1:], axis=1))
            total += norms.sum() * draw.budget
        elif isinstance(draw, KNorm):
            total += np.linalg.norm(moved) / draw.sensitivity * draw.budget
        elif plan.epsilon is not None:
            total += np.abs(moved).sum() / draw.scale
        else:
            total += (np.linalg.norm(moved) / draw.scale) ** 2
    if plan.epsilon is not None:
        return total / plan.epsilon
    return math.sqrt(total) / accountant.gaussian_mu(plan.event)


@pytest.mark.parametrize("size", [1e-99, 1e-30, 1e30, 1e99])
@pytest.mark.parametrize("moments", ["none", "trace", "full", "pooled"])
def test_no_size_of_the_public_parameters_breaks_the_sensitivity(size, moments):
    """The largest and smallest units, rows on centres, on the edge, and as far as floats go."""
    schema = Schema.of_numbers(bounds=(-1.7e308, 1.7e308), width=2)
    cells = np.array([[0.0, 0.0], [3.0, 0.0]]) * size
    unit = {"guarantee": Pure(epsilon=1, relation="add/remove")}
    for question in (
        LocalMeans(cells=cells, shells=[size, 1.5 * size], domain=size, moments=moments, **unit),
        NeighbourAverages(targets=cells, t=1, radius=size, **unit),
        NearestMeans(cells=cells, radius=size, **unit),
    ):
        if not -60 < np.log2(size) - 20 < 60 and not isinstance(question, LocalMeans):
            with pytest.raises(InputError):
                question.price
            continue
        for row in ([0, 0], [size, 0], [0.99 * size, 0.1 * size], [1.7e308, -1.7e308], [-1.7e308, 1e-300]):
            seen = {}
            rows = Rows(np.array([row], dtype=float), schema=schema)
            answerer(question)(question, rows, lambda n, v, seen=seen: seen.setdefault(n, v.copy()))
            for name, draw in question.plan.draws.items():
                assert np.abs(draw.grid.values(seen[name])).sum() <= draw.sensitivity * (1 + 1e-12)
