"""PrivateKmeans of Balcan et al. 2017: candidates by private partition, private local search, noisy means.

As printed: rows are projected publicly where they have many features; candidates are the middles of all
cubes of a randomly shifted, private recursive partition; k of them are improved by swaps, each chosen by
the exponential mechanism by its cost, and the best of all iterates is chosen likewise; the centres
are noisy means of the rows nearest to each, in the original space.

Where we depart, and why. The printed numbers of rounds (100 k log n swaps, 27 k log n shifts, log 1/δ
projections) leave no budget for any of them; there is one shift, one projection and ``n_swaps`` swaps. The
printed depth log n and thresholds use n, which add/remove keeps private; depth is public and thresholds
follow from the noise. The arbitrary start is the k fullest cubes, which were released already. A centre
whose noisy count could as well be noise is given no weight.

*Sensitivity.* Counts of cubes: `private._cubes`. The cost of a set of centres is a sum over
rows of squared distances in the ball of radius R, each in ``[0, 4R²]`` and truncated to a whole number
of steps, of which ``4R²`` has 2^24: adding, removing or replacing a row moves every cost by at most 2^24
steps. Means: one count by 1 and one sum by norm R (replace-one: L1 2 and ``2R√d`` and the slack
``d step``). A third of epsilon goes to each part.

*Accounting.* Pure epsilons add. For zCDP the noise is not that of ``ε = √(ρ/2)``, which the paper uses,
but the least that keeps ρ: Laplace ``ε + e^-ε - 1`` and exponential ``ε²/8`` add up exactly.

Reference: M.-F. Balcan et al., *Differentially private clustering in high-dimensional Euclidean spaces*,
ICML 2017.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada.parties.answering import Draws
from privada.parties.rows import Rows
from privada.privacy.bounds import Ball, Grid
from privada.privacy.guarantee import PureDP, zcdp_within
from privada.privacy.mechanism import Exponential, Laplace, Mechanism, Plan
from privada.privacy.release import PublicSchema
from privada_lab.baselines.private import _cubes
from privada_lab.baselines.private._asking import BaselineQuestion
from privada_lab.baselines.private.tree_kmeans import clipped_rows

NARROW = 8  # features of the projection
SURE = 0.9  # a centre whose count could as well be noise has no weight
MOST_COSTS = 2**27  # costs that are kept at a time: 1 GB, whatever the number of rows
COST_BITS = 24  # the grid of costs is finer than the largest squared distance by so many bits


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SwappedCenters(BaselineQuestion):
    """Ask for centres by private partition, private swaps and noisy means.

    Parameters
    ----------
    n_clusters, width : int
    norm_bound : float
        Rows are clipped to this norm.
    depth : int, optional
        How often cubes are halved; by default from the width, and once more for the shift.
    n_swaps : int, optional
        Rounds of local search; ``n_clusters`` by default.
    random_state : int
        Of the shift of the cubes and the projection: public.

    Privacy
    -------
    Unit: one row (a person with m rows: m times as far). Add/remove or replace-one. Sensitivities and
    proof: the module's docstring.
    """

    n_clusters: int
    width: int
    norm_bound: float
    depth: int | None = None
    n_swaps: int | None = None
    random_state: int = 0
    kind: ClassVar[str] = "baselines.private_kmeans"
    answered_by: ClassVar[str] = "privada_lab.baselines.private.private_kmeans:answer"

    def validate(self) -> None:
        """Check every public parameter by name."""
        _check.count(n_clusters=self.n_clusters)
        _check.count(width=self.width)
        _check.positive(norm_bound=self.norm_bound)
        if self.depth is not None:
            _check.count(depth=self.depth)
        if self.n_swaps is not None:
            _check.count(n_swaps=self.n_swaps)
        _check.count(least=0, random_state=self.random_state)

    def fits(self, schema: PublicSchema) -> None:
        """Check the width against the owner's schema."""
        if self.width != schema.width:
            raise InputError(f"Expected width {schema.width}, got {self.width}.")

    @property
    def levels(self) -> int:
        """How often cubes are halved."""
        return min(6, _cubes.default_depth(self.narrow) + 1) if self.depth is None else self.depth

    @property
    def rounds(self) -> int:
        """Swaps that are tried."""
        return self.n_clusters if self.n_swaps is None else self.n_swaps

    def planned(self) -> Plan:
        """Three parts of equal epsilon, all of them scaled to what the guarantee allows."""
        from dp_accounting import ZCDpEvent

        from privada.privacy.accounting import accountant

        if isinstance(self.guarantee, PureDP):
            return Plan(draws=self._draws(self.guarantee.epsilon))
        wanted = zcdp_within(self.guarantee)
        scale = accountant.calibrate(lambda scale: Plan(draws=self._draws(1 / scale)).event, wanted)
        draws = self._draws(1 / scale)
        return Plan(draws=draws, event=ZCDpEvent(accountant.zcdp(Plan(draws=draws).event)))

    def _draws(self, epsilon: float) -> dict[str, Mechanism]:
        """All draws, if pure epsilons are to add up to this."""
        times = self.rows * (2.0 if self.replaces else 1.0)
        level = Laplace.calibrated(sensitivity=times, epsilon=epsilon / 3 / self.levels)
        swap = Exponential(sensitivity=self.rows * 2.0**COST_BITS, budget=epsilon / 3 / (self.rounds + 1))
        share = 1 / (1 + math.pow(self.width, 2 / 3))
        grid = Grid.finer_than(self.norm_bound * 2.0**-20)
        slack = self.rows * self.width * grid.step if self.replaces else 0.0
        draws: dict[str, Mechanism] = {f"level {i + 1}": level for i in range(self.levels)}
        draws |= {f"swap {i}": swap for i in range(self.rounds)}
        draws["best"] = swap
        draws["counts"] = Laplace.calibrated(sensitivity=times, epsilon=epsilon / 3 * share)
        draws["sums"] = Laplace.calibrated(
            sensitivity=times * self.norm_bound * math.sqrt(self.width) + slack,
            epsilon=epsilon / 3 * (1 - share),
            grid=grid,
        )
        return draws

    @property
    def narrow(self) -> int:
        """Features after the public projection."""
        return min(self.width, NARROW)

    def projected(self, X: FloatArray) -> FloatArray:
        """Rows in few features, in the ball: a public map of each row."""
        if self.width <= NARROW:
            return X
        matrix = np.random.default_rng(self.random_state).normal(size=(self.width, NARROW))
        return Ball(radius=self.norm_bound).clip(np.einsum("ij,jk->ik", X, matrix / math.sqrt(NARROW)))


def answer(question: SwappedCenters, rows: Rows, draw: Draws) -> dict[str, Any]:
    """Candidates, swaps, means."""
    X = clipped_rows(rows, question.norm_bound)
    Y = question.projected(X)
    candidates, start = _candidates(question, Y, draw)
    chosen = _searched(question, _Costs(question, Y, candidates), start, draw)
    return _means(question, X, Y, candidates[chosen], draw)


def _candidates(question: SwappedCenters, Y: FloatArray, draw: Draws) -> tuple[FloatArray, IntArray]:
    """Middles of all kept cubes and, as the start, the fullest small ones; the centre if there is none."""
    side = 4 * question.norm_bound
    shift = np.random.default_rng([question.random_state, 1]).uniform(0, side / 2, size=question.narrow)
    corner = -question.norm_bound - shift
    levels = _cubes.descend(Y, draw, question.plan.draws, corner=corner, side=side)
    centers = np.concatenate([np.zeros((1, question.narrow)), *(level.centers for level in levels)])
    counts = np.concatenate([[-np.inf], *(level.counts * level.radius for level in levels)])
    start = np.argsort(-counts, kind="stable")[: question.n_clusters]
    return Ball(radius=question.norm_bound).clip(centers), start.astype(np.int64)


def _costs(question: SwappedCenters, Y: FloatArray, candidates: FloatArray) -> IntArray:
    """Squared distances of rows to candidates, in whole steps of the costs' grid."""
    from privada_lab.baselines.private import _kernels

    most = 4 * question.norm_bound**2
    return _kernels.squared_steps(Y, candidates, 2.0**COST_BITS / most, 2**COST_BITS)


@dataclass(frozen=True, eq=False)
class _Costs:
    """Costs of every row at every candidate, some rows at a time. Never leaves this module.

    All are kept if they fit; else they are worked out anew whenever they are asked for, so that no number of
    rows takes more memory than another.
    """

    question: SwappedCenters
    Y: FloatArray
    candidates: FloatArray

    def blocks(self) -> Iterator[IntArray]:
        size = max(1, MOST_COSTS // len(self.candidates))
        if len(self.Y) <= size:
            yield self._kept
            return
        for start in range(0, len(self.Y), size):
            yield _costs(self.question, self.Y[start : start + size], self.candidates)

    @cached_property
    def _kept(self) -> IntArray:
        return _costs(self.question, self.Y, self.candidates)

    def swapped(self, now: IntArray) -> IntArray:
        """Total cost after every swap."""
        from privada_lab.baselines.private import _kernels

        total = np.zeros((len(self.candidates), len(now)), dtype=np.int64)
        for block in self.blocks():
            total += _kernels.swap_costs(block, now)
        return total

    def totals(self, several: list[IntArray]) -> IntArray:
        """Total cost of each of several choices."""
        total = np.zeros(len(several), dtype=np.int64)
        for block in self.blocks():
            total += np.array([block[:, chosen].min(axis=1).sum() for chosen in several])
        return total


def _searched(question: SwappedCenters, costs: _Costs, start: IntArray, draw: Draws) -> IntArray:
    """Swaps chosen by the exponential mechanism, and the best of all iterates."""
    iterates = [start]
    for i in range(question.rounds):
        now = iterates[-1]
        scores = -np.concatenate([costs.totals([now]), costs.swapped(now).ravel()])
        picked = int(draw(f"swap {i}", scores)[0]) - 1
        moved = now.copy()
        if picked >= 0:
            moved[picked % len(now)] = picked // len(now)
        iterates.append(moved)
    return iterates[int(draw("best", -costs.totals(iterates))[0])]


def _means(
    question: SwappedCenters, X: FloatArray, Y: FloatArray, centers: FloatArray, draw: Draws
) -> dict[str, Any]:
    """Noisy means, in the original space, of the rows nearest to each chosen candidate."""
    from privada.methods.cells.questions.partition import NearestCells

    counting, summing = question.plan.lattice("counts"), question.plan.lattice("sums")
    near = NearestCells(centers=centers).assign(Y)
    sums = np.zeros((question.n_clusters, question.width), dtype=np.int64)
    np.add.at(sums, near, summing.grid.truncate(X))
    counts = draw("counts", counting.place(np.bincount(near, minlength=question.n_clusters)))
    means = draw("sums", sums) / np.maximum(counts, 1.0)[:, None]
    seen = counts > counting.half_width(SURE)
    return {
        "centers": Ball(radius=question.norm_bound).clip(means),
        "weights": np.where(seen, counts, 0.0),
    }


__all__ = ["SwappedCenters"]
