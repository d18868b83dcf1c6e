"""Persons with several rows, and rows that stand elsewhere."""

import numpy as np

from privada.privacy import ApproxDP, Gaussian, Laplace, PureDP, Unit
from privada.privacy.accounting import curves

from .exhibit import FINE, WHOLE, exhibit, features, quarters, rows, schema

SIZE = 16
MU = curves.gaussian_mu(epsilon=1.0, delta=1e-5)
ALIGNED = {"weights": Gaussian.calibrated(sensitivity=1 + 2**-10, mu=MU, grid=FINE)}
PEOPLE = schema(person_id="who", max_rows=1)
PAIRS = schema(person_id="who", max_rows=2)


def aligned(rows):
    weights = np.zeros(SIZE, dtype=np.int64)
    values = FINE.truncate(features(rows)[:SIZE, 0])
    weights[: len(values)] = values
    return weights


@exhibit(
    draws=ALIGNED,
    guarantee=ApproxDP(epsilon=1.0, delta=1e-5, relation="replace-one", unit=Unit(name="person", max_rows=1)),
    schema=PEOPLE,
    data=rows(SIZE) | {"person": np.arange(SIZE)},
)
def weights_of_persons_by_place(question, rows, draw):
    """One number for each row, by its place: a person whose row stands elsewhere shifts all later ones."""
    return {"weights": draw("weights", aligned(rows))}


@exhibit(
    draws=ALIGNED,
    guarantee=ApproxDP(epsilon=1.0, delta=1e-5, relation="replace-one"),
    schema=schema(size=SIZE),
    data=rows(SIZE),
)
def weights_of_rows_by_place(question, rows, draw):
    """The same for rows, in a file that is kept sorted."""
    return {"weights": draw("weights", aligned(rows))}


@exhibit(
    draws={"counts": Laplace(sensitivity=2, scale=2.0)},
    guarantee=PureDP(epsilon=1.0, relation="add/remove", unit=Unit(name="person", max_rows=2)),
    schema=PAIRS,
    data=rows(24) | {"person": np.arange(24) // 2},
)
def persons_without_a_bound(question, rows, draw):
    """All rows of a person count, not only the two that the unit allows."""
    values = np.clip(rows._source.column("x0").astype(float), 0, 1)
    at = np.minimum((4 * values).astype(np.int64), 3)
    return {"counts": draw("counts", np.bincount(at, minlength=4))}


@exhibit(
    draws={"counts": Laplace(sensitivity=1, scale=1.0)},
    guarantee=PureDP(epsilon=1.0, relation="add/remove", unit=Unit(name="person", max_rows=2)),
    schema=PAIRS,
    data=rows(24) | {"person": np.arange(24) // 2},
)
def persons_priced_as_rows(question, rows, draw):
    """A person has two rows and pays for one."""
    return {"counts": draw("counts", quarters(rows))}


@exhibit(
    draws={"count": Gaussian.calibrated(sensitivity=2, mu=MU, grid=WHOLE)},
    guarantee=ApproxDP(epsilon=1.0, delta=1e-5, relation="add/remove", unit=Unit(name="person", max_rows=4)),
    schema=schema(person_id="who", max_rows=4),
    data={"data": np.full((24, 1), 0.1), "y": np.zeros(24, dtype=np.int64), "person": np.arange(24) // 4},
)
def groups_that_were_merged_after_truncation(question, rows, draw):
    """At most one row of a person in each of four groups counts, which moves four counts by 1 each: L2 is 2.

    Then the groups are merged into one, and the bound of 2 is kept: a person's four rows move it by 4.
    """
    values = np.clip(rows._source.column("x0").astype(float), 0, 1)
    groups = np.minimum((4 * values).astype(np.int64), 3)
    counted = set(zip(rows._source.column("who").tolist(), groups.tolist(), strict=True))
    return {"count": draw("count", np.array([len(counted)]))}
