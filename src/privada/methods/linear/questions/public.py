"""What questions about linear models share: public arrays, sizes, grids, and μ of a guarantee's share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError, RelationError
from privada.privacy.bounds import Grid
from privada.privacy.guarantee import Guarantee, PureDP, split_budget
from privada.privacy.mechanism import Gaussian, Plan, gaussian_event
from privada.privacy.relation import Relation
from privada.privacy.release import PublicSchema

LARGEST = 1e100
MOST_NUMBERS = 200_000_000
MOST_STEPS = 100_000

fine_grid = Grid.finer_than_both


def matrix(*, width: int | None = None, **named: Any) -> FloatArray:
    """A public matrix as a read-only copy."""
    return _kept(_check.matrix(width=width, **named), next(iter(named)))


def vector(*, length: int | None = None, **named: Any) -> FloatArray:
    """A public vector as a read-only copy."""
    ((name, value),) = named.items()
    array = np.asarray(value, dtype=np.float64)
    if array.ndim != 1 or not len(array) or (length is not None and len(array) != length):
        of_length = "" if length is None else f" of length {length}"
        raise InputError(f"Expected {name} to be a vector{of_length}, got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise InputError(f"Expected {name} to be finite; it holds a missing or infinite value.")
    return _kept(array, name)


def _kept(array: FloatArray, name: str) -> FloatArray:
    copy = np.array(array, dtype=np.float64, order="C")
    if copy.size and np.abs(copy).max() > LARGEST:
        raise InputError(f"Expected {name} within ±{LARGEST:g}.")
    copy.flags.writeable = False
    return copy


def replaced(guarantee: Guarantee) -> None:
    """These questions need a public number of rows: they are asked under replace-one only."""
    if guarantee.relation is Relation.ADD_REMOVE:
        raise RelationError(
            "This question divides by the public number of rows, so it is asked under replace-one; "
            "under add/remove that number would be private."
        )


def rows_moved(guarantee: Guarantee) -> int:
    """How many rows differ between neighbours, replaced ones counted twice: a row less and a row more."""
    return guarantee.unit.max_rows * (1 if guarantee.relation is Relation.ADD_REMOVE else 2)


def gaussian(guarantee: Guarantee, what: str) -> None:
    """Gaussian noise keeps no pure guarantee."""
    if isinstance(guarantee, PureDP):
        raise InputError(f"{what} is asked for (epsilon, delta) or rho, not for {guarantee}.")


def declared(size: int, schema: PublicSchema, width: int) -> None:
    """Check the public size and the number of features against an owner's schema."""
    if schema.size is None or size != schema.size:
        raise InputError(f"Expected size to be the {schema.size} rows that the owner declared, got {size}.")
    if width != schema.width:
        raise InputError(f"Expected {schema.width} features as the owner's schema has, got {width}.")


def numeric_label(schema: PublicSchema) -> None:
    """Refuse a schema without a number to predict."""
    if getattr(schema.label, "label_role", "") != "number" or getattr(schema.label, "missing", False):
        raise InputError("Expected the owner's schema to have a numeric label without missing values.")


def equal_sums(names: tuple[str, ...], *, reach: float, guarantee: Guarantee) -> Plan:
    """Gaussian sums of equal noise, one for each name; together they use up the guarantee."""
    mu = guarantee.gaussian_mu() / math.sqrt(len(names))
    draw = Gaussian.calibrated(sensitivity=reach, mu=mu, grid=fine_grid(reach, reach / mu))
    return Plan(draws=dict.fromkeys(names, draw), event=gaussian_event(draw.mu * math.sqrt(len(names))))


def few_numbers(total: int, what: str) -> None:
    """Refuse a question that would not fit into memory, before it is charged."""
    if total > MOST_NUMBERS:
        raise InputError(f"Expected at most {MOST_NUMBERS:,} numbers in {what}, got {total:,}.")


def shares(guarantee: Guarantee, part: float) -> tuple[Guarantee | None, Guarantee]:
    """Two guarantees whose Gaussian releases together keep the whole; none for a part of 0.

    >>> from privada.privacy import ApproxDP
    >>> first, rest = shares(ApproxDP(epsilon=1, delta=1e-5, relation="replace-one"), 0.05)
    >>> round(math.hypot(first.gaussian_mu(), rest.gaussian_mu()) * 3.7306, 3)
    1.0
    """
    if part == 0:
        return None, guarantee
    first, rest = split_budget(guarantee, part, gaussian=True)
    return first, rest


__all__ = [
    "LARGEST",
    "MOST_STEPS",
    "declared",
    "equal_sums",
    "few_numbers",
    "fine_grid",
    "gaussian",
    "matrix",
    "numeric_label",
    "replaced",
    "rows_moved",
    "shares",
    "vector",
]
