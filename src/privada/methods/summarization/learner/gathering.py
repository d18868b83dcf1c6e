"""What the curator has received: points that were checked, whose they are, and what they are worth."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import InputError
from privada.methods.summarization.learner.herding import marginal_gains
from privada.methods.summarization.questions.embedding import FourierEmbedding

if TYPE_CHECKING:
    from privada.methods.summarization.learner.learn import Allocation

FloatArray = npt.NDArray[np.float64]
NOT_PRIVATE = "raw rows at the curator: not differentially private"
NOT_PRIVATE_EMBEDDED = "embeddings at the curator: not differentially private"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Summary:
    """The summary, at the curator's.

    Attributes
    ----------
    X : array of shape (p, features)
        Rows, encoded as the schema says, or their embeddings.
    y : array of shape (p,) or None
        Labels: codes of the schema's classes, or numbers.
    owner : array of shape (p,)
        Who sent each.
    allocation : Allocation
    points_seen : int
        How many points the curator has received, also those that it left out.
    faults : tuple of str
        What was left out, by owner; never a row.
    embedded : bool
    embedding : FourierEmbedding

    Privacy
    -------
    Raw rows of owners: for the curator and the consumer only. On models that go back to owners, see `train`.
    """

    X: FloatArray
    y: npt.NDArray[Any] | None
    owner: npt.NDArray[np.str_]
    allocation: Allocation
    points_seen: int
    faults: tuple[str, ...]
    embedding: FourierEmbedding
    embedded: bool = False

    def __repr__(self) -> str:
        return f"<Summary of {len(self.X)} points from {len(set(self.owner.tolist()))} owners: not private>"

    def __len__(self) -> int:
        return len(self.X)

    @property
    def features(self) -> FloatArray:
        """The points' embeddings."""
        return self.X if self.embedded else self.embedding.transform(self.X)

    def contributions(self) -> dict[str, float]:
        """Value of each owner: the sum of its points' marginal gains, in greedy order.

        Privacy
        -------
        For the consumer only: an owner's value depends on other owners' rows.
        """
        order, gains = marginal_gains(self.features, self.allocation.target)
        names = self.owner[order]
        return {name: float(gains[names == name].sum()) for name in sorted({*self.allocation.rows, *names})}

    def train(self, classifier: Any) -> Any:
        """Fit any scikit-learn classifier on the summary, and return it.

        Privacy
        -------
        A plain model stays with curator and consumer. A differentially private classifier protects each
        *gathered point*. One row of an owner may change many points that it sends (choosing is not stable),
        all a_k of them at worst: that is a group of a_k, and its guarantee is what other owners have if
        the model goes back to them.
        """
        if self.y is None:
            raise InputError("The owners' schema has no label to train on.")
        return classifier.fit(self.X, self.y)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the rows into a new ``.npz`` file; one that is there is never overwritten."""
        file = Path(path)
        arrays = {"X": self.X, "owner": self.owner} | ({} if self.y is None else {"y": self.y})
        try:
            with file.open("xb") as stream:
                np.savez_compressed(stream, **arrays)
        except FileExistsError:
            raise InputError(f"{file.name} is there already; name another file.") from None
        return file

    def to_dict(self) -> dict[str, Any]:
        """Plain form for reports, without any row."""
        said = NOT_PRIVATE_EMBEDDED if self.embedded else NOT_PRIVATE
        plain = self.allocation.to_dict()
        return plain | {
            "stamps": [*plain["stamps"], said],
            "points": len(self.X),
            "points_seen": self.points_seen,
            "faults": list(self.faults),
            "values_for_the_consumer": self.contributions(),
        }


class Gathered:
    """Points as they come, each checked; what is wrong is left out and noted."""

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

    def summary(self, allocation: Allocation) -> Summary:
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


__all__ = ["Gathered", "Summary"]
