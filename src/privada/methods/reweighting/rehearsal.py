"""Choose every setting on public data: each part of the source plays the private target once.

The source falls into parts: domains that the caller knows (months, batches, airports), or clusters. Each
part in turn is the target, with the noise that the true size and guarantee would get, and the other parts
are the source; every candidate setting is scored by the loss on a held-out third of the part, relative to
the warm start's. Parts count alike, but for small ones, whose scores are noisy. Noise here is an ordinary
simulation on public rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.methods.reweighting import geometry, losses
from privada.methods.reweighting.discrepancy import moments, of_moments
from privada.methods.reweighting.geometry import Scaling, Spectrum

FloatArray = npt.NDArray[np.float64]
STEPS = 100
RELATIVE = (1e-2, 1e-3, 3e-4, 1e-4)
ALPHAS = (0.03, 0.1, 0.3, 0.7)
STEP_SIZES = (0.03, 0.1, 0.3)
MOMENTUM = 0.0
THRESHOLDS = {
    "squared": (0.06, 0.125, 0.25, 0.5, 1.0, 2.0),
    "logistic": (0.25, 1.0, 3.0),
    "softmax": (0.25, 1.0, 3.0),
}
DRAWS = 2  # splits and draws of noise for each part
ORDINARY = (
    0.995  # losses beyond this quantile of the warm start's count as much as it: few rows decide little
)
MOST_PARTS, MOST_ROWS, FEW_ROWS = 6, 800, 20
SMALL = 200  # rows of a part that counts half: the target is one more domain, not so many more rows
DISCREPANCY_AT = 1e-2  # the preconditioner in which discrepancies are measured
RADII = 1.0  # hypotheses move predictions by about one residual
RESIDUALS = 3.0  # residuals that the discrepancy sees
DRIFTS = (0.3, 1.0, 3.0)  # in residuals, or in spreads of the score
LEAST_RESIDUAL = 0.1  # of the label's spread: a source without noise says nothing of the target's


@dataclass(frozen=True)
class Settings:
    """One candidate: relative penalty of the map, threshold (relative for squared loss), alpha, step size.

    The step size is relative to the inverse of the loss's largest curvature.
    """

    relative: float
    threshold: float
    alpha: float
    step_size: float


@dataclass(frozen=True, eq=False)
class Rehearsed:
    """What the rehearsal found.

    Attributes
    ----------
    settings : tuple of Settings
    scores : array of shape (parts, settings)
        Log of the loss relative to the part's warm start.
    rows : array of shape (parts,)
    discrepancies : array of shape (parts,)
        Of each part from the rest, in units of the source's squared residual; NaN but for squared loss.
    """

    settings: tuple[Settings, ...]
    scores: FloatArray
    rows: FloatArray
    discrepancies: FloatArray

    def best(self, discrepancy: float | None = None) -> tuple[Settings, float]:
        """The settings with the least score; with a discrepancy, parts about as far away count most."""
        weights = self.rows / (self.rows + SMALL)
        if discrepancy is not None:
            gap = np.log(np.maximum(self.discrepancies, 1e-12) / max(discrepancy, 1e-12)) / np.log(2)
            weights = weights * np.exp(-0.5 * np.minimum(np.abs(gap), 6.0) ** 2)
        mean = weights @ self.scores / weights.sum()
        at = int(mean.argmin())
        return self.settings[at], float(mean[at])


def candidates(loss: str, alphas: Sequence[float] | None = None) -> tuple[Settings, ...]:
    """All settings, grouped by the map."""
    grid = product(RELATIVE, THRESHOLDS[loss], ALPHAS if alphas is None else alphas, STEP_SIZES)
    return tuple(Settings(*each) for each in grid)


def parts_of(X: FloatArray, groups: npt.ArrayLike | None, seed: int) -> npt.NDArray[np.int64]:
    """The part of each public row: the caller's groups, or clusters."""
    if groups is not None:
        return np.unique(np.asarray(groups), return_inverse=True)[1].reshape(-1)
    from sklearn.cluster import KMeans

    count = min(4, max(2, len(X) // 50), len(X))
    found: npt.NDArray[np.int64] = KMeans(count, n_init=1, random_state=seed).fit_predict(X).astype(np.int64)
    return found


def warm_penalty(
    loss: str, X: FloatArray, y: npt.NDArray[Any], parts: npt.NDArray[np.int64], n_outputs: int
) -> float:
    """Penalty of the warm start, by leaving out each part."""
    grid = geometry.PENALTIES if loss == "squared" else geometry.PENALTIES[2::2]
    total = np.zeros(len(grid))
    for part in _usable(parts):
        out = parts == part
        for at, penalty in enumerate(grid):
            W = geometry.fit_public(loss, X[~out], y[~out], penalty, n_outputs)
            total[at] += out.sum() * geometry.mean_loss(loss, X[out] @ W, y[out])
    return float(grid[int(total.argmin())]) if total.any() else 1e-2


def _usable(parts: npt.NDArray[np.int64]) -> list[int]:
    """The largest parts, each with something left beside it."""
    sizes = np.bincount(parts)
    order = [int(part) for part in np.argsort(-sizes, kind="stable") if FEW_ROWS <= sizes[part] < len(parts)]
    return order[:MOST_PARTS]


def rehearse(
    loss: str,
    X: FloatArray,
    y: npt.NDArray[Any],
    parts: npt.NDArray[np.int64],
    *,
    penalty: float,
    noise_rate: float,
    n_outputs: int,
    standardize: bool,
    alphas: Sequence[float] | None = None,
    drift: bool = False,
    seed: int = 0,
) -> Rehearsed | None:
    """Score all settings on all parts; ``noise_rate`` is a step's noise on the mean, per unit of c r.

    Clusters of one domain show no change of the label's law. With ``drift`` each part gets three: random
    directions that move predictions by 0.3, 1 and 3 residuals (or spreads of the score); the released
    discrepancy tells which of them the target is like. None if no part is large enough.
    """
    settings, found = candidates(loss, alphas), []
    rng = np.random.default_rng(seed)
    cases = [(part, by) for part in _usable(parts) for by in (DRIFTS if drift else (0.0,))]
    for part, by in cases[:MOST_PARTS]:
        out = parts == part
        drawn = []
        for _ in range(DRAWS):
            stage = _Stage.of(loss, X, y, out, penalty, n_outputs, standardize, rng).drifted(by, rng)
            drawn.append(stage.scores(settings, noise_rate, rng))
        found.append((np.mean(drawn, axis=0), float(out.sum()), stage.discrepancy()))
    if not found:
        return None
    scores, rows, far = zip(*found, strict=True)
    return Rehearsed(settings, np.array(scores), np.array(rows), np.array(far))


@dataclass(frozen=True, eq=False)
class _Stage:
    """One part as the target, the others as the source."""

    loss: str
    source: FloatArray
    target: FloatArray
    test: FloatArray
    labels: tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]
    start: FloatArray
    spectrum: Spectrum

    @classmethod
    def of(
        cls,
        loss: str,
        X: FloatArray,
        y: npt.NDArray[Any],
        out: npt.NDArray[np.bool_],
        penalty: float,
        n_outputs: int,
        standardize: bool,
        rng: np.random.Generator,
    ) -> _Stage:
        scaling = Scaling.of(X[~out], standardize=standardize)
        source = scaling(X[~out])
        order = rng.permutation(np.flatnonzero(out))
        cut = 2 * len(order) // 3
        train, test = order[:cut][:MOST_ROWS], order[cut:][:MOST_ROWS]
        start = geometry.fit_public(loss, source, y[~out], penalty, n_outputs)
        labels = (y[~out], y[train], y[test])
        return cls(loss, source, scaling(X[train]), scaling(X[test]), labels, start, Spectrum.of(source))

    def drifted(self, by: float, rng: np.random.Generator) -> _Stage:
        """The same with the target's labels changed along a random direction."""
        if not by:
            return self
        P = self.spectrum.map(DISCREPANCY_AT)
        direction = rng.standard_normal((P.shape[1], self.start.shape[1]))
        moved = [X @ P @ direction for X in (self.target, self.test)]
        spread = self.unit if self.loss == "squared" else float(np.std(self.source @ self.start))
        scale = by * max(spread, 1e-9) / max(float(np.sqrt(np.mean(np.vstack(moved) ** 2))), 1e-300)
        new: list[npt.NDArray[Any]]
        if self.loss == "squared":
            new = [y + scale * move[:, 0] for y, move in zip(self.labels[1:], moved, strict=True)]
        else:
            rows = (self.target, self.test)
            scores = [X @ self.start + scale * move for X, move in zip(rows, moved, strict=True)]
            new = [_resampled(self.loss, each, rng) for each in scores]
        return replace(self, labels=(self.labels[0], new[0], new[1]))

    @cached_property
    def unit(self) -> float:
        """What thresholds are relative to: the source's residual for squared loss, else 1."""
        return residual(self.loss, self.source @ self.start, self.labels[0])

    def scores(self, settings: tuple[Settings, ...], rate: float, rng: np.random.Generator) -> FloatArray:
        """Log loss of each setting relative to the warm start's."""
        warm = losses.values(self.loss, self.test @ self.start, self.labels[2])
        most = float(np.quantile(warm, ORDINARY))
        before = float(np.minimum(warm, most).mean())
        found: list[float] = []
        for relative in dict.fromkeys(each.relative for each in settings):
            these = [each for each in settings if each.relative == relative]
            P = self.spectrum.map(relative)
            radius = geometry.radius_of(self.source @ P)
            V = self._descend(these, self.target @ P, radius, rate, rng)
            scores = self.test @ self.start
            Z = self.test @ P
            for at in range(len(these)):
                each = losses.values(self.loss, scores + Z @ V[:, at], self.labels[2])
                after = float(np.minimum(each, most).mean())
                found.append(float(np.log(max(after, 1e-12) / max(before, 1e-12))))
        return np.asarray(np.nan_to_num(np.array(found), nan=50.0, posinf=50.0))

    def _descend(
        self, these: list[Settings], Z: FloatArray, radius: float, rate: float, rng: np.random.Generator
    ) -> FloatArray:
        """Averaged ends of all descents at once, shape (k, settings, outputs)."""
        C, K, k = len(these), self.start.shape[1], Z.shape[1]
        alpha, eta = (np.array([getattr(s, name) for s in these])[:, None] for name in ("alpha", "step_size"))
        cut = np.array([s.threshold * self.unit for s in these])
        bound = radius * np.array([losses.largest_pull(self.loss, float(c)) for c in cut])
        lengths = np.maximum(np.linalg.norm(Z, axis=1), 1e-300)
        h = geometry.CURVATURE[self.loss]
        base, V, total = self.target @ self.start, np.zeros((k, C, K)), np.zeros((k, C, K))
        velocity = np.zeros((k, C, K))
        for t in range(STEPS):
            scores = (Z @ V.reshape(k, -1)).reshape(len(Z), C, K) + base[:, None, :]
            psi = _pulls(self.loss, scores, self.labels[1], cut, bound / lengths[:, None])
            gradient = (Z.T @ psi.reshape(len(Z), -1)).reshape(k, C, K) / max(len(Z), 1)
            gradient += rate * bound[:, None] * rng.standard_normal((k, 1, K))
            velocity = MOMENTUM * velocity - eta / h * ((1 - alpha) * gradient + alpha * h * V)
            V = V + velocity
            if t >= STEPS // 2:
                total += V
        return np.asarray(total / (STEPS - STEPS // 2))

    def discrepancy(self) -> float:
        """Of the part from the rest, as the question would measure it; NaN but for squared loss."""
        if self.loss != "squared":
            return float("nan")
        P, unit = self.spectrum.map(DISCREPANCY_AT), self.unit
        radius = geometry.radius_of(self.source @ P)

        def of(X: FloatArray, y: npt.NDArray[Any]) -> FloatArray:
            left = np.clip(y - (X @ self.start)[:, 0], -RESIDUALS * unit, RESIDUALS * unit)
            return moments(geometry.clipped(X @ P, radius), left)

        gap = of(self.target, self.labels[1]) - of(self.source, self.labels[0])
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
    loss: str, scores: FloatArray, y: npt.NDArray[Any], cut: FloatArray, most: FloatArray
) -> FloatArray:
    """ψ of all rows and settings at once, shape (rows, settings, outputs), of length ``most`` at most."""
    if loss == "squared":
        left = scores - np.asarray(y, dtype=np.float64)[:, None, None]
        return np.asarray(np.clip(left, -most[:, :, None], most[:, :, None]))
    n, C, K = scores.shape
    flat = losses.pull(loss, scores.reshape(n * C, K), np.repeat(y, C), np.tile(cut, n))
    sizes = np.maximum(np.linalg.norm(flat, axis=1), 1e-300).reshape(n, C)
    return np.asarray(flat.reshape(n, C, K) * np.minimum(1.0, most / sizes)[:, :, None])


__all__ = [
    "DISCREPANCY_AT",
    "RADII",
    "RESIDUALS",
    "STEPS",
    "Rehearsed",
    "Settings",
    "candidates",
    "parts_of",
    "rehearse",
    "residual",
    "warm_penalty",
]
