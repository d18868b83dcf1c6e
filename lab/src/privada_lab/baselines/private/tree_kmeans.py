"""k-means on a private tree: the best sound private k-means that we know for few features.

Nested cubes are counted with noise and opened where they are full (`private._cubes`). The last
cubes are the leaves; the sum of their rows, seen from the leaf's middle in units of its radius, is
released as well, so that its noise is proportional to the leaf, not to the domain. Weighted k-means on
the leaves' means is post-processing.

*Sensitivity.* Add/remove: one count of each of L levels by 1 and one sum by norm 1: L1 ``1`` and ``√d``, L2 1
and 1. Replace-one: two counts a level (L1 2, L2 √2) and sums by 2 (one leaf) and the grid's slack
``step √d`` in L2, ``2√d + d step`` in L1. Rows in no leaf move nothing. Deeper levels get more of the
budget, by ``2^(l/3)`` (Cormode et al. 2012). Gaussians compose exactly; pure epsilons add.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada.parties.answering import Draws
from privada.parties.rows import Rows
from privada.privacy.bounds import Ball, Grid
from privada.privacy.guarantee import PureDP
from privada.privacy.mechanism import Gaussian, Laplace, Mechanism, Plan, gaussian_event
from privada.privacy.release import PublicSchema
from privada_lab.baselines.private import _cubes
from privada_lab.baselines.private._asking import BaselineQuestion

WIDEST = 10  # features: a cube has 2^d halves
SIZES = (1e-100, 1e100)  # of the ball: nothing leaves the floats when it is halved or squared


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TreeCenters(BaselineQuestion):
    """Ask for centres by k-means on a private tree.

    Parameters
    ----------
    n_clusters, width : int
    norm_bound : float
        Rows are clipped to this norm.
    depth : int, optional
        How often cubes are halved; by default from the width.
    sum_share : float
        Share of the budget for the leaves' sums.
    random_state : int
        Of k-means on the released leaves.

    Privacy
    -------
    Unit: one row (a person with m rows: m times as far). Add/remove or replace-one; Laplace noise for
    a pure guarantee, Gaussian otherwise. Sensitivities and proof: the module's docstring.
    """

    n_clusters: int
    width: int
    norm_bound: float
    depth: int | None = None
    sum_share: float = 0.3
    random_state: int = 0
    kind: ClassVar[str] = "baselines.tree_kmeans"
    answered_by: ClassVar[str] = "privada_lab.baselines.private.tree_kmeans:answer"

    def validate(self) -> None:
        """Check every public parameter by name."""
        _check.count(n_clusters=self.n_clusters)
        if _check.count(width=self.width) > WIDEST:
            raise InputError(f"Expected width to be at most {WIDEST}, got {self.width}; project first.")
        if not SIZES[0] <= _check.positive(norm_bound=self.norm_bound) <= SIZES[1]:
            raise InputError(
                f"Expected norm_bound between {SIZES[0]:g} and {SIZES[1]:g}, got {self.norm_bound!r}."
            )
        if self.depth is not None:
            _check.count(depth=self.depth)
        _check.probability(sum_share=self.sum_share)
        _check.count(least=0, random_state=self.random_state)

    def fits(self, schema: PublicSchema) -> None:
        """Check the width against the owner's schema."""
        if self.width != schema.width:
            raise InputError(f"Expected width {schema.width}, got {self.width}.")

    def planned(self) -> Plan:
        """Counts of every level, and the leaves' sums."""
        depth = _cubes.default_depth(self.width) if self.depth is None else self.depth
        weights = 2.0 ** (np.arange(1, depth + 1) / 3)
        shares = {f"level {i + 1}": (1 - self.sum_share) * w / weights.sum() for i, w in enumerate(weights)}
        if isinstance(self.guarantee, PureDP):
            return self._pure(self.guarantee.epsilon, shares)
        return self._gaussian(self.guarantee.gaussian_mu(), shares)

    def _pure(self, epsilon: float, shares: dict[str, float]) -> Plan:
        times = self.rows * (2.0 if self.replaces else 1.0)
        draws: dict[str, Mechanism] = {
            name: Laplace.calibrated(sensitivity=times, epsilon=epsilon * share)
            for name, share in shares.items()
        }
        grid = Grid(-20)
        slack = self.rows * self.width * grid.step if self.replaces else 0.0
        draws["sums"] = Laplace.calibrated(
            sensitivity=times * math.sqrt(self.width) + slack, epsilon=epsilon * self.sum_share, grid=grid
        )
        return Plan(draws=draws)

    def _gaussian(self, mu: float, shares: dict[str, float]) -> Plan:
        count = self.rows * (math.sqrt(2) if self.replaces else 1.0)
        draws: dict[str, Gaussian] = {
            name: Gaussian.calibrated(sensitivity=count, mu=mu * math.sqrt(share), whole=True)
            for name, share in shares.items()
        }
        alone = mu * math.sqrt(self.sum_share)
        grid = Grid.finer_than(2.0**-20 / alone)
        reach = self.rows * (2 + grid.step * math.sqrt(self.width) if self.replaces else 1.0)
        draws["sums"] = Gaussian.calibrated(sensitivity=reach, mu=alone, grid=grid)
        total = math.fsum(draw.mu**2 for draw in draws.values())
        return Plan(draws=dict(draws), event=gaussian_event(math.sqrt(total)))


def answer(question: TreeCenters, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Descend, sum in the leaves, and cluster what was released."""
    X = clipped_rows(rows, question.norm_bound)
    corner = np.full(question.width, -question.norm_bound)
    levels = _cubes.descend(
        X, draw, question.plan.draws, corner=corner, side=2 * question.norm_bound * (1 + 2.0**-30)
    )
    leaves, members = _leaves(levels, len(X), question.width)
    mechanism = question.plan.lattice("sums")
    sums = draw("sums", _sums(X, members, leaves, mechanism.grid))
    moved = Ball(radius=1.0).clip(sums / np.maximum(leaves.counts, 1.0)[:, None])
    means = leaves.centers + leaves.radii[:, None] * moved
    return clustered(Ball(radius=question.norm_bound).clip(means), leaves.counts, question)


def clipped_rows(rows: Rows, norm_bound: float) -> FloatArray:
    """All rows, in the ball."""
    return Ball(radius=norm_bound).clip(rows.gathered().X)


@dataclass(frozen=True, eq=False)
class _Leaves:
    centers: FloatArray
    counts: FloatArray
    radii: FloatArray


def _leaves(levels: list[_cubes.Kept], n: int, width: int) -> tuple[_Leaves, IntArray]:
    """Kept cubes without a kept half, and which of them each row is in (-1: none)."""
    members, total = np.full(n, -1, dtype=np.int64), 0
    centers, counts, radii = [np.zeros((0, width))], [np.zeros(0)], [np.zeros(0)]
    for level, below in zip(levels, [*levels[1:], None], strict=True):
        last = np.ones(len(level.counts), dtype=np.bool_)
        if below is not None:
            last[below.parents] = False
        place = np.append(np.where(last, total + np.cumsum(last) - 1, -1), -1)
        members = np.maximum(members, place[level.members])
        total += int(last.sum())
        centers.append(level.centers[last])
        counts.append(level.counts[last])
        radii.append(np.full(int(last.sum()), level.radius))
    return _Leaves(np.concatenate(centers), np.concatenate(counts), np.concatenate(radii)), members


def _sums(X: FloatArray, members: IntArray, leaves: _Leaves, grid: Grid) -> IntArray:
    """Exact sums in whole steps, each row seen from its leaf. Never leaves this module."""
    inside = members >= 0
    at = members[inside]
    seen = (X[inside] - leaves.centers[at]) / leaves.radii[at][:, None]
    sums = np.zeros(leaves.centers.shape, dtype=np.int64)
    np.add.at(sums, at, grid.truncate(Ball(radius=1.0).clip(seen)))
    return sums


def clustered(points: FloatArray, weights: FloatArray, question: Any) -> dict[str, Any]:
    """Exactly ``n_clusters`` centres with their weights; those that are missing have none and lie at 0."""
    centers = np.zeros((question.n_clusters, question.width))
    masses = np.zeros(question.n_clusters)
    if len(points) <= question.n_clusters:
        centers[: len(points)], masses[: len(points)] = points, weights
        return {"centers": centers, "weights": masses}
    from sklearn.cluster import KMeans

    model = KMeans(question.n_clusters, n_init=1, random_state=question.random_state)
    labels = model.fit_predict(points, sample_weight=weights)
    masses = np.bincount(labels, weights=weights, minlength=question.n_clusters)
    return {"centers": model.cluster_centers_, "weights": masses}


__all__ = ["TreeCenters", "clipped_rows", "clustered"]
