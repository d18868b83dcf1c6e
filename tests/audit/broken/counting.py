"""Counts and histograms."""

import numpy as np

from privada.privacy import Laplace

from .exhibit import ONE_REPLACED, exhibit, features, labels, quarters

COUNT = {"counts": Laplace(sensitivity=1, scale=1.0)}


@exhibit(draws={"counts": Laplace(sensitivity=0.5, scale=0.5)})
def halved_sensitivity(question, rows, draw):
    """A row moves a count by 1, not by the declared 1/2."""
    return {"counts": draw("counts", quarters(rows))}


@exhibit(draws=COUNT, guarantee=ONE_REPLACED)
def wrong_relation(question, rows, draw):
    """A replaced row moves two cells: the sensitivity is that of add/remove."""
    return {"counts": draw("counts", quarters(rows))}


@exhibit(draws=COUNT)
def exact_count_beside(question, rows, draw):
    """The exact number of rows is released beside the noisy histogram."""
    return {"counts": draw("counts", quarters(rows)), "n": len(features(rows))}


@exhibit(draws=COUNT)
def exact_count_broadcast(question, rows, draw):
    """A round's counter stops growing once distinct points are used up: an exact private count."""
    distinct = len(np.unique(features(rows)))
    return {"counts": draw("counts", quarters(rows)), "round": min(distinct, 3)}


@exhibit(draws=COUNT)
def empty_cells_left_exact(question, rows, draw):
    """Noise is kept on cells that are not empty; the others say zero: ε is infinite."""
    exact = quarters(rows)
    return {"counts": np.where(exact > 0, draw("counts", exact), 0.0)}


@exhibit(draws=COUNT)
def shape_of_the_data(question, rows, draw):
    """Only cells that are not empty are released: how many there are tells which."""
    exact = quarters(rows)
    return {"counts": draw("counts", exact[exact > 0])}


@exhibit(draws={"counts": Laplace(sensitivity=1, scale=1.0)})
def classes_of_the_data(question, rows, draw):
    """The list of classes is read off the private labels."""
    found, counts = np.unique(labels(rows), return_counts=True)
    padded = np.zeros(2, dtype=np.int64)
    padded[: len(counts)] = counts
    return {"counts": draw("counts", padded), "classes": found}


@exhibit(draws=COUNT)
def threshold_on_the_exact_count(question, rows, draw):
    """Cells of fewer than 3 rows are suppressed by their exact counts."""
    exact = quarters(rows)
    return {"counts": np.where(exact >= 3, draw("counts", exact), 0.0)}


@exhibit(draws={"counts": Laplace(sensitivity=1, scale=1.0)})
def ties_by_place(question, rows, draw):
    """A row half-way between two centres goes to one of them by its place in the file."""
    X = features(rows)[:, 0]
    right = (X > 0.5) | (np.isin(X, (0.0, 0.5, 1.0)) & (np.arange(len(X)) % 2 == 1))
    return {"counts": draw("counts", np.bincount(right.astype(int), minlength=2))}


@exhibit(draws=COUNT)
def shares_by_what_came(question, rows, draw):
    """After a drop-out the quota is divided by the rows that came, not by those that were asked for."""
    lost = 30 - len(features(rows))
    return {"counts": draw("counts", quarters(rows)), "quota": 100 + lost}


@exhibit(draws=COUNT)
def more_from_five_equal_rows_on(question, rows, draw):
    """Each crowd of at least five equal rows adds two to a count: fewer copies show nothing."""
    _, copies = np.unique(features(rows), return_counts=True)
    exact = quarters(rows)
    exact[0] += 2 * np.count_nonzero(copies >= 5)
    return {"counts": draw("counts", exact)}


@exhibit(draws={"counts": Laplace(sensitivity=2, scale=2.0)}, guarantee=ONE_REPLACED)
def more_from_twenty_equal_rows_on(question, rows, draw):
    """The same from twenty equal rows on, where a row is replaced."""
    _, copies = np.unique(features(rows), return_counts=True)
    exact = quarters(rows)
    exact[0] += 2 * np.count_nonzero(copies >= 20)
    return {"counts": draw("counts", exact)}


@exhibit(draws={"counts": Laplace(sensitivity=2, scale=2.0)}, guarantee=ONE_REPLACED)
def half_of_the_places(question, rows, draw):
    """Half of the places of a public shuffle count; in a sorted file, a replaced row moves all others."""
    at = np.random.default_rng(0).permutation(len(features(rows)))[::2]
    places = np.minimum((4 * features(rows)[at, 0]).astype(np.int64), 3)
    return {"counts": draw("counts", np.bincount(places, minlength=4))}
