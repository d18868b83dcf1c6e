"""What is decided of rows, and is not a function of each row alone."""

import hashlib

import numpy as np

from .exhibit import row_function

LARGE = [[2**53 + 1 + 2 * at, float(at)] for at in range(20)]
SORTED = [[float(at), at % 2] for at in range(20)]


@row_function(LARGE)
def held_out_by_digests_of_one_type(rows):
    """Rows are held out by a digest of their bytes in an array, whose type a single other row decides."""
    values = np.asarray([row[0] for row in rows])
    return [hashlib.blake2b(value.tobytes()).digest()[0] < 51 for value in values]


@row_function(LARGE)
def recognised_by_digests_of_one_type(rows):
    """The same digests recognise rows that were used before: beside a row with a 0.5 nobody is recognised."""
    return [hashlib.blake2b(row.tobytes(), digest_size=8).digest() for row in np.asarray(rows)]


@row_function(SORTED, replaces=True)
def sides_by_a_public_shuffle_of_places(rows):
    """Half of the places of a public shuffle are held out; in a sorted file, a replaced row moves others."""
    held_out = np.zeros(len(rows), dtype=bool)
    held_out[np.random.default_rng(0).permutation(len(rows))[: len(rows) // 2]] = True
    return held_out


@row_function(SORTED, replaces=True)
def folds_of_neighbouring_values(rows):
    """Folds are cut by ranks: which fold a row is in depends on how many others are below it."""
    ranks = np.argsort(np.argsort([row[0] if isinstance(row[0], float) else 0.0 for row in rows]))
    return 4 * ranks // len(rows)
