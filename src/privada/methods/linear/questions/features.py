"""Public features of a row: its standardised columns, and what models of the public source predict for it.

Models travel as numbers, never as code: a linear model, regression trees, and a kernel machine. Trees are
tables whose children stand below their parents, so a walk ends; the kernel machine is a weighted sum of
Gaussian bumps around public landmarks. Every result is computed record by record in one fixed order, so it
depends on that record alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numba
import numpy as np

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada.methods.linear.questions import public
from privada.privacy.codec import Arrays, Form, Plain

LINKS = ("identity", "probability", "log-odds")
MOST_NODES, MOST_LANDMARKS = 2_000_000, 2_000
FLOOR = (
    0.01  # least probability that log-odds are made of, so that no offset is beyond what a descent can move
)
PREFIX = "features_"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PublicFeatures(Form):
    """Standardised columns and the predictions of public models, as numbers.

    Parameters
    ----------
    mean, spread : arrays of shape (features,)
    limit : float
        Standardised columns are clipped to ``±limit``. The linear model sees them as they are.
    weights : array of shape (features, outputs)
        The linear model, in the features' own units.
    starts : array of shape (models * outputs,)
        What every model's score starts from; the linear model is the first.
    splits : integer array of shape (nodes, 3)
        Column, left and right child of a node; the column of a leaf is -1.
    cuts : array of shape (nodes,)
        Largest value that goes left; the value of a leaf.
    trees : integer array of shape (trees, 2)
        Root of a tree, and the score that it adds to; one tree's nodes follow the other's.
    landmarks, loads : arrays of shape (landmarks, features) and (landmarks, outputs)
        Centres of the kernel machine, which is the last model, in standardised columns, and their weights.
        No landmarks: no kernel machine.
    bandwidth : float
        γ of its bumps ``exp(-γ|z - l|²)``.
    link : "identity", "probability" or "log-odds"
        What predictions are: numbers, or probabilities or log-odds of one class or of several. Scores are
        numbers, or logits.
    low, high : float
        Limits of predicted numbers.
    reach : array of shape (models,)
        How far a model's number may be from the linear model's.
    """

    mean: FloatArray
    spread: FloatArray
    limit: float
    weights: FloatArray
    starts: FloatArray
    splits: IntArray
    cuts: FloatArray
    trees: IntArray
    landmarks: FloatArray
    loads: FloatArray
    bandwidth: float
    reach: FloatArray
    link: str = "identity"
    low: float = -public.LARGEST
    high: float = public.LARGEST
    form: ClassVar[str] = "public-features"

    def __post_init__(self) -> None:
        d = len(public.vector(mean=self.mean))
        weights = public.matrix(weights=self.weights)
        if len(weights) != d:
            raise InputError(f"Expected weights of {d} rows, got {len(weights)}.")
        arrays = {
            "mean": public.vector(mean=self.mean),
            "spread": public.vector(spread=self.spread, length=d),
            "weights": weights,
            "starts": public.vector(starts=self.starts),
            "reach": public.vector(reach=self.reach),
            "cuts": public.vector(cuts=self.cuts) if np.size(self.cuts) else np.zeros(0),
            "splits": _integers(3, splits=self.splits),
            "trees": _integers(2, trees=self.trees),
            "landmarks": _table(d, landmarks=self.landmarks),
            "loads": _table(weights.shape[1], loads=self.loads),
        }
        for name, array in arrays.items():
            object.__setattr__(self, name, array)
        self._check_numbers()
        self._check_trees()

    def _check_numbers(self) -> None:
        _check.one_of(LINKS, link=self.link)
        for name in ("limit", "bandwidth"):
            _check.positive(**{name: getattr(self, name)})
        if not self.spread.min() > 0:
            raise InputError("Expected spread to be positive.")
        low, high = _check.finite(low=self.low), _check.finite(high=self.high)
        if not low < high:
            raise InputError(f"Expected low < high, got {low:g} and {high:g}.")
        if len(self.starts) != self.models * self.outputs or self.reach.min() < 0:
            raise InputError("Expected a start for every output, and a reach of at least 0, of every model.")
        if len(self.landmarks) != len(self.loads) or len(self.landmarks) > MOST_LANDMARKS:
            raise InputError(f"Expected at most {MOST_LANDMARKS:,} landmarks, and loads for each.")

    def _check_trees(self) -> None:
        m = len(self.cuts)
        if len(self.splits) != m or m > MOST_NODES:
            raise InputError(f"Expected as many splits as cuts, at most {MOST_NODES:,}.")
        roots, scores = self.trees[:, 0], self.trees[:, 1]
        ends = np.append(roots, m)
        if (np.diff(ends) <= 0).any() or ends[0] != 0:
            raise InputError("Expected one tree after the other, each with a node at least.")
        place = np.flatnonzero(self.splits[:, 0] >= 0)
        children, end = self.splits[place, 1:], ends[np.searchsorted(roots, place, side="right")]
        if not ((children > place[:, None]).all() and (children < end[:, None]).all()):
            raise InputError("Expected every child below its parent and in its tree.")
        if self.splits[:, 0].max(initial=-1) >= len(self.mean) or scores.min(initial=0) < 0:
            raise InputError("Expected trees of columns that exist.")
        if scores.max(initial=0) >= len(self.starts):
            raise InputError("Expected trees to add to scores that exist.")

    @property
    def outputs(self) -> int:
        """Numbers that a model predicts."""
        return int(self.weights.shape[1])

    @property
    def models(self) -> int:
        """Number of models."""
        return len(self.reach)

    @property
    def columns(self) -> int:
        """Features of a row, before."""
        return len(self.mean)

    @property
    def predicted(self) -> int:
        """Numbers that all models predict together."""
        return len(self.starts)

    @property
    def width(self) -> int:
        """Features of a row, after: standardised columns, then predictions."""
        return self.columns + self.predicted

    def extend(self, X: FloatArray) -> FloatArray:
        """Standardised columns and all predictions of every row."""
        rows = np.ascontiguousarray(X, dtype=np.float64)
        Z = _standardised(rows, self.mean, self.spread, float(self.limit))
        return np.hstack([Z, self._predicted(rows, Z)])

    def predict(self, X: FloatArray) -> FloatArray:
        """All predictions of every row, one model after the other."""
        rows = np.ascontiguousarray(X, dtype=np.float64)
        return self._predicted(rows, _standardised(rows, self.mean, self.spread, float(self.limit)))

    def _predicted(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        scores = _scores(
            X,
            Z,
            self.weights,
            self.starts,
            self.splits,
            self.cuts,
            self.trees,
            self.landmarks,
            self.loads,
            float(self.bandwidth),
        )
        return self.predictions(scores)

    def predictions(self, scores: FloatArray) -> FloatArray:
        """What scores say: numbers within the limits and near the linear model's, or classes."""
        if self.link == "identity":
            return np.asarray(
                _near_linear(scores, self.outputs, float(self.low), float(self.high), self.reach)
            )
        return np.asarray(_classes(scores, self.outputs, self.link == "log-odds"))


def write_features(features: PublicFeatures) -> tuple[Plain, Arrays]:
    """Plain values and arrays, named as in the files of questions that hold them among their own fields."""
    plain, arrays = features.parts()
    return (
        {PREFIX + name: value for name, value in plain.items()},
        {PREFIX + name: array for name, array in arrays.items()},
    )


def read_features(plain: Plain, arrays: Arrays) -> PublicFeatures:
    """Take the features out of what `write_features` wrote into."""
    own = [
        {name.removeprefix(PREFIX): parts.pop(name) for name in list(parts) if name.startswith(PREFIX)}
        for parts in (plain, arrays)
    ]
    return PublicFeatures.from_parts(*own)


def _table(width: int, **named: Any) -> FloatArray:
    """A public matrix that may have no row."""
    ((name, value),) = named.items()
    array = np.asarray(value, dtype=np.float64)
    if not array.size:
        return np.zeros((0, width))
    return public.matrix(width=width, **{name: array})


def _integers(width: int, **named: Any) -> IntArray:
    """A public table of integers that may have no row."""
    ((name, value),) = named.items()
    array = np.asarray(value)
    if not array.size:
        return np.zeros((0, width), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != width or array.dtype.kind not in "iu":
        raise InputError(f"Expected {name} to be integers in {width} columns, got shape {array.shape}.")
    table = np.array(array, dtype=np.int64, order="C")
    table.flags.writeable = False
    return table


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _standardised(
    X: FloatArray, mean: FloatArray, spread: FloatArray, limit: float
) -> FloatArray:  # pragma: no cover - compiled
    """Every column centred, divided and clipped."""
    n, d = X.shape
    Z = np.empty((n, d))
    for i in range(n):
        for j in range(d):
            Z[i, j] = min(limit, max(-limit, (X[i, j] - mean[j]) / spread[j]))
    return Z


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _scores(
    X: FloatArray,
    Z: FloatArray,
    weights: FloatArray,
    starts: FloatArray,
    splits: IntArray,
    cuts: FloatArray,
    trees: IntArray,
    landmarks: FloatArray,
    loads: FloatArray,
    bandwidth: float,
) -> FloatArray:  # pragma: no cover - compiled
    """The linear model's score, a walk down every tree, and the kernel machine's bumps."""
    n, d = X.shape
    outputs = weights.shape[1]
    first = starts.shape[0] - outputs  # of the kernel machine
    scores = np.empty((n, starts.shape[0]))
    for i in range(n):
        for c in range(starts.shape[0]):
            scores[i, c] = starts[c]
        for j in range(d):
            for o in range(outputs):
                scores[i, o] += X[i, j] * weights[j, o]
        for t in range(trees.shape[0]):
            at = trees[t, 0]
            while splits[at, 0] >= 0:
                at = splits[at, 1] if X[i, splits[at, 0]] <= cuts[at] else splits[at, 2]
            scores[i, trees[t, 1]] += cuts[at]
        for m in range(landmarks.shape[0]):
            far = 0.0
            for j in range(d):
                gap = Z[i, j] - landmarks[m, j]
                far += gap * gap
            bump = math.exp(-bandwidth * far)
            for o in range(outputs):
                scores[i, first + o] += bump * loads[m, o]
    return scores


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _near_linear(
    scores: FloatArray, outputs: int, low: float, high: float, reach: FloatArray
) -> FloatArray:  # pragma: no cover - compiled
    """Numbers within the limits, and within every model's reach of the linear one."""
    predictions = np.empty(scores.shape)
    for i in range(scores.shape[0]):
        for c in range(scores.shape[1]):
            base = min(high, max(low, scores[i, c % outputs]))
            gap = min(high, max(low, scores[i, c])) - base
            most = reach[c // outputs]
            value = base + min(most, max(-most, gap))
            predictions[i, c] = value if abs(value) < np.inf else 0.0
    return predictions


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _classes(scores: FloatArray, outputs: int, log_odds: bool) -> FloatArray:  # pragma: no cover - compiled
    """Probabilities of the second of two classes, or of all of several; 0 where a score is not a number.

    Or, for offsets, log-odds of the second of two classes, or log-probabilities of several: of probabilities
    that are not below the floor.
    """
    predictions = np.empty(scores.shape)
    for i in range(scores.shape[0]):
        for first in range(0, scores.shape[1], outputs):
            most = 0.0 if outputs == 1 else scores[i, first]
            for c in range(first, first + outputs):
                most = max(most, scores[i, c])
            total = math.exp(-most) if outputs == 1 else 0.0
            for c in range(first, first + outputs):
                total += math.exp(scores[i, c] - most)
            for c in range(first, first + outputs):
                p = math.exp(scores[i, c] - most) / total
                p = p if abs(p) < np.inf else 0.0
                predictions[i, c] = math.log(max(p, FLOOR)) if log_odds else p
                if log_odds and outputs == 1:
                    predictions[i, c] -= math.log(max(1.0 - p, FLOOR))
    return predictions


__all__ = ["LINKS", "PublicFeatures", "read_features", "write_features"]
