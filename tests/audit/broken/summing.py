"""Sums of bounded values."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privada.privacy import ApproxDP, Gaussian, Grid, Laplace, PureDP
from privada.privacy.accounting import curves

from .exhibit import FINE, ONE, ONE_REPLACED, exhibit, features, rows, schema

COARSE = Grid(-2)
SUM = {"sum": Laplace(sensitivity=1 + 2**-10, scale=1.0 + 2**-10, grid=FINE)}
MU = curves.gaussian_mu(epsilon=1.0, delta=1e-5)
HALF = PureDP(epsilon=0.5, relation="add/remove")
WIDE = schema(bounds=(-10.0, 10.0))
HALVES = {"data": np.linspace(0, 1, 24)[:, None], "y": np.arange(24) % 2}


@exhibit(draws=SUM, guarantee=ONE_REPLACED, schema=WIDE, data=rows(bounds=(-10, 10)))
def clipped_after_summing(question, rows, draw):
    """The sum is clipped to [-1, 1], the rows are not: a replaced row moves it by 2."""
    return {"sum": draw("sum", FINE.truncate(np.clip(features(rows).sum(axis=0), -1, 1)))}


@exhibit(draws=SUM)
def bounds_of_the_batch(question, rows, draw):
    """Rows are scaled by the least and the largest of their batch: one outlier moves all."""
    X = features(rows)
    low, high = (X.min(), X.max()) if len(X) else (0.0, 1.0)
    return {"sum": draw("sum", FINE.truncate((X - low) / max(high - low, 1e-9)).sum(axis=0))}


@exhibit(draws=SUM)
def scaled_by_the_private_maximum(question, rows, draw):
    """Rows are divided by the largest private value."""
    X = features(rows)
    return {"sum": draw("sum", FINE.truncate(X / max(X.max(initial=0), 1e-9)).sum(axis=0))}


@exhibit(draws=SUM)
def exact_denominator(question, rows, draw):
    """A noisy sum over the exact number of rows: multiples of 1/n tell n."""
    X = features(rows)
    return {"mean": draw("sum", FINE.truncate(X).sum(axis=0)) / max(len(X), 1)}


@exhibit(
    draws={"sum": Laplace.calibrated(sensitivity=0.9, epsilon=1.0, grid=COARSE)},
    schema=schema(bounds=(0.0, 0.9)),
    data=rows(bounds=(0, 0.9)),
)
def rounded_to_nearest(question, rows, draw):
    """0.9 is within the bound 0.9 and is rounded to 1, a multiple of 1/4; truncation would not do that."""
    return {"sum": draw("sum", np.rint(features(rows) / COARSE.step).astype(np.int64).sum(axis=0))}


@exhibit(
    draws={"sum": Laplace(sensitivity=0.1, scale=0.1, grid=FINE)},
    guarantee=ONE_REPLACED,
    schema=schema(bounds=(0.95, 1.05)),
    data=rows(bounds=(0.95, 1.05)),
)
def truncated_difference(question, rows, draw):
    """0.95 and 1.05 differ by 0.1, the whole steps below them by 1: a difference needs a step of slack."""
    return {"sum": draw("sum", np.floor(features(rows)).astype(np.int64).sum(axis=0) << 10)}


@exhibit(
    draws={"sum": Laplace(sensitivity=2, scale=2.0)},
    schema=schema(bounds=(0.0, 2.0)),
    data={"data": np.ones((24, 1)), "y": np.arange(24) % 2},
)
def order_of_float_sums(question, rows, draw):
    """A running float32 sum rounds ties to even: one first row decides how all later ones are rounded."""
    total = np.float32(2**24)
    for value in features(rows)[:, 0].astype(np.float32):
        total = np.float32(total + value)
    return {"sum": draw("sum", np.array([int(total) - 2**24]))}


@exhibit(
    draws={"sums": Gaussian.calibrated(sensitivity=1, mu=MU, grid=FINE)},
    guarantee=ApproxDP(epsilon=1.0, delta=1e-5, relation="add/remove"),
    schema=schema(width=6),
    data=rows(width=6),
)
def one_coordinate_s_sensitivity(question, rows, draw):
    """Six coordinates move by up to 1 each; the declared L2 sensitivity is that of one."""
    return {"sums": draw("sums", FINE.truncate(features(rows)).sum(axis=0))}


@exhibit(
    draws={"sum": Laplace(sensitivity=1, scale=1.0, grid=FINE)},
    guarantee=PureDP(epsilon=0.5, relation="add/remove"),
)
def cheaper_than_its_plan(question, rows, draw):
    """The plan costs ε = 1, the guarantee says 0.5."""
    return {"sum": draw("sum", FINE.truncate(features(rows)).sum(axis=0))}


@exhibit(draws=SUM, guarantee=ONE, data=HALVES)
def fails_on_some_rows(question, rows, draw):
    """An answer that fails where a value is at its bound tells of that value."""
    X = features(rows)
    if len(X) and X.max() >= 1.0 and X.min() > 0.0:
        raise ValueError("a value is at its bound")
    return {"sum": draw("sum", FINE.truncate(X).sum(axis=0))}


@dataclass(frozen=True)
class Step:
    """A function of the rows, and the bound of its result from that of its input, as its author states it."""

    apply: Callable
    bound: Callable


CLIPPED = Step(lambda X: np.clip(X, 0.0, 1.0), lambda _: 1.0)
REDEFINED = Step(lambda X: 4 * X, lambda bound: bound)  # the bound is that of the column as it was before
HALVED = Step(lambda X: np.clip(X, 0.0, 1.0) / 2, lambda _: 0.5)
DOUBLED = Step(lambda X: 2 * X, lambda bound: bound)  # a refactoring lost the factor that was here
TENTH = Step(lambda X: np.clip(X, 0.0, 0.1), lambda _: 0.1)


def bound_of(steps):
    bound = math.inf
    for step in steps:
        bound = step.bound(bound)
    return bound


def total_of(steps, X):
    for step in steps:
        X = step.apply(X)
    return FINE.truncate(X).sum(axis=0)


def pipeline(*steps):
    bound = bound_of(steps)
    return {"sum": Laplace.calibrated(sensitivity=bound, epsilon=1.0, grid=FINE)}


@exhibit(draws=pipeline(CLIPPED, REDEFINED), schema=WIDE, data=rows(bounds=(-10, 10)))
def bound_of_a_column_that_was_redefined(question, rows, draw):
    """A column is clipped and then redefined; its sum is priced by the bound from before."""
    return {"sum": draw("sum", total_of((CLIPPED, REDEFINED), features(rows)))}


@exhibit(draws=pipeline(HALVED, DOUBLED, TENTH, DOUBLED))
def factor_that_a_refactoring_lost(question, rows, draw):
    """The bound of a chain of steps forgets the factor of one of them."""
    return {"sum": draw("sum", total_of((HALVED, DOUBLED, TENTH, DOUBLED), features(rows)))}
