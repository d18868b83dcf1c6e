"""Bins and cells from public source rows, and how many of them a budget can carry.

The source, the announced size, the number of classes and the guarantee decide; nothing private is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.cells.questions.partition import Bins, NearestCells, Projected
from privada.methods.marginals.questions import plan_tables
from privada.methods.scaling import PublicScale
from privada.parties.schema import Schema
from privada.privacy.guarantee import ZCDP, Guarantee, PureDP

# Of the coordinates of many cells, and of those in which they are smoothed: 1 is full whitening, 0 none.
# Chosen on generated sets of other seeds.
WHITENING, EVENNESS = 0.75, 0.5
# Fewer cells resolve only the directions of large variance, so their rows are not whitened: none was
# better at up to 100 cells (digits, breast cancer, A, C, D), whitening at 400 (E); 200 was not measured.
FINE = 200
NOISES = 4.0  # rows a cell, in units of its signed noise; from 3 to 6 it made little difference there
BIN_NOISES = 12.0  # rows a bin of one feature, in units of its noise: the paper has 4
LEAST_SPREAD = 0.02  # directions of less than this share of the largest spread are not blown up
FIT_ROWS = 20_000
LARGEST_SIZE = 10**9


def check_announced(size: int) -> int:
    """Refuse an announced number of rows for which noise would be lost in the rounding of their sums."""
    if _check.count(size=size) > LARGEST_SIZE:
        raise InputError(f"Expected size to be at most {LARGEST_SIZE} rows, got {size}.")
    return size


def missing_marks(schema: Schema) -> dict[int, int]:
    """Which feature marks that another one is missing, for the columns that may be.

    >>> from privada.parties.schema import Number
    >>> missing_marks(Schema(columns=[Number(name="age", low=0, high=99, missing=True)]))
    {0: 1}
    """
    marks: dict[int, int] = {}
    start = 0
    for column in schema.columns:
        end = start + len(column.features())
        if column.missing:
            marks |= dict.fromkeys(range(start, end - 1), end - 1)
        start = end
    return marks


def list_features(width: int, missing: Mapping[int, int]) -> tuple[int, ...]:
    """Features that have a table of their own: all but marks, which have a bin in the tables they mark."""
    return tuple(j for j in range(width) if j not in set(missing.values()))


def feature_bins(
    source: FloatArray,
    count: int,
    features: tuple[int, ...] | None = None,
    *,
    shift: float = 0.0,
    missing: Mapping[int, int] | None = None,
) -> tuple[Bins, ...]:
    """Bins of each feature with about as many public rows each; open at both ends.

    A feature that is the same in every public row gets one edge, and so two bins. ``shift``, in bins and
    below 1/2 either way, moves the edges. A feature that has a mark in ``missing`` gets a bin for missing
    values, whether the public rows have any or not; its other bins are made from the rows that have it.
    """
    marks = missing or {}
    bins = []
    for feature in list_features(source.shape[1], marks) if features is None else features:
        column, mark = source[:, feature], marks.get(feature)
        if mark is not None and np.any(source[:, mark] != 1):
            column = column[source[:, mark] != 1]
        edges = np.unique(np.quantile(column, (np.arange(1, count) + shift) / count))
        edges = edges[(edges > column.min()) & (edges <= column.max())]
        edges = edges if len(edges) else np.array([float(column.max())])
        bins.append(Bins(feature=feature, edges=edges, missing=mark))
    return tuple(bins)


def cells(source: FloatArray, count: int, seed: int) -> Projected:
    """k-means cells of the public source, in partly whitened coordinates if they are many.

    Whitening makes a cell more nearly as long in every direction in which the source varies;
    labels need not follow the directions of large variance.
    """
    from sklearn.cluster import KMeans

    if len(source) < count:
        raise InputError(f"Expected at least {count} public rows for {count} cells, got {len(source)}.")
    matrix = whitening(source, WHITENING if count >= FINE else 0.0)
    rows = source[np.random.default_rng(seed).permutation(len(source))[:FIT_ROWS]] @ matrix
    clusters = KMeans(n_clusters=count, n_init=1, max_iter=15, random_state=seed).fit(rows)
    return Projected(matrix=matrix, inner=NearestCells(centers=clusters.cluster_centers_))


def whitening(source: FloatArray, power: float) -> FloatArray:
    """The public map to standardised coordinates of more even spread; none at power 0."""
    scale = PublicScale.of(source)
    centred = scale.standardise(source)
    spread, directions = np.linalg.eigh(centred.T @ centred / len(source))
    widths = np.sqrt(np.maximum(spread, 0.0))
    floored = np.maximum(widths, max(LEAST_SPREAD * widths.max(), 1e-12))
    return directions / floored**power / scale.spread[:, None]


def cell_count(*, size: float, n_source: int, noise: float) -> int:
    """How many cells: as many as leave each `NOISES` times the noise of a class against the others, in rows.

    Smoothing takes care of the rest.
    """
    return int(np.clip(size / max(NOISES * noise, 4.0), 4, min(max(4, n_source // 8), 400)))


def bin_count(*, size: float, noise: float) -> int:
    """How many bins a feature, from 3 to 7: fewer than the paper's, since smoothing undoes averages."""
    return int(np.clip(round(size / (BIN_NOISES * max(noise, 1e-9))), 3, 7))


def noise_of(guarantee: Guarantee, tables: int, *, signed: bool = False) -> float:
    """Standard deviation on each count of joint or signed tables at this price."""
    plan = plan_tables(guarantee, tuple(str(index) for index in range(tables)), signed=signed)
    return math.sqrt(plan.lattice("0").variance)


def split_evenly(guarantee: Guarantee, rounds: int) -> Guarantee:
    """An even share of a guarantee for each of several rounds, such that they compose to it."""
    if rounds == 1:
        return guarantee
    part = (1 - 1e-9) / rounds  # so that no last bit of a sum overspends
    same: dict[str, Any] = {"relation": guarantee.relation, "unit": guarantee.unit}
    if isinstance(guarantee, PureDP):
        return PureDP(epsilon=guarantee.epsilon * part, **same)
    if isinstance(guarantee, ZCDP):
        return ZCDP(rho=guarantee.rho * part, **same)
    raise InputError("Expected rho, or a pure epsilon, for several rounds: (ε, δ) has no even shares.")


__all__ = [
    "EVENNESS",
    "FINE",
    "bin_count",
    "cell_count",
    "cells",
    "check_announced",
    "feature_bins",
    "list_features",
    "missing_marks",
    "noise_of",
    "split_evenly",
    "whitening",
]
