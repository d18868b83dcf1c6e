"""Points that owners disclosed, each checked before it enters the summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.summarization.learner.allocation import Allocation
from privada.methods.summarization.learner.summary import Summary
from privada.methods.summarization.questions.embedding import FourierEmbedding


class PointCollection:
    """Points as they come; what is wrong is left out and noted.

    Parameters
    ----------
    embedding : FourierEmbedding
    embedded : bool
        Whether owners send embeddings instead of rows.
    """

    def __init__(self, *, embedding: FourierEmbedding, embedded: bool) -> None:
        self._embedding, self._embedded = embedding, embedded
        self._points: list[tuple[str, FloatArray, Any]] = []
        self._known: set[bytes] = set()
        self._seen = 0
        self._faults: list[str] = []

    def note(self, owner: str, fault: str) -> None:
        """Write down that an owner sent nothing that can be used, and why."""
        self._faults.append(f"{owner}: {fault}")

    def add(self, owner: str, rows: Mapping[str, npt.NDArray[Any]], *, most: int) -> None:
        """Check and keep an owner's points, at most ``most`` of them."""
        try:
            points, labels = self._read(rows)
        except (KeyError, TypeError, ValueError):
            self.note(owner, "what it sent is no matrix of the right width")
            return
        self._seen += len(points)
        if len(points) > most:
            self.note(owner, "more points than asked for")
        faults = {"a point that is not finite": 0, "a point twice": 0}
        for i, point in enumerate(points[:most]):
            label = None if labels is None else labels[i]
            if not np.isfinite(point).all() or (isinstance(label, np.floating) and not np.isfinite(label)):
                faults["a point that is not finite"] += 1
            elif self._repeated(owner, point):
                faults["a point twice"] += 1
            else:
                self._points.append((owner, point, label))
        self._faults += [f"{owner}: {what} ({times})" for what, times in faults.items() if times]

    def _read(self, rows: Mapping[str, npt.NDArray[Any]]) -> tuple[FloatArray, npt.NDArray[Any] | None]:
        name = "H" if self._embedded else "X"
        width = self._embedding.dimension if self._embedded else self._embedding.width
        points = np.asarray(rows[name], dtype=np.float64)
        labels = None if "y" not in rows else np.asarray(rows["y"])
        if (
            points.ndim != 2
            or points.shape[1] != width
            or (labels is not None and len(labels) != len(points))
        ):
            raise ValueError
        return points, labels

    def _repeated(self, owner: str, point: FloatArray) -> bool:
        """Whether this owner has sent this point before; others may hold an equal one."""
        key = owner.encode() + b"\0" + (point + 0.0).tobytes()
        known = key in self._known
        self._known.add(key)
        return known

    def to_summary(self, allocation: Allocation) -> Summary:
        """What was kept, as a summary."""
        if not self._points:
            raise InputError("No owner sent a point that can be used.")
        owners, points, labels = zip(*self._points, strict=True)
        labelled = all(label is not None for label in labels)
        return Summary(
            X=np.array(points),
            y=np.array(labels) if labelled else None,
            owner=np.array(owners),
            allocation=allocation,
            points_seen=self._seen,
            faults=tuple(self._faults),
            embedding=self._embedding,
            embedded=self._embedded,
        )


__all__ = ["PointCollection"]
