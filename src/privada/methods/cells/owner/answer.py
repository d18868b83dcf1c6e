"""How counts and sums over public cells are answered: one pass over the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from privada.methods.cells.questions.partition import Partition
from privada.methods.cells.questions.statistics import CellStatistics
from privada.parties.answering import Draws
from privada.parties.rows import Batch, Rows
from privada.privacy.mechanism import Lattice

IntArray = npt.NDArray[np.int64]


def answer(question: CellStatistics, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Count and sum in integers, then draw; every cell is noised, empty or not."""
    tables = [_Table(question, index, table) for index, table in enumerate(question.tables)]
    for batch in rows.batches():
        for table in tables:
            table.add(batch)
    payload: dict[str, Any] = {}
    for table in tables:
        payload |= table.drawn(draw)
    return payload


class _Table:
    """Exact integer counts and sums of one table. Never leaves this module."""

    def __init__(self, question: CellStatistics, index: int, partition: Partition) -> None:
        self._question, self._partition = question, partition
        self._names = question.names(index)
        self._classes = question.n_classes or 1
        self._counts = np.zeros(partition.n_cells * self._classes, dtype=np.int64)
        self._origins = question.origins(partition)
        self._sums = np.zeros(self._origins.shape, dtype=np.int64)

    def add(self, batch: Batch) -> None:
        """Add a batch of rows."""
        cells = self._partition.assign(batch.X)
        codes = cells * self._classes
        if self._question.n_classes is not None:
            assert batch.y is not None
            codes = codes + batch.y
        self._counts += np.bincount(codes, minlength=len(self._counts))
        if self._question.radius is not None:
            from privada.methods.cells.questions import kernels

            radius = float(self._question.radius)
            kernels.add_clipped(self._sums, batch.X, cells, self._origins, radius, 1 / self._step())

    def _step(self) -> float:
        mechanism = self._question.plan.draws[self._names[1]]
        assert isinstance(mechanism, Lattice)
        return mechanism.grid.step

    def drawn(self, draw: Draws) -> dict[str, Any]:
        """Noisy counts and sums under their payload names."""
        counts, sums = self._names
        mechanism = self._question.plan.draws[counts]
        assert isinstance(mechanism, Lattice)
        shape = (-1, self._classes) if self._question.n_classes else (-1,)
        payload = {counts: draw(counts, mechanism.place(self._counts).reshape(shape))}
        if self._question.radius is not None:
            payload[sums] = draw(sums, self._sums)
        return payload


__all__ = ["answer"]
