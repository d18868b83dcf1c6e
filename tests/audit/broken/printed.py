"""Mechanisms as papers print them, with the guarantees that they print."""

import math

import numpy as np

from privada.privacy import ApproxDP, Gaussian, Laplace, PureDP
from privada.privacy.accounting import curves

from .exhibit import FINE, ONE_REPLACED, exhibit, features, labels, rows, schema

WIDTH = 4
BALL = schema(bounds=(-0.5, 0.5), width=WIDTH)
POINTS = rows(24, bounds=(-0.5, 0.5), width=WIDTH)
SCALE = math.sqrt(WIDTH) + 1
MU = curves.gaussian_mu(epsilon=1.0, delta=1e-5)


@exhibit(
    draws={"errors": Laplace(sensitivity=1, scale=66.0, grid=FINE)},
    guarantee=PureDP(epsilon=1 / 66, relation="add/remove"),
)
def ratio_of_errors(question, rows, draw):
    """EXPRIL's ratio: a noisy number of errors over the exact number of rows, cut to [0, 1]."""
    wrong = (features(rows)[:, 0] > 0.5).astype(np.int64) != labels(rows)
    noisy = draw("errors", np.array([int(wrong.sum()) << 10]))
    return {"ratio": np.clip(noisy / len(wrong), 0, 1) if len(wrong) else np.full(1, np.nan)}


@exhibit(
    draws={
        "count": Laplace(sensitivity=1, scale=SCALE, grid=FINE),
        "sum": Laplace(sensitivity=math.sqrt(WIDTH), scale=SCALE, grid=FINE),
    },
    guarantee=ONE_REPLACED,
    schema=BALL,
    data=POINTS,
)
def neighbour_averages_under_replacement(question, rows, draw):
    """NNA's printed noise is that of one added row; a replaced one moves two cells and twice as far."""
    X = features(rows)
    left = X[:, 0] < 0
    counts = np.array([left.sum(), (~left).sum()]) << 10
    sums = np.stack([FINE.truncate(X[side]).sum(axis=0) for side in (left, ~left)])
    return {"count": draw("count", counts), "sum": draw("sum", sums)}


@exhibit(
    draws={"rows": Gaussian.calibrated(sensitivity=2.1, mu=MU, grid=FINE)},
    guarantee=ApproxDP(epsilon=1.0, delta=1e-5, relation="replace-one"),
    schema=schema(bounds=(-0.5, 0.5), width=WIDTH, size=24, classes=(0, 1, 2)),
    data=rows(24, bounds=(-0.5, 0.5), width=WIDTH, classes=3),
)
def rows_sorted_by_label(question, rows, draw):
    """DPDA's printed release: noisy rows stand in the order of their labels, which are thereby told."""
    order = np.argsort(labels(rows), kind="stable")
    return {"rows": draw("rows", FINE.truncate(features(rows)[order]))}


@exhibit(
    draws={"rows": Gaussian.calibrated(sensitivity=2.1, mu=MU, grid=FINE)},
    guarantee=ApproxDP(epsilon=1.0, delta=1e-5, relation="replace-one"),
    schema=schema(bounds=(-0.5, 0.5), width=WIDTH, size=24),
    data=rows(24, bounds=(-0.5, 0.5), width=WIDTH),
)
def labels_in_an_order(question, rows, draw):
    """Rows have noise and are shuffled; their labels are released exactly, in sorted order."""
    order = draw.noise.permutation(24)
    return {"rows": draw("rows", FINE.truncate(features(rows)[order])), "labels": np.sort(labels(rows))}
