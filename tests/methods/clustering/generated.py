"""Generated sources and targets in the ball of radius 1/2."""

from typing import NamedTuple

import numpy as np

from privada.privacy.bounds import Ball

RADIUS = 0.5


class Pair(NamedTuple):
    source: np.ndarray
    target: np.ndarray


def make_two_gaussians(*, seed, source_size, target_size):
    """Two clouds that overlap."""
    rng = np.random.default_rng(seed)
    source, target = rng.normal(0.15, 0.4, (source_size, 2)), rng.normal(0.95, 0.4, (target_size, 2))
    return Pair(*(Ball(radius=RADIUS).clip(rows / 6.0) for rows in (source, target)))


def make_grids(*, seed, source_size, target_size):
    """Small clusters around the points of grids, of which source and target share one."""
    rng = np.random.default_rng(seed)
    low, high = (0.1, 0.2, 0.3), (0.7, 0.8, 0.9)
    grids = [
        np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)
        for xs, ys in ((np.linspace(0.1, 0.9, 6), high), (high, low), (low, low))
    ]
    sides = []
    for means, size in ((np.vstack(grids[:2]), source_size), (np.vstack([grids[2], grids[1]]), target_size)):
        points = means[rng.integers(len(means), size=size)] + rng.normal(0.0, 0.01, size=(size, 2))
        sides.append(Ball(radius=RADIUS).clip(points / 2.8))
    return Pair(*sides)
