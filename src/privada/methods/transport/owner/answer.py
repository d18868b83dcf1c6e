"""How transport's questions are answered: sums of integers, or rows in an order that tells nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from privada.methods.transport.questions.rows import RowRelease
from privada.methods.transport.questions.statistics import ClassStatistics
from privada.parties.answering import Draws
from privada.parties.rows import Rows
from privada.privacy.mechanism import Gaussian

IntArray = npt.NDArray[np.int64]


def answer_statistics(question: ClassStatistics, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Sum every class in whole grid steps, then draw; every class is noised, also an empty one."""
    draws = {name: each for name, each in question.plan.draws.items() if isinstance(each, Gaussian)}
    d, q = question.features.components, question.n_classes
    sums = {"counts": np.zeros(q, np.int64), "sums": np.zeros((q, d), np.int64)}
    if question.moments:
        sums["moments"] = np.zeros((q, question.triangle), np.int64)
    for batch in rows.batches():
        for part in batch.parts(d + question.triangle):
            assert part.y is not None
            z = question.features.apply(part.X)
            codes = part.y.astype(np.int64)
            sums["counts"] += draws["counts"].place(np.bincount(codes, minlength=q))
            np.add.at(sums["sums"], codes, draws["sums"].grid.truncate(z))
            if question.moments:
                np.add.at(sums["moments"], codes, draws["moments"].grid.truncate(packed(z)))
    return {name: draw(name, value) for name, value in sums.items()}


def packed(z: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Upper triangle of each ``z zᵀ``, off-diagonal entries times √2: an isometry of the Frobenius norm."""
    above, beside = np.triu_indices(z.shape[1])
    return np.asarray(z[:, above] * z[:, beside] * np.where(above == beside, 1.0, np.sqrt(2)))


def answer_rows(question: RowRelease, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Noise every sampled row, in an order drawn afresh that knows nothing of rows or labels."""
    X, y = _gathered(rows)
    payload: dict[str, Any] = {}
    for index in range(question.batches):
        picked = draw.noise.permutation(question.size)[: question.drawn]
        there = picked < len(X)  # of fewer rows than announced, the others are empty
        names = question.names(index)
        mechanism = question.plan.find(names[0], Gaussian)
        z = np.zeros((question.drawn, question.features.components))
        mapped = question.features.spread if question.unclipped else question.features.apply
        z[there] = mapped(X[picked[there]])
        payload[names[0]] = draw(names[0], mechanism.grid.truncate(z))
        if question.n_classes is not None:
            codes = np.zeros(question.drawn, dtype=np.int64)
            codes[there] = y[picked[there]]
            payload[names[1]] = draw(names[1], codes)
    return payload


def _gathered(rows: Rows) -> tuple[npt.NDArray[np.float64], IntArray]:
    """All rows at once: what is released is a row each."""
    batches = list(rows.batches())
    if not batches:
        return np.zeros((0, rows.schema.width)), np.zeros(0, np.int64)
    X = np.concatenate([batch.X for batch in batches])
    labels = [batch.y for batch in batches if batch.y is not None]
    return X, np.concatenate(labels).astype(np.int64) if labels else np.zeros(len(X), np.int64)


__all__ = ["answer_rows", "answer_statistics", "packed"]
