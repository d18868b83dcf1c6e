"""One public part as the private target, the others as the source: a descent with simulated noise.

Noise here is an ordinary simulation on public rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.methods.linear.questions import losses
from privada.methods.reweighting.learner import geometry, shrinkage
from privada.methods.reweighting.learner.geometry import Scaling, Spectrum
from privada.methods.reweighting.learner.portrait import Cells, Likeness
from privada.methods.reweighting.learner.shrinkage import Filter, Shrinkage
from privada.methods.reweighting.questions.supremum import moments, of_moments

FloatArray = npt.NDArray[np.float64]
STEPS = 100
MOST_ROWS, MOST_TESTED = 1600, 800
ORDINARY = (
    0.995  # losses beyond this quantile of the warm start's count as much as it: few rows decide little
)
DISCREPANCY_AT = 1e-2  # the preconditioner in which discrepancies are measured
RADII = 1.0  # hypotheses move predictions by about one residual
RESIDUALS = 3.0  # residuals that the discrepancy sees
LEAST_RESIDUAL = 0.1  # of the label's spread: a source without noise says nothing of the target's
PULLS = {"logistic": 0.5, "softmax": 0.5}  # usual size, for the sampling error


@dataclass(frozen=True)
class Settings:
    """One candidate: relative penalty of the map, threshold (relative for squared loss), alpha, step size.

    The step size is relative to the inverse of the loss's largest curvature; ``likeness`` is how much the map
    follows a noisy portrait of the target, ``shrink`` whether the correction is shrunk by its own evidence.
    """

    relative: float
    threshold: float
    alpha: float
    step_size: float
    likeness: float = 0.0
    shrink: bool = False


@dataclass(frozen=True)
class Noise:
    """What the guarantee will add.

    Attributes
    ----------
    rate : float
        A step's noise on the mean gradient, in units of c r.
    after : float
        The same where a portrait was asked for first.
    portrait : (float, float)
        Noise of the portrait: on shares of rows, and on the mean in units of the clipping radius.
    """

    rate: float
    after: float
    portrait: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Source:
    """The public side: scaled rows, labels, warm start, spectrum, cells."""

    loss: str
    scaling: Scaling
    rows: FloatArray
    labels: npt.NDArray[Any]
    start: FloatArray
    spectrum: Spectrum
    cells: Cells | None

    @classmethod
    def of(
        cls,
        loss: str,
        X: FloatArray,
        y: npt.NDArray[Any],
        penalty: float,
        n_outputs: int,
        standardize: bool,
        seed: int,
    ) -> Source:
        """Fitted to public rows."""
        scaling = Scaling.of(X, standardize=standardize)
        rows = scaling(X)
        start, spectrum = geometry.fit_public(loss, rows, y, penalty, n_outputs), Spectrum.of(rows)
        cells = Cells.of(rows, spectrum, seed) if loss == "squared" else None  # whose curvature is the rows'
        return cls(loss, scaling, rows, y, start, spectrum, cells)

    @cached_property
    def unit(self) -> float:
        """What thresholds are relative to: the source's residual for squared loss, else 1."""
        return residual(self.loss, self.rows @ self.start, self.labels)

    def map(self, settings: Settings, like: Likeness | None = None) -> Map:
        """The preconditioner, its radius and curvatures; a likeness bends it toward the target."""
        rows = self.rows if like is None else like.bend(self.rows, settings.likeness)
        spectrum = self.spectrum if like is None else Spectrum.of(rows)
        P = spectrum.map(settings.relative)
        Z = rows @ P
        radius = geometry.radius_of(Z) if like is None else float(np.sqrt((Z**2).sum(axis=1).mean()))
        return Map(P, radius, spectrum.eigen / (spectrum.eigen + settings.relative * spectrum.eigen[0]))

    def shrinkage(self, curvatures: FloatArray, threshold: float) -> Shrinkage:
        """What is known of the errors of a descent."""
        usual = min(threshold / 2, 1.0) * self.unit if self.loss == "squared" else PULLS[self.loss]
        return Shrinkage(curvatures, usual / geometry.CURVATURE[self.loss], self.unit)


@dataclass(frozen=True, eq=False)
class Map:
    """Public coordinates of a descent."""

    transform: FloatArray
    radius: float
    curvatures: FloatArray


@dataclass(frozen=True, eq=False)
class Stage:
    """A source, and rows and labels that play the target."""

    source: Source
    target: FloatArray
    test: FloatArray
    labels: tuple[npt.NDArray[Any], npt.NDArray[Any]]

    @classmethod
    def of(
        cls, source: Source, X: FloatArray, y: npt.NDArray[Any], rng: np.random.Generator, size: int
    ) -> Stage:
        """Two thirds of the part, as many as the target has at most, are the private rows, the rest the test.

        More rows than the target's would hide its sampling error, fewer would exaggerate it.
        """
        order = rng.permutation(len(X))
        cut = 2 * len(order) // 3
        train, test = order[:cut][: min(size, MOST_ROWS)], order[cut:][:MOST_TESTED]
        scaled = source.scaling(X)
        return cls(source, scaled[train], scaled[test], (y[train], y[test]))

    def drifted(self, by: float, rng: np.random.Generator) -> Stage:
        """The same with the target's labels changed along a random direction."""
        if not by:
            return self
        source, loss = self.source, self.source.loss
        P = source.spectrum.map(DISCREPANCY_AT)
        direction = rng.standard_normal((P.shape[1], source.start.shape[1]))
        moved = [X @ P @ direction for X in (self.target, self.test)]
        spread = source.unit if loss == "squared" else float(np.std(source.rows @ source.start))
        scale = by * max(spread, 1e-9) / max(float(np.sqrt(np.mean(np.vstack(moved) ** 2))), 1e-300)
        new: list[npt.NDArray[Any]]
        if loss == "squared":
            new = [y + scale * move[:, 0] for y, move in zip(self.labels, moved, strict=True)]
        else:
            rows = (self.target, self.test)
            scores = [X @ source.start + scale * move for X, move in zip(rows, moved, strict=True)]
            new = [_resampled(loss, each, rng) for each in scores]
        return replace(self, labels=(new[0], new[1]))

    def scores(self, settings: tuple[Settings, ...], noise: Noise, rng: np.random.Generator) -> FloatArray:
        """Log loss of each setting relative to the warm start's, shape (2, settings): plain and shrunk."""
        loss, base = self.source.loss, self.test @ self.source.start
        warm = losses.values(loss, base, self.labels[1])
        most = float(np.quantile(warm, ORDINARY))
        before = float(np.minimum(warm, most).mean())
        found: list[list[float]] = [[], []]
        for relative, likeness in dict.fromkeys((each.relative, each.likeness) for each in settings):
            these = [s for s in settings if (s.relative, s.likeness) == (relative, likeness)]
            made = self.source.map(these[0], self._seen(likeness, noise, rng))
            Z = self.test @ made.transform
            for kept, V in zip(found, self._descend(these, made, noise, rng), strict=True):
                for at in range(len(these)):
                    each = losses.values(loss, base + Z @ V[:, at], self.labels[1])
                    after = float(np.minimum(each, most).mean())
                    kept.append(float(np.log(max(after, 1e-12) / max(before, 1e-12))))
        return np.asarray(np.nan_to_num(np.array(found), nan=50.0, posinf=50.0))

    def _seen(self, likeness: float, noise: Noise, rng: np.random.Generator) -> Likeness | None:
        """What a noisy portrait of the target would say."""
        cells = self.source.cells
        if not likeness or cells is None:
            return None
        shares, mean = cells.seen(self.target)
        sizes = (noise.portrait[0], noise.portrait[1] * cells.radius)
        shares = shares + sizes[0] * rng.standard_normal(len(shares))
        return cells.portrait(shares, mean + sizes[1] * rng.standard_normal(len(mean)), sizes)

    def _descend(
        self, these: list[Settings], made: Map, noise: Noise, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Averaged ends of all descents at once, shape (k, settings, outputs); the same shrunk."""
        loss, start = self.source.loss, self.source.start
        Z = (self.target @ made.transform).astype(np.float32)  # a simulation: half the memory, half the time
        C, K, k = len(these), start.shape[1], Z.shape[1]
        alpha, eta = (np.array([getattr(s, name) for s in these])[:, None] for name in ("alpha", "step_size"))
        cut = np.array([s.threshold * self.source.unit for s in these])
        bound = made.radius * np.array([losses.largest_pull(loss, float(c)) for c in cut])
        most = (bound / np.maximum(np.linalg.norm(Z, axis=1), 1e-30)[:, None]).astype(Z.dtype)
        h = geometry.CURVATURE[loss]
        rate = noise.after if these[0].likeness else noise.rate
        base = (self.target @ start).astype(Z.dtype)[:, None, :]
        V, total = np.zeros((k, C, K)), np.zeros((k, C, K))
        for t in range(STEPS):
            scores = (Z @ V.reshape(k, -1).astype(Z.dtype)).reshape(len(Z), C, K) + base
            psi = _pulls(loss, scores, self.labels[0], cut, most)
            gradient = (Z.T @ psi.reshape(len(Z), -1)).reshape(k, C, K) / max(len(Z), 1)
            gradient += rate * bound[:, None] * rng.standard_normal((k, 1, K))
            V = V - eta / h * ((1 - alpha) * gradient + alpha * h * V)
            if t >= STEPS // 2:
                total += V
        mean = total / (STEPS - STEPS // 2)
        reach = self.source.shrinkage(made.curvatures, these[0].threshold).reach
        return mean, shrinkage.shrunk(mean, self._variance(these, made, rate * bound), reach=reach)

    def _variance(self, these: list[Settings], made: Map, noise: FloatArray) -> FloatArray:
        """ν of every direction and setting; the sampling error is that of the part's own rows."""
        h, columns = geometry.CURVATURE[self.source.loss], []
        filters = {
            (alpha, step): Filter.of(made.curvatures, alpha=alpha, step=step, steps=STEPS)
            for alpha, step in {(each.alpha, each.step_size) for each in these}
        }
        for each, size in zip(these, noise, strict=True):
            known = self.source.shrinkage(made.curvatures, each.threshold)
            heard = filters[each.alpha, each.step_size]
            columns.append(known.variance(heard, noise=size / h, rows=len(self.target)))
        return np.array(columns).T

    def discrepancy(self) -> float:
        """Of the part from the rest, as the question would measure it; NaN but for squared loss."""
        source = self.source
        if source.loss != "squared":
            return float("nan")
        P, unit = source.spectrum.map(DISCREPANCY_AT), source.unit
        radius = geometry.radius_of(source.rows @ P)

        def of(X: FloatArray, y: npt.NDArray[Any]) -> FloatArray:
            left = np.clip(y - (X @ source.start)[:, 0], -RESIDUALS * unit, RESIDUALS * unit)
            return moments(geometry.clipped(X @ P, radius), left)

        gap = of(self.target, self.labels[0]) - of(source.rows, source.labels)
        return of_moments(gap, RADII * unit).value / unit**2


def residual(loss: str, scores: FloatArray, y: npt.NDArray[Any]) -> float:
    """Root mean squared residual, or 1 for losses whose thresholds are absolute."""
    if loss != "squared":
        return 1.0
    least = max(LEAST_RESIDUAL * float(np.std(y)), 1e-3 * float(np.abs(y).max()), 1e-6)
    return max(float(np.sqrt(np.mean((scores[:, 0] - y) ** 2))), least)


def _resampled(loss: str, scores: FloatArray, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Labels drawn by their probabilities."""
    chance = losses.probabilities(loss, scores)
    if loss == "logistic":
        return np.asarray(rng.random(len(chance)) < chance[:, 0], dtype=np.int64)
    below = np.cumsum(chance, axis=1)[:, :-1]
    return np.asarray((rng.random((len(chance), 1)) > below).sum(axis=1), dtype=np.int64)


def _pulls(
    loss: str, scores: npt.NDArray[Any], y: npt.NDArray[Any], cut: FloatArray, most: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    """ψ of all rows and settings at once, shape (rows, settings, outputs), of length ``most`` at most."""
    if loss == "squared":
        left = scores - np.asarray(y, dtype=scores.dtype)[:, None, None]
        return np.asarray(np.clip(left, -most[:, :, None], most[:, :, None]))
    n, C, K = scores.shape
    flat = losses.pull(loss, scores.reshape(n * C, K), np.repeat(y, C), np.tile(cut, n).astype(scores.dtype))
    sizes = np.maximum(np.linalg.norm(flat, axis=1), 1e-30).reshape(n, C)
    return np.asarray(flat.reshape(n, C, K) * np.minimum(1.0, most / sizes)[:, :, None])


__all__ = [
    "DISCREPANCY_AT",
    "RADII",
    "RESIDUALS",
    "STEPS",
    "Map",
    "Noise",
    "Settings",
    "Source",
    "Stage",
    "residual",
]
