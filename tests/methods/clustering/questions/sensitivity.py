"""What the tests of clustering's questions share: exact answers, and the privacy loss between two of them."""

import math

import numpy as np

from privada.parties import Rows, Schema
from privada.parties.answering import answerer
from privada.privacy import ZCDP, KNorm, PureDP
from privada.privacy.accounting import accountant
from privada.privacy.mechanism import KNormCylinder, Lattice

SCHEMA = Schema.of_numbers(bounds=(-1e7, 1e7), width=2)
CELLS = np.array([[-0.25, 0.0], [0.25, 0.0], [0.25, 0.0], [0.0, 0.4]])  # equidistant, and one twice
PURE, RHO = PureDP(epsilon=1, relation="add/remove"), ZCDP(rho=0.5, relation="add/remove")


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


def noise_variances(question):
    """Noise variance of a count and of a coordinate of a sum of `NearestMeans`."""
    draws = question.plan.draws
    if "table" not in draws:
        return draws["counts"].variance, draws["sums"].variance
    d = question.cells.shape[1]
    unit = (question.moves / draws["table"].budget) ** 2 * (d + 3)  # privacy.md, section 1 (d)
    return unit * (d + 2) / 3, unit * question.radius**2
