"""Bins and cells from public source rows, and how many of them a budget can carry."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from privada.exceptions import InputError
from privada.methods.cells.partition import Bins, Nearest, Product, Projected

FloatArray = npt.NDArray[np.float64]
WHITENING = 0.75  # 1 is full whitening, 0 none; chosen on generated sets of other seeds
LEAST_SPREAD = 0.02  # directions of less than this share of the largest spread are not blown up
FIT_ROWS = 20_000


def feature_bins(source: FloatArray, count: int, features: tuple[int, ...] | None = None) -> tuple[Bins, ...]:
    """Bins of each feature with about as many public rows each; open at both ends.

    A feature that is the same in every public row gets one edge, and so two bins.
    """
    columns = range(source.shape[1]) if features is None else features
    return tuple(Bins(feature=j, edges=_edges(source[:, j], count)) for j in columns)


def group_bins(source: FloatArray, count: int, groups: tuple[tuple[int, ...], ...]) -> tuple[Product, ...]:
    """Grids of bins over groups of features."""
    return tuple(Product(factors=feature_bins(source, count, group)) for group in groups)


def _edges(column: FloatArray, count: int) -> FloatArray:
    inner = np.unique(np.quantile(column, np.arange(1, count) / count))
    inner = inner[(inner > column.min()) & (inner <= column.max())]
    return inner if len(inner) else np.array([float(column.max())])


def cells(source: FloatArray, count: int, seed: int) -> Projected:
    """k-means cells of the public source in partly whitened coordinates.

    Whitening makes a cell more nearly as long in every direction in which the source varies;
    labels need not follow the directions of large variance.
    """
    from sklearn.cluster import KMeans

    if len(source) < count:
        raise InputError(f"Expected at least {count} public rows for {count} cells, got {len(source)}.")
    matrix = whitening(source)
    rows = source[np.random.default_rng(seed).permutation(len(source))[:FIT_ROWS]] @ matrix
    found = KMeans(n_clusters=count, n_init=1, max_iter=15, random_state=seed).fit(rows)
    return Projected(matrix=matrix, inner=Nearest(centers=found.cluster_centers_))


def whitening(source: FloatArray) -> FloatArray:
    """The public map to coordinates of more even spread."""
    centred = source - source.mean(axis=0)
    spread, directions = np.linalg.eigh(centred.T @ centred / len(source))
    widths = np.sqrt(np.maximum(spread, 0.0))
    floored = np.maximum(widths, max(LEAST_SPREAD * widths.max(), 1e-12))
    made: FloatArray = directions / floored**WHITENING
    return made


def cell_count(*, size: float, n_source: int, noise: float, n_classes: int) -> int:
    """How many cells: as many as leave each about twice its count's noise in rows, within limits.

    Smoothing takes care of the rest; the constant was chosen on generated sets of other seeds.
    """
    most = max(4, n_source // 8)
    wanted = size / max(2.0 * noise * math.sqrt(n_classes), 4.0)
    return int(np.clip(wanted, 4, min(most, 400)))


def bin_count(*, size: float, noise: float) -> int:
    """How many bins a feature: the paper's rule, rows a bin close to four times the noise, from 3 to 10."""
    return int(np.clip(round(size / (4.0 * max(noise, 1e-9))), 3, 10))


__all__ = ["bin_count", "cell_count", "cells", "feature_bins", "group_bins", "whitening"]
