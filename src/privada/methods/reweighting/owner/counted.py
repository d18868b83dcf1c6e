"""The private rows that count: as many as the public size says, whatever their order and number."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from privada.parties.rows import Rows
from privada.privacy.noise import Noise

FloatArray = npt.NDArray[np.float64]


def counted(rows: Rows, size: int, fill: FloatArray, noise: Noise) -> tuple[FloatArray, FloatArray, int]:
    """Features and labels of ``size`` rows, and how many of them there are; the others are ``fill`` and 0.

    Of more rows, ``size`` are chosen at random: were they the first ones, a replaced record that
    changes the order of a file would change them all (the proof is in `question`).
    """
    X, y = np.tile(fill, (size, 1)), np.zeros(size)
    kept = _chosen(sum(len(batch) for batch in rows.batches()), size, noise)
    start = seen = 0
    for batch in rows.batches():
        assert batch.y is not None
        here = slice(None) if kept is None else kept[seen : seen + len(batch)]
        part = batch.X[here]
        end = start + len(part)
        X[start:end], y[start:end] = part, batch.y[here]
        start, seen = end, seen + len(batch)
    return X, y, start


def _chosen(present: int, size: int, noise: Noise) -> npt.NDArray[np.bool_] | None:
    """Which rows count, or None for all."""
    if present <= size:
        return None
    kept = np.zeros(present, dtype=np.bool_)
    kept[noise.permutation(present)[:size]] = True
    return kept


__all__ = ["counted"]
