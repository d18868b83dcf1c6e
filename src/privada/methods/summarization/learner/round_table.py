"""The curator's table in the round protocol: raw points, who still takes part, and what went wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.summarization.learner.allocation import Absent, Allocation
from privada.methods.summarization.learner.summary import Summary
from privada.methods.summarization.questions.embedding import FourierEmbedding
from privada.methods.summarization.questions.rounds import NO_POINT
from privada.methods.summarization.questions.scoring import score_points
from privada.privacy.release import Disclosure

TOLERANCE = 1e-9  # relative: a point's score is computed alike on both sides


@dataclass(frozen=True, eq=False, repr=False)
class Point:
    """A raw point at the curator's."""

    owner: str
    number: int
    X: FloatArray
    y: Any
    features: FloatArray


@dataclass(frozen=True, eq=False)
class Bid:
    """What an owner offers: scores, falling, and its points' numbers."""

    scores: FloatArray
    index: npt.NDArray[np.int64]


NO_BID = Bid(np.zeros(0), np.zeros(0, dtype=np.int64))


@dataclass(eq=False, repr=False)
class RoundTable:
    """Pool and summary, and who is still taking part.

    Attributes
    ----------
    embedding : FourierEmbedding
    target : array of shape (features,)
        The noisy validation mean.
    start, start_size
        Sum of the embedding over rows that are in the training set already, and their number.
    playing : list of str
        Owners that have kept to the rules.
    pool, chosen : lists of Point
        What was sent and is not in the summary, and the summary.
    sent : dict of owner's name to list of int
        Numbers of the points that each has sent.
    seen : int
        How many points came, also those that were refused.
    faults : list of str
        Who was left out, and why; never a row.
    failed : bool
        Whether an owner did not send what it was asked for.
    batch : int
        The most points that an owner is asked for at once.
    collections : int
        How often all owners were asked for points: no owner has sent more than so many batches.
    """

    embedding: FourierEmbedding
    target: FloatArray
    start: FloatArray
    start_size: int
    playing: list[str]
    pool: list[Point] = field(default_factory=list)
    chosen: list[Point] = field(default_factory=list)
    sent: dict[str, list[int]] = field(default_factory=dict)
    seen: int = 0
    faults: list[str] = field(default_factory=list)
    failed: bool = False
    batch: int = 1
    collections: int = 0

    def drop(self, owner: str, reason: str) -> None:
        """Leave an owner out from here on; its points leave the pool, not the summary."""
        self.playing.remove(owner)
        self.pool = [point for point in self.pool if point.owner != owner]
        self.faults.append(f"{owner}: {reason}")

    def summary_features(self) -> FloatArray:
        """Embeddings of the summary."""
        return np.array([point.features for point in self.chosen]).reshape(-1, self.embedding.dimension)

    def pooled_scores(self, slope: FloatArray) -> dict[str, FloatArray]:
        """Scores of pooled points, by owner."""
        return {
            name: _score([point for point in self.pool if point.owner == name], slope)
            for name in self.playing
        }

    def take_best(self, slope: FloatArray, most: int) -> None:
        """Move the best points of the pool into the summary; ties by owner, then by the points' values."""
        scored = zip(_score(self.pool, slope).tolist(), self.pool, strict=True)
        best = sorted(scored, key=lambda pair: (-pair[0], pair[1].owner, tuple(pair[1].X.tolist())))
        order = [point for _, point in best[:most]]
        self.chosen += order
        taken = {id(point) for point in order}
        self.pool = [point for point in self.pool if id(point) not in taken]

    def accept_bid(self, owner: str, reply: Any, batch: int) -> Bid | None:
        """An owner's bid; None if it has no point left, or broke a rule and is left out."""
        bid = _read_bid(reply, self.sent.get(owner, []), batch)
        if isinstance(bid, str):
            self.drop(owner, bid)
            return None
        return bid if len(bid.index) else None

    def accept_points(self, owner: str, reply: Any, bid: Bid, slope: FloatArray) -> None:
        """Put an owner's points into the pool, or leave it out if they are not what it bid."""
        points = _read_points(owner, reply, bid, self.embedding)
        fault = points if isinstance(points, str) else ""
        if not isinstance(points, str):
            self.seen += len(points)
            fault = self._find_fault(points, bid, slope)
        if fault or isinstance(points, str):
            self.drop(owner, fault)
            self.failed = True
            return
        self.pool += points
        self.sent.setdefault(owner, []).extend(bid.index.tolist())

    def _find_fault(self, points: list[Point], bid: Bid, slope: FloatArray) -> str:
        """What is wrong with points: not finite, sent before, or not what was bid."""
        if not points:
            return ""
        X = np.array([point.X for point in points])
        if not np.isfinite(X).all():
            return "a point that is not finite"
        held = (*self.pool, *self.chosen)
        before = {point.X.tobytes() for point in held if point.owner == points[0].owner}
        now = [row.tobytes() for row in X]
        if len(set(now)) != len(now) or set(now) & before:
            return "a point twice"
        scores = _score(points, slope)
        if not np.allclose(scores, bid.scores, rtol=TOLERANCE, atol=TOLERANCE * float(np.abs(slope).sum())):
            return "a point that does not match its bid"
        return ""

    def to_summary(self, allocation: Allocation) -> Summary:
        """The chosen points as a summary."""
        if not self.chosen:
            raise InputError("No owner sent a point that can be used.")
        labels = [point.y for point in self.chosen]
        return Summary(
            X=np.array([point.X for point in self.chosen]),
            y=None if any(label is None for label in labels) else np.array(labels),
            owner=np.array([point.owner for point in self.chosen]),
            allocation=allocation,
            points_seen=self.seen,
            faults=tuple(self.faults),
            embedding=self.embedding,
        )


def _score(points: list[Point], slope: FloatArray) -> FloatArray:
    features = np.array([point.features for point in points]).reshape(-1, len(slope))
    return score_points(features, slope)


def _read_bid(reply: Any, sent: list[int], batch: int) -> Bid | str:
    """A bid, or what is wrong with it."""
    if isinstance(reply, Absent):
        return reply.reason
    assert isinstance(reply, Disclosure)
    try:
        scores = np.asarray(reply.rows["scores"], dtype=np.float64)
        index = np.asarray(reply.rows["index"]).astype(np.int64)
    except (KeyError, TypeError, ValueError):
        return "its bid cannot be read"
    if scores.shape != index.shape or scores.ndim != 1 or len(scores) > batch:
        return "its bid has another shape"
    if not np.isfinite(scores).all() or np.any(np.diff(scores) > 0):
        return "its bid is not finite, or not in order"
    if len(set(index.tolist())) != len(index) or set(index.tolist()) & {*sent, NO_POINT}:
        return "it bids with a point that it has sent"
    return Bid(scores, index)


def _read_points(owner: str, reply: Any, bid: Bid, embedding: FourierEmbedding) -> list[Point] | str:
    """Points, or what is wrong with them."""
    if isinstance(reply, Absent):
        return reply.reason
    assert isinstance(reply, Disclosure)
    try:
        X = np.asarray(reply.rows["X"], dtype=np.float64)
        y = reply.rows["y"] if "y" in reply.rows else [None] * len(X)
        features = embedding.transform(X)
        rows = zip(bid.index.tolist(), X, y, features, strict=True)
        return [Point(owner, int(number), *rest) for number, *rest in rows]
    except (KeyError, TypeError, ValueError, InputError):
        return "its points cannot be read"


__all__ = ["Bid", "Point", "RoundTable"]
