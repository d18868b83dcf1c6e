"""What counts, sums and second moments in shells cost, and how their budget is best split.

In units of the shell's radius a row has v with ``|v| <= 1`` and touches one
(cell, shell) by (1, v, m), where m is nothing, ``|v|²``, or ``vv'`` packed so that its L2 norm is the
Frobenius norm (off-diagonal entries times √2). With d features, at most k rows a unit,
``a = 1/σᵥ²`` and ``b = 1/σₘ²``:

=============  ====================  ======================================
               add/remove            replace-one (and attribute)
=============  ====================  ======================================
pure, counts   k                     2 k
pure, sums     k √d                  k (2 √d + g d)
pure, moments  k L                   k (2 L + g D)
Gaussian, μ²   k² (1/σₙ² + a + b)    k² (√max(2/σₙ² + 2a + 2b, c) + slack)²
=============  ====================  ======================================

*L* is 1 for the trace. For the packed triangle it is ``1 + (d-1)/√2``: ``Σ vᵢ² + √2 Σ |vᵢ vⱼ|``
with ``Σ |vᵢ| <= √d``. (In unpacked units, as privacy.md writes it, (d+1)/2.)

*c* is the move inside one shell, ``a |v-w|² + b |m-m'|²``. Without moments 4a. With the
triangle, both norms are 1 at the worst and with ``v·w = t`` it is ``2a(1-t) + 2b(1-t²)``: 4a if
``a >= 2b``, else ``2a + 2b + a²/(2b)``. With the trace, v and w are opposite, one of norm 1 and the
other of norm s: ``(1+s)² (a + b (1-s)²)``, at most 4a if ``a >= b/2``, and else less than ``2a + 2b``,
which two shells cost anyway.

Pooled moments are triangles that all cells share. Two rows in one shell of different cells
then move counts and sums apart, ``2/σₙ² + 2a`` at most, and the triangle by ``b |m-m'|² <= 2b``: no
more than two shells cost anyway. All else is as with the triangle.

*slack*: truncation to a grid of step g lets a difference of D numbers grow by g√D, so
``slack² = a gᵥ² d + b gₘ² D`` (Minkowski).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from privada.methods.cells.questions.statistics import LEAST_COUNT_SHARE
from privada.methods.clustering.questions.calibration import budget_of, fine_grid, replaces
from privada.privacy.bounds import Grid
from privada.privacy.guarantee import Guarantee, PureDP
from privada.privacy.mechanism import Gaussian, Laplace, Mechanism, Plan, gaussian_event

Three = tuple[float, float, float]
Grids = tuple[Grid, Grid, Grid]

PARTS = ("counts", "sums", "moments")
WHOLE = (Grid(), Grid(), Grid())
POOLED_SHARE = 0.1  # of the budget: enough for moments that all rows of a shell share


@dataclass(frozen=True, kw_only=True)
class LocalPricing:
    """The price of local means; everything in it is public."""

    width: int
    moments: str
    guarantee: Guarantee
    count_share: float | None = None
    moment_share: float | None = None

    @property
    def triangle(self) -> int:
        """Second moments of one shell: none, one, or D = d(d+1)/2 numbers."""
        return {"none": 0, "trace": 1}.get(self.moments, self.width * (self.width + 1) // 2)

    @property
    def rows(self) -> int:
        """Rows that one unit may have."""
        return self.guarantee.unit.max_rows

    @property
    def shares(self) -> Three:
        """Shares of the budget for counts, sums and moments: the caller's, the others in the best proportion.

        The best ones make the error of a shell, seen as a Gaussian, least to first order in its
        squared Wasserstein distance: with mean c and covariance s²I it is, times the squared count,
        ``|c|² σₙ² + d σᵥ² + D σₘ²/(4 s²)`` for the triangle and ``σₘ²/(4 d s²)`` in its last term
        for the trace. At the worst ``|c| = 1``; rows that fill the shell have ``s² = 1/(d+2)``. Under
        ``Σ 1/σ² = const`` shares go with the square roots of these weights; under Laplace noise,
        ``Σ L/b = const``, with the cube roots of weight times L². Counts get at least a tenth: a
        threshold needs them. Under replace-one, Gaussian, sums get at most half: from there on the
        move inside one shell costs more than one between two. Pooled moments get a tenth.
        """
        pooled = POOLED_SHARE if self.moments == "pooled" else None
        best, given = self._best_shares(), (self.count_share, None, self.moment_share or pooled)
        free = sum(share for share, own in zip(best, given, strict=True) if own is None)
        left = 1 - sum(own for own in given if own is not None)
        counts, sums, moments = (
            share / free * left if own is None else own for share, own in zip(best, given, strict=True)
        )
        return counts, sums, moments

    def _best_shares(self) -> Three:
        if isinstance(self.guarantee, PureDP):
            wanted = [math.cbrt(w * reach**2) for w, reach in zip(self._weights, self._l1, strict=True)]
        else:
            wanted = [math.sqrt(w) for w in self._weights]
            if replaces(self.guarantee):
                wanted[1] = min(wanted[1], wanted[0] + wanted[2])
        counts, sums, moments = (part / sum(wanted) for part in wanted)
        if counts >= LEAST_COUNT_SHARE:
            return counts, sums, moments
        left = (1 - LEAST_COUNT_SHARE) / (sums + moments)
        return LEAST_COUNT_SHARE, sums * left, moments * left

    @property
    def _weights(self) -> Three:
        """What a unit of noise variance on each part costs (see `shares`)."""
        spread = (self.width + 2) / 4
        moments = {"trace": spread / self.width, "full": spread * self.triangle}.get(self.moments, 0.0)
        return 1.0, float(self.width), moments

    @property
    def _l1(self) -> Three:
        """Largest L1 norm of a row's parts (*L* above)."""
        d = self.width
        moments = {"none": 0.0, "trace": 1.0}.get(self.moments, 1 + (d - 1) / math.sqrt(2))
        return 1.0, math.sqrt(d), moments

    def plan(self) -> Plan:
        """Calibrate every draw."""
        return self._laplace() if isinstance(self.guarantee, PureDP) else self._gaussian()

    def _laplace(self) -> Plan:
        """Pure: epsilons add over counts, sums and moments."""
        times = 2 if replaces(self.guarantee) else 1
        draws: dict[str, Mechanism] = {}
        numbers = (0, self.width, self.triangle)  # that truncation can move; counts are whole
        for name, moving, reach, share in zip(PARTS, numbers, self._l1, self.shares, strict=True):
            if not share:
                continue
            epsilon = budget_of(self.guarantee) * share
            grid = Grid() if name == "counts" else fine_grid(1.0, self.rows * times * reach / epsilon)
            l1 = self.rows * (times * reach + (times - 1) * grid.step * moving)
            draws[name] = Laplace.calibrated(sensitivity=l1, epsilon=epsilon, grid=grid)
        return Plan(draws=draws)

    def _gaussian(self) -> Plan:
        """Other guarantees: one joint μ, split by shares of 1/σ²."""
        mu = self.guarantee.gaussian_mu() / self.rows
        rough = [self._joint(self.shares, WHOLE) / mu / math.sqrt(share or 1.0) for share in self.shares]
        whole = Grid(min(0, fine_grid(1.0, rough[0]).exponent))  # no count falls between two steps
        grids = (whole, fine_grid(1.0, rough[1]), fine_grid(1.0, rough[2]))
        root = mu / self._joint(self.shares, grids)
        draws: dict[str, Mechanism] = {}
        for name, share, grid, reach in zip(PARTS, self.shares, grids, self._alone(grids), strict=True):
            if share:
                draws[name] = Gaussian.calibrated(
                    sensitivity=reach, mu=reach * root * math.sqrt(share), grid=grid
                )
        spent = self.rows * self._joint(_precisions(draws), grids)
        return Plan(draws=draws, event=gaussian_event(spent))

    def _joint(self, precisions: Three, grids: Grids) -> float:
        """μ of one row at these 1/σ²: the last line of the table above."""
        total, (_, a, b) = sum(precisions), precisions
        if not replaces(self.guarantee):
            return math.sqrt(total)
        inside = 4 * a
        if self.moments in ("full", "pooled") and a < 2 * b:
            inside = 2 * a + 2 * b + a**2 / (2 * b)
        slack = math.sqrt(a * grids[1].step ** 2 * self.width + b * grids[2].step ** 2 * self.triangle)
        return math.sqrt(max(2 * total, inside)) + slack

    def _alone(self, grids: Grids) -> Three:
        """L2 reach of one unit in counts, sums and moments, each by itself."""
        if not replaces(self.guarantee):
            return (float(self.rows),) * 3
        sums = 2 + grids[1].step * math.sqrt(self.width)
        moments = math.sqrt(2) + grids[2].step * math.sqrt(self.triangle)
        return self.rows * math.sqrt(2), self.rows * sums, self.rows * moments


def _precisions(draws: dict[str, Mechanism]) -> Three:
    """1/σ² of counts, sums and moments, as the accountant sees the lattice."""
    found = []
    for name in PARTS:
        draw = draws.get(name)
        found.append((draw.mu / draw.sensitivity) ** 2 if isinstance(draw, Gaussian) else 0.0)
    counts, sums, moments = found
    return counts, sums, moments


__all__ = ["LocalPricing"]
