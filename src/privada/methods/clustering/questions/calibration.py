"""What the questions of this room share: budgets as μ, grids, and checks of public points."""

from __future__ import annotations

from typing import Any

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.privacy.bounds import Grid
from privada.privacy.guarantee import Guarantee, PureDP
from privada.privacy.mechanism import Gaussian, Laplace
from privada.privacy.relation import Relation

NOISES = ("lattice", "k-norm")
MOST_NUMBERS = 100_000_000  # that an answer may hold: 0.8 GB
SIZES = (1e-100, 1e100)  # of radii, and the largest coordinate: nothing overflows when it is squared
fine_grid = Grid.finer_than_both


def budget_of(guarantee: Guarantee) -> float:
    """Sensitivity over scale that a guarantee allows: ε of Laplace noise, or μ of Gaussian noise."""
    return guarantee.epsilon if isinstance(guarantee, PureDP) else guarantee.gaussian_mu()


def lattice(guarantee: Guarantee, *, sensitivity: float, grid: Grid) -> Laplace | Gaussian:
    """The least exact noise that keeps a guarantee; the sensitivity is L1 if it is pure, else L2."""
    if isinstance(guarantee, PureDP):
        return Laplace.calibrated(sensitivity=sensitivity, epsilon=guarantee.epsilon, grid=grid)
    return Gaussian.calibrated(sensitivity=sensitivity, mu=guarantee.gaussian_mu(), grid=grid)


def replaces(guarantee: Guarantee) -> bool:
    """Whether neighbours have a row changed rather than added or removed."""
    return guarantee.relation is not Relation.ADD_REMOVE


def sized(**named: Any) -> float:
    """A public radius that floats can be scaled by: neither tiny nor huge."""
    ((name, value),) = named.items()
    if not SIZES[0] <= _check.positive(**named) <= SIZES[1]:
        raise InputError(f"Expected {name} between {SIZES[0]:g} and {SIZES[1]:g}, got {value!r}.")
    return float(value)


def frozen(*, width: int | None = None, **named: Any) -> FloatArray:
    """A public matrix as a read-only copy."""
    copy = np.array(_check.matrix(width=width, **named), dtype=np.float64, order="C")
    if np.abs(copy).max() > SIZES[1]:
        raise InputError(f"Expected {next(iter(named))} within ±{SIZES[1]:g}.")
    copy.flags.writeable = False
    return copy


def only_pure(guarantee: Guarantee) -> None:
    """K-norm noise is for pure guarantees."""
    if not isinstance(guarantee, PureDP):
        raise InputError(f"Expected a pure guarantee beside noise='k-norm', got {guarantee}.")


def few_numbers(total: int, what: str) -> None:
    """Refuse a question whose answer would not fit into memory, before it is charged."""
    if total > MOST_NUMBERS:
        raise InputError(f"Expected at most {MOST_NUMBERS:,} numbers in {what}, got {total:,}.")


__all__ = [
    "NOISES",
    "budget_of",
    "few_numbers",
    "fine_grid",
    "frozen",
    "lattice",
    "only_pure",
    "replaces",
    "sized",
]
