"""Nested cubes that are opened where noisy counts say so: a private recursive partition of a ball.

Level l has cubes of side ``side / 2^l``; those whose noisy count passes a public threshold are kept
and split into ``2^d`` at the next level. The noisy counts of one level are one draw. A record is in
one cube of each level at most, found from its own coordinates alone, so under add/remove it moves
one count of each level by 1, under replace-one two. Which cubes exist at a level is decided by what earlier
levels released; empty cubes are noised like all others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from privada._arrays import FloatArray, IntArray
from privada.parties.answering import Draws
from privada.privacy.mechanism import Lattice, Mechanism

MOST_CUBES = 2**17  # of one level: what a release can make an owner count
STRAY = 0.2  # expected number of empty cubes of a level that pass


def default_depth(width: int) -> int:
    """As many levels as give about 2^16 cubes, between 3 and 6: deeper ones cost budget and hold few rows."""
    return max(3, min(6, 16 // width))


@dataclass(frozen=True, eq=False)
class Kept:
    """Cubes of one level that were kept.

    Attributes
    ----------
    centers : array of shape (cubes, d)
    counts : array of shape (cubes,)
        Noisy.
    parents : array of shape (cubes,)
        Index among the kept cubes one level up.
    members : array of shape (rows,)
        Kept cube of each row, or -1. Private: never leaves an answerer.
    radius : float
        Half the diagonal of a cube.
    """

    centers: FloatArray
    counts: FloatArray
    parents: IntArray
    members: IntArray
    radius: float


def descend(
    X: FloatArray, draw: Draws, draws: Mapping[str, Mechanism], *, corner: FloatArray, side: float
) -> list[Kept]:
    """Kept cubes of every level for which there is a draw ``"level l"``."""
    low, members = np.zeros((1, len(corner)), dtype=np.int64), np.zeros(len(X), dtype=np.int64)
    found = []
    for level in range(1, sum(name.startswith("level ") for name in draws) + 1):
        mechanism = draws[f"level {level}"]
        assert isinstance(mechanism, Lattice)
        step = side / 2**level
        children = _children(low)
        codes = _codes(X, corner, step, members, len(corner))
        exact = np.bincount(codes[codes >= 0], minlength=len(children))
        noisy = draw(f"level {level}", mechanism.place(exact))
        kept = passing(noisy, mechanism, most=MOST_CUBES >> len(corner))
        low = children[kept]
        place = np.full(len(children) + 1, -1, dtype=np.int64)  # the last is for rows that are nowhere
        place[kept] = np.arange(len(kept))
        members = place[codes]
        found.append(
            Kept(
                centers=corner + (low + 0.5) * step,
                counts=noisy[kept],
                parents=kept >> len(corner),
                members=members,
                radius=step * math.sqrt(len(corner)) / 2,
            )
        )
    return found


def _children(low: IntArray) -> IntArray:
    """Coordinates of all halves of all cubes, those of one cube together."""
    width = low.shape[1]
    bits = (np.arange(2**width)[:, None] >> np.arange(width)) & 1
    return (2 * low[:, None, :] + bits).reshape(-1, width)


def _codes(X: FloatArray, corner: FloatArray, step: float, members: IntArray, width: int) -> IntArray:
    """Index of each row's half-cube among the children, or -1 if its cube was not kept."""
    bits = np.floor((X - corner) / step).astype(np.int64) & 1
    codes = (bits << np.arange(width)).sum(axis=1) + (members << width)
    return np.where(members >= 0, codes, -1)


def passing(noisy: FloatArray, mechanism: Lattice, *, most: int) -> IntArray:
    """Indices of counts above what noise alone shows, the largest if there are too many, in order."""
    if not len(noisy):
        return np.zeros(0, dtype=np.int64)
    least = mechanism.half_width(1 - min(0.5, 2 * STRAY / len(noisy)))
    largest = np.argsort(-noisy, kind="stable")[:most]
    return np.sort(largest[noisy[largest] > least])


__all__ = ["Kept", "default_depth", "descend", "passing"]
