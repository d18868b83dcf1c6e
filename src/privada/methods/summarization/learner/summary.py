"""The summary at the curator's: how many rows each owner contributes, which points came, and their worth."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada.methods.summarization.questions.matching import FourierEmbedding
from privada.methods.summarization.questions.rounds import ANY_COALITION
from privada.parties.protocol import Absent
from privada.privacy.release import Release

BACKGROUND = 0.9  # share of the least suitable owner's rate that is taken for chance
NOT_PRIVATE = "raw rows at the curator: not differentially private"
NOT_PRIVATE_EMBEDDED = "embeddings at the curator: not differentially private"


@dataclass(frozen=True, kw_only=True, eq=False)
class Reference:
    """The public hyperplane between the noisy validation mean and the pooled noisy mean of all owners.

    Attributes
    ----------
    direction : array of shape (features,)
    threshold : float
        Rows whose product with the direction is above it are nearer to the validation mean.
    """

    direction: FloatArray
    threshold: float

    @classmethod
    def between(cls, validation: FloatArray, pooled: FloatArray, *, noise: tuple[float, float]) -> Self:
        """Half-way between two noisy means, whose squared lengths are freed of their noise.

        Parameters
        ----------
        validation, pooled : arrays of shape (features,)
        noise : pair of float
            Variance of the noise on each coordinate of either.
        """
        d = len(validation)
        lengths = (validation @ validation - d * noise[0]) - (pooled @ pooled - d * noise[1])
        return cls(direction=validation - pooled, threshold=float(lengths / 2))


def estimate_shares(sizes: npt.ArrayLike, counts: npt.ArrayLike, *, variance: float) -> FloatArray:
    """Share of suitable rows at each owner: noisy shares, drawn together as far as noise demands.

    Parameters
    ----------
    sizes, counts : arrays of shape (K,)
        Public sizes, noisy counts of suitable rows.
    variance : float
        Of the noise on each count.

    Notes
    -----
    Random effects: an owner's share has mean θ and variance τ² over owners, its noisy share variance
    ``τ² + σ²/n²`` around θ. θ and τ² are found by moments; each share is drawn to θ by ``τ²/(τ² + σ²/n²)``.
    """
    n = np.asarray(sizes, dtype=np.float64)
    shares = np.asarray(counts, dtype=np.float64) / n
    spread = variance / n**2
    tau2 = float(np.average((shares - np.average(shares, weights=n)) ** 2 - spread, weights=n**2))
    for _ in range(20):
        # The spread of owners beyond noise, by moments; where noise explains all, there is none.
        tau2 = max(tau2, 0.0)
        precision = 1 / (tau2 + spread)
        theta = float(np.average(shares, weights=precision))
        tau2 = float(np.average((shares - theta) ** 2 - spread, weights=precision))
    pulled = max(tau2, 0.0) / (max(tau2, 0.0) + spread)
    return np.clip(theta + pulled * (shares - theta), 0.0, 1.0)


def allocate(
    sizes: npt.ArrayLike, suitable: npt.ArrayLike, *, total: int, background: float = BACKGROUND
) -> IntArray:
    """Rows that each owner contributes; they sum to ``total``, none is above its owner's size.

    Parameters
    ----------
    sizes : array of shape (K,)
        Public sizes.
    suitable : array of shape (K,)
        Estimated share of suitable rows.
    total : int
    background : float, default=0.9
        This much of the smallest share counts as chance. Owners that are alike then contribute in
        proportion to their sizes, and owners that stand out contribute nearly everything.

    >>> allocate([100, 100, 200], [0.5, 0.5, 0.5], total=40).tolist()
    [10, 10, 20]
    >>> allocate([100, 100], [0.7, 0.5], total=40).tolist()
    [34, 6]
    """
    n = np.asarray(sizes, dtype=np.int64)
    rate = np.asarray(suitable, dtype=np.float64)
    if _check.count(total=total) > n.sum():
        raise InputError(f"Expected at most {n.sum()} rows, all that the owners have, got {total}.")
    weights = n * (rate - background * rate.min())
    if weights.sum() <= 0:
        weights = n.astype(np.float64)
    weights = weights + 1e-12 * n
    plenty = np.minimum(n, np.maximum(np.ceil(n * rate), 1)).astype(np.int64)
    # In proportion to the weights up to all suitable rows, and beyond only when all owners have given those.
    rows = np.zeros(len(n), dtype=np.int64)
    for limit in (plenty, n):
        while (missing := total - int(rows.sum())) > 0 and np.any(unfilled := limit - rows > 0):
            parts = np.where(unfilled, weights, 0.0)
            parts *= missing / parts.sum()
            step = np.minimum(np.floor(parts), limit - rows).astype(np.int64)
            if not step.any():  # one by one, by the largest remainder
                first = np.argsort(-np.where(unfilled, parts, -1.0), kind="stable")
                step[first[: min(missing, int(unfilled.sum()))]] = 1
            rows += step
    return rows


@dataclass(frozen=True, kw_only=True, eq=False)
class Allocation:
    """How many rows each owner contributes, and what that was made from.

    Attributes
    ----------
    rows : mapping of owner's name to int
    sizes : mapping of owner's name to int
        Public sizes, of the owners that take part.
    suitable : mapping of owner's name to float
        Estimated share of rows that are nearer to the validation set than to the pool.
    target : array of shape (features,)
        The noisy validation mean.
    variance : float
        Of the noise on each of its coordinates.
    releases : tuple of Release
    absent : tuple of Absent
        The owners that did not answer.
    against : str
        Whom the owners' guarantee holds against.

    Privacy
    -------
    After `match`, post-processing of releases. After rounds, ``rows`` counts what is in the summary, an exact
    number that depends on rows: for the curator and the consumer only.
    """

    rows: Mapping[str, int]
    sizes: Mapping[str, int]
    suitable: Mapping[str, float]
    target: FloatArray
    variance: float
    releases: tuple[Release, ...]
    absent: tuple[Absent, ...] = ()
    against: str = ANY_COALITION

    def to_dict(self) -> dict[str, Any]:
        """Plain form for reports."""
        return {
            "guarantee": str(self.releases[0].guarantee),
            "against": self.against,
            "stamps": sorted({stamp for release in self.releases for stamp in release.stamps}),
            "rows": dict(self.rows),
            "suitable": {name: round(share, 4) for name, share in self.suitable.items()},
            "noise_per_coordinate": math.sqrt(self.variance),
            "absent": {absent.owner: absent.reason for absent in self.absent},
        }

    def resized(self, total: int) -> Allocation:
        """The same releases, for a summary of another size: post-processing."""
        check_size(self.sizes, total)
        counts = allocate(list(self.sizes.values()), list(self.suitable.values()), total=total)
        return replace(self, rows={name: int(n) for name, n in zip(self.sizes, counts, strict=True)})

    def without(self, lost: Mapping[str, int], absent: Iterable[Absent]) -> Allocation:
        """The same total over the remaining owners; rows that were asked for stay asked for."""
        dropped = tuple(absent)
        names = [name for name in self.sizes if name not in {owner.owner for owner in dropped}]
        unasked = np.array([self.sizes[name] - self.rows[name] for name in names], dtype=np.int64)
        # By public numbers alone: what was asked for, and the owners' sizes.
        more = min(sum(lost.values()), int(unasked.sum()))
        rows = {name: self.rows[name] for name in names}
        if more:
            extra = allocate(unasked, np.array([self.suitable[name] for name in names]), total=more)
            rows = {name: rows[name] + int(n) for name, n in zip(names, extra, strict=True)}
        return replace(
            self,
            rows=rows,
            sizes={name: self.sizes[name] for name in names},
            suitable={name: self.suitable[name] for name in names},
            absent=self.absent + dropped,
        )


def check_size(sizes: Mapping[str, int], size: int) -> None:
    """Refuse a summary larger than all rows together."""
    if sum(sizes.values()) < size:
        raise InputError(
            f"Expected size to be at most {sum(sizes.values())}, all rows of the owners that take part, "
            f"got {size}."
        )


def herd(features: npt.ArrayLike, target: npt.ArrayLike, size: int) -> IntArray:
    """Choose rows one by one so that their mean comes nearest to ``target``.

    Parameters
    ----------
    features : array of shape (n, d)
        Embedded rows of equal norm.
    target : array of shape (d,)
    size : int
        How many; all different.

    Returns
    -------
    array of int
        Indices in the order of choice; the first of equals.

    Notes
    -----
    With S the sum of q rows so far, ``|g - (S + h)/(q+1)|²`` is least where ``(q+1) g·h - S·h`` is
    largest, if all rows have one norm. That score moves by ``g·h - h_j·h`` when j is chosen, so a step
    costs one matrix-vector product, in the precision of ``features``.

    >>> herd([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], 2).tolist()
    [0, 1]
    """
    H = np.ascontiguousarray(features)
    if H.dtype not in (np.float32, np.float64):
        H = H.astype(np.float64)
    if H.ndim != 2 or _check.count(least=0, size=size) > len(H):
        raise InputError(f"Expected size to be at most the {len(H)} rows, got {size}.")
    pull = H @ np.asarray(target, dtype=H.dtype)
    score, moved = pull.copy(), np.empty_like(pull)
    chosen = np.empty(size, dtype=np.int64)
    for step in range(size):
        best = int(np.argmax(score))
        chosen[step] = best
        score[best] = -np.inf
        # g·h - h_best·h for all rows h, without another array of their size.
        np.dot(H, H[best], out=moved)
        np.subtract(pull, moved, out=moved)
        score += moved
    return chosen


def marginal_gains(features: npt.ArrayLike, target: npt.ArrayLike) -> tuple[IntArray, FloatArray]:
    """Greedy order of all rows, and what each added to ``J = |g|² - |g - mean|²`` when it came.

    The gain of the first row is over an empty summary, whose J is 0.
    """
    H = np.asarray(features, dtype=np.float64)
    g = np.asarray(target, dtype=np.float64)
    order = herd(H, g, len(H))
    sums = np.concatenate([np.zeros((1, H.shape[1])), np.cumsum(H[order], axis=0)])
    # |g|² - |g - mean|² = 2 g·mean - |mean|², for every prefix of the order at once.
    means = sums / np.maximum(np.arange(len(sums)), 1)[:, None]
    worth = 2 * means @ g - np.sum(means**2, axis=1)
    return order, np.diff(worth)


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
        The name of the owner that sent each.
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
        """Write the rows into a new ``.npz`` file; an existing file is never overwritten."""
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
        plain = self.allocation.to_dict()
        return plain | {
            "stamps": [*plain["stamps"], NOT_PRIVATE_EMBEDDED if self.embedded else NOT_PRIVATE],
            "points": len(self.X),
            "points_seen": self.points_seen,
            "faults": list(self.faults),
            "values_for_the_consumer": self.contributions(),
        }


class PointCollection:
    """Points that owners disclose, each checked as it comes; what is wrong is left out and noted.

    Parameters
    ----------
    embedding : FourierEmbedding
    embedded : bool
        Whether owners send embeddings instead of rows.
    """

    def __init__(self, *, embedding: FourierEmbedding, embedded: bool) -> None:
        self._embedding, self._embedded = embedding, embedded
        self._points: list[tuple[str, FloatArray, Any]] = []
        self._keys: set[tuple[str, bytes]] = set()
        self._received = 0
        self._faults: list[str] = []

    def note(self, owner: str, fault: str) -> None:
        """Write down that an owner sent nothing that can be used, and why."""
        self._faults.append(f"{owner}: {fault}")

    def add(self, owner: str, rows: Mapping[str, npt.NDArray[Any]], *, most: int) -> None:
        """Check and keep an owner's points, at most ``most`` of them."""
        width = self._embedding.dimension if self._embedded else self._embedding.width
        try:
            points = np.asarray(rows["H" if self._embedded else "X"], dtype=np.float64)
            labels = np.asarray(rows["y"]) if "y" in rows else np.full(len(points), None)
            if points.ndim != 2 or points.shape[1] != width or len(labels) != len(points):
                raise ValueError
        except (KeyError, TypeError, ValueError):
            self.note(owner, "what it sent is no matrix of the right width")
            return
        self._received += len(points)
        if len(points) > most:
            self.note(owner, "more points than asked for")
        faults = {"a point that is not finite": 0, "a point twice": 0}
        for point, label in zip(points[:most], labels, strict=False):
            key = owner, (point + 0.0).tobytes()  # by owner: others may hold an equal point
            if not np.isfinite(point).all() or (isinstance(label, np.floating) and not np.isfinite(label)):
                faults["a point that is not finite"] += 1
            elif key in self._keys:
                faults["a point twice"] += 1
            else:
                self._keys.add(key)
                self._points.append((owner, point, label))
        self._faults += [f"{owner}: {fault} ({times})" for fault, times in faults.items() if times]

    def to_summary(self, allocation: Allocation) -> Summary:
        """The points that passed, as a summary."""
        if not self._points:
            raise InputError("No owner sent a point that can be used.")
        owners, points, labels = zip(*self._points, strict=True)
        return Summary(
            X=np.array(points),
            y=None if any(label is None for label in labels) else np.array(labels),
            owner=np.array(owners),
            allocation=allocation,
            points_seen=self._received,
            faults=tuple(self._faults),
            embedding=self._embedding,
            embedded=self._embedded,
        )


__all__ = [
    "BACKGROUND",
    "Allocation",
    "PointCollection",
    "Reference",
    "Summary",
    "allocate",
    "check_size",
    "estimate_shares",
    "herd",
    "marginal_gains",
]
