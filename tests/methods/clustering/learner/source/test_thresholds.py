"""Thresholds that empty cells stay below."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from privada.methods.clustering import (
    LocalMeans,
    NearestMeans,
    count_threshold,
)
from privada.methods.clustering.learner.source.thresholds import threshold
from privada.privacy import ZCDP, ApproxDP, PureDP
from privada.privacy.mechanism import Gaussian, KNormCylinder, Laplace

PURE, RHO = PureDP(epsilon=3, relation="add/remove"), ZCDP(rho=3, relation="add/remove")


APPROXIMATE = ApproxDP(epsilon=3, delta=1e-5, relation="add/remove")


CELLS = np.array([[-0.3, -0.2], [0.3, -0.2], [0.0, 0.3], [0.2, 0.1]])


def local(guarantee=RHO, **more):
    return LocalMeans(
        **{"cells": CELLS, "shells": [0.05, 0.1, 0.3], "domain": 0.5, "guarantee": guarantee} | more
    )


@pytest.mark.statistical
@pytest.mark.parametrize("gamma", [0.05, 0.3])
@pytest.mark.parametrize(
    "question",
    [
        NearestMeans(cells=np.zeros((20, 2)), radius=0.5, guarantee=PURE),
        NearestMeans(cells=np.zeros((20, 2)), radius=0.5, noise="k-norm", guarantee=PURE),
        NearestMeans(cells=np.zeros((20, 2)), radius=0.5, guarantee=RHO),
        NearestMeans(cells=np.zeros((20, 2)), radius=0.5, guarantee=APPROXIMATE),
        LocalMeans(cells=np.zeros((10, 2)), shells=[0.1, 0.2], domain=0.5, guarantee=PURE),
        LocalMeans(cells=np.zeros((10, 2)), shells=[0.1, 0.2], domain=0.5, moments="full", guarantee=RHO),
    ],
    ids=lambda q: f"{q.kind}-{q.guarantee}",
)
def test_empty_cells_pass_with_the_stated_probability_at_most(question, gamma, rehearsal):
    """1e4 runs without a source; false alarm 1e-4 for each."""
    runs, cells = 10_000, 20
    if "table" in question.plan.draws:
        draws = (
            question.plan.draws["table"].draw(np.zeros((runs * cells, 3)), rehearsal)[:, 0] * question.moves
        )
        counts = draws.reshape(runs, cells)
    else:
        counts = question.plan.draws["counts"].draw(np.zeros((runs, cells), dtype=np.int64), rehearsal)
    passed = np.sum((counts >= count_threshold(question, gamma=gamma)).any(axis=1))
    assert passed <= binom.ppf(1 - 1e-4, runs, gamma)
    assert passed >= 1, "a threshold that nothing ever passes is too high"


def test_thresholds_are_those_of_the_lattice():
    """The specification's b ln(N/2γ) is for continuous noise: on whole numbers it lets too many pass."""
    coarse, gamma = Laplace(sensitivity=1, scale=1.0), 0.5005 * math.exp(-2)
    passes = {h: math.exp(-h) / (1 + math.exp(-1)) for h in range(9)}
    h = threshold(coarse, cells=1, gamma=gamma, width=2)
    assert passes[h] <= gamma < passes[h - 1]
    assert passes[math.ceil(math.log(1 / (2 * gamma)))] > 1.4 * gamma
    fine = Laplace(sensitivity=1, scale=1e4)
    assert threshold(fine, cells=100, gamma=0.05, width=2) == pytest.approx(1e4 * math.log(1000), rel=1e-4)
    normal = Gaussian.calibrated(sensitivity=1, mu=0.5)
    assert threshold(normal, cells=100, gamma=0.05, width=2) == pytest.approx(2 * 3.2905, rel=1e-4)
    wide = KNormCylinder(sensitivity=1.0, budget=1.0)
    assert threshold(wide, cells=1, gamma=0.6, width=2) == 0
    assert threshold(wide, cells=10, gamma=0.1, width=8) > threshold(wide, cells=10, gamma=0.1, width=2)
