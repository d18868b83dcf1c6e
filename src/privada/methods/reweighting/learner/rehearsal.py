"""Choose every setting on public data: each part of the source plays the private target once.

The source falls into parts: domains that the caller knows (months, batches, airports), or clusters. Each
part in turn is the target, with the noise that the true size and guarantee would get, and the other parts
are the source; every candidate setting is scored by the loss on a held-out third of the part, relative to
the warm start's. Parts count alike, but for small ones, whose scores are noisy.

How often small parts play, and how far numbers drift where domains are known, were chosen on targets that no
figure scores: 13 hours of flights, 11 months of wind, 6 days of news and 4 batches of gas, two or three
splits each, at epsilon 1 and 4. Beside two draws and a drift of 0.3 the logarithm of the error fell by 0.008
and 0.004 (flights), 0.004 and 0.006 (wind), 0.006 and 0.001 (news), 0.005 and 0.004 (gas), with standard
errors of 0.001 to 0.006: a drift of 0.3 adapts too much where the target is like the source. The drift was
picked among some 35 rules on half of these; on the other half it gained 0.006 and 0.001 (flights, the first
of them clear), 0.002 and 0.006 (wind), 0.003 and -0.002 (news). Clusters play twice: on sixteen tiny sets of
classes more draws did not help (errors +0.02 to +0.11).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.methods.reweighting.learner import geometry, portrait
from privada.methods.reweighting.learner.stage import Noise, Settings, Source, Stage

FloatArray = npt.NDArray[np.float64]
RELATIVE = (1e-2, 1e-4)
ALPHAS = (0.03, 0.3)
STEP_SIZES = (0.05, 0.1, 0.2)  # a target may have ten times the source's curvature in some direction
THRESHOLDS = {
    "squared": (0.06, 0.125, 0.25, 0.5, 1.0, 2.0),
    "logistic": (0.25, 1.0, 3.0),
    "softmax": (0.25, 1.0, 3.0),
}
DRAWS = (2, 6)  # splits and draws of noise for each part, at least and at most
WORK = 50_000  # rows times directions of all draws of a part: small targets' scores are noisy, and cheap
MOST_PARTS, FEW_ROWS = 6, 20
SMALL = 200  # rows of a part that counts half: the target is one more domain, not so many more rows
DRIFTS = (0.3, 1.0, 3.0)  # of clusters' labels, in residuals, or in spreads of the score
MORE = {"squared": 0.15, "logistic": 0.3, "softmax": 0.3}  # of known domains', beside none at all


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

    def best(self, discrepancy: float | None = None, *, plain: bool = False) -> tuple[Settings, float]:
        """The settings with the least score; with a discrepancy, parts about as far away count most.

        ``plain`` leaves out those that need a portrait of the target first.
        """
        weights = self.rows / (self.rows + SMALL)
        if discrepancy is not None:
            gap = np.log(np.maximum(self.discrepancies, 1e-12) / max(discrepancy, 1e-12)) / np.log(2)
            weights = weights * np.exp(-0.5 * np.minimum(np.abs(gap), 6.0) ** 2)
        mean = weights @ self.scores / weights.sum()
        if plain:
            mean = np.where([each.likeness > 0 for each in self.settings], np.inf, mean)
        at = int(mean.argmin())
        return self.settings[at], float(mean[at])


def candidates(
    loss: str, alphas: Sequence[float] | None = None, *, alike: bool = False
) -> tuple[Settings, ...]:
    """All settings, grouped by the map; ``alike`` adds maps that a noisy portrait of the target bends."""
    grid = product(RELATIVE, THRESHOLDS[loss], ALPHAS if alphas is None else alphas, STEP_SIZES)
    plain = tuple(Settings(*each) for each in grid)
    if not alike:
        return plain
    bent = (replace(each, likeness=portrait.LIKENESS) for each in plain if each.relative < RELATIVE[0])
    return plain + tuple(bent)


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


def _draws(rows: int, directions: int) -> int:
    """How often a known domain plays the target.

    >>> [_draws(200, 12), _draws(1500, 134)]
    [6, 2]
    """
    return int(np.clip(WORK // (rows * directions), *DRAWS))


def rehearse(
    loss: str,
    X: FloatArray,
    y: npt.NDArray[Any],
    parts: npt.NDArray[np.int64],
    *,
    penalty: float,
    noise: Noise,
    size: int,
    n_outputs: int,
    standardize: bool,
    alphas: Sequence[float] | None = None,
    drift: bool = False,
    seed: int = 0,
) -> Rehearsed | None:
    """Score all settings on all parts; ``noise`` is what the guarantee adds, ``size`` the target's rows.

    Clusters of one domain show no change of the label's law. With ``drift`` each part gets three: random
    directions that move predictions by 0.3, 1 and 3 residuals (or spreads of the score); the released
    discrepancy tells which of them the target is like. None if no part is large enough.
    """
    found, rng, drifts = [], np.random.default_rng(seed), DRIFTS if drift else (0.0, MORE[loss])
    outs = [parts == part for part in _usable(parts)[: MOST_PARTS // (len(DRIFTS) if drift else 1)]]
    sources = [Source.of(loss, X[~o], y[~o], penalty, n_outputs, standardize, seed) for o in outs]
    settings = candidates(loss, alphas, alike=all(source.cells is not None for source in sources))
    for out, source in zip(outs, sources, strict=True):
        plays = DRAWS[0] if drift else _draws(min(size, int(out.sum())), len(source.spectrum.eigen))
        for by in drifts:
            drawn = []
            for _ in range(plays):
                stage = Stage.of(source, X[out], y[out], rng, size).drifted(by, rng)
                drawn.append(stage.scores(settings, noise, rng))
            found.append((np.mean(drawn, axis=0), float(out.sum()), stage.discrepancy()))
    if not found:
        return None
    scores, rows, far = zip(*found, strict=True)
    both = (*settings, *(replace(each, shrink=True) for each in settings))
    return Rehearsed(both, np.array(scores).reshape(len(found), -1), np.array(rows), np.array(far))


__all__ = ["Rehearsed", "candidates", "parts_of", "rehearse", "warm_penalty"]
