"""Couplings: entropic optimal transport, with and without group sparsity by class.

All solvers keep potentials in the log domain and iterate on a kernel into which the potentials are
absorbed, so that its entries stay near one whatever the regularisation; a kernel is made anew only when a
scaling drifts far. Group sparsity is the concave ``Σ_j Σ_c (‖γ(I_c, j)‖₁ + ε)^½`` of Courty et al. 2017
(POT's ``SinkhornLpl1Transport``), by majorisation. The majorant depends on class and column alone: it
multiplies the kernel from one small table, and each round starts where the last one ended. The convex
``ℓ₁ℓ₂`` penalty is POT's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada._extras import require
from privada.exceptions import InputError

FAR = 40.0  # a scaling beyond e^±40 is absorbed into the potentials
SMALLEST = 1e-3  # ε of the penalty, as POT has it
TOLERANCE = 1e-6  # L1 error of the marginals
ROUNDS = 10


def entropic(
    cost: npt.ArrayLike,
    rows: npt.ArrayLike | None,
    columns: npt.ArrayLike | None,
    regularisation: float,
    *,
    tolerance: float = TOLERANCE,
    iterations: int = 2000,
) -> FloatArray:
    """Plan of least ``<γ, C> + reg Σ γ (log γ - 1)``; infinite costs forbid mass.

    >>> plan = entropic([[0.0, 1.0], [1.0, 0.0]], None, None, 0.01)
    >>> plan.round(3).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """
    solver = _Sinkhorn.of(cost, rows, columns, regularisation)
    solver.solve(tolerance=tolerance, iterations=iterations)
    return solver.plan()


def relaxed(
    cost: npt.ArrayLike,
    rows: npt.ArrayLike,
    regularisation: float,
    *,
    weight: float,
    tolerance: float = TOLERANCE,
    iterations: int = 500,
) -> FloatArray:
    """Plan whose columns have equal mass and whose row sums are only held near ``rows``.

    Least ``<γ, C> + reg (KL(γ | rows ⊗ columns) + weight KL(γ 1 | rows))`` (Chizat et al. 2018, one side
    relaxed): weight 0 gives each column its posterior under the prior ``rows``, a large one the balanced
    plan. Infinite costs forbid mass.

    >>> cost = np.array([[0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 0.0]])
    >>> relaxed(cost, [0.5, 0.5], 0.05, weight=0.0).sum(axis=1).round(2).tolist()
    [0.75, 0.25]
    >>> relaxed(cost, [0.5, 0.5], 0.05, weight=1e6).sum(axis=1).round(2).tolist()
    [0.5, 0.5]
    """
    matrix = np.asarray(cost, dtype=np.float64)
    prior, power = _weights(rows, len(matrix)), weight / (1 + weight)
    kernel = np.exp((matrix.min(axis=0) - matrix) / _check.positive(regularisation=regularisation))
    scale = prior
    for _ in range(iterations):
        shares = kernel / (scale @ kernel)
        new = prior * np.maximum(shares.mean(axis=1), 1e-300) ** -power
        change, scale = float(np.max(np.abs(np.log(new / scale)))), new
        if change < tolerance:
            break
    plan = kernel * scale[:, None]
    return np.asarray(plan / plan.sum(axis=0) / matrix.shape[1])


def group_lasso(
    cost: npt.ArrayLike,
    labels: npt.ArrayLike,
    rows: npt.ArrayLike | None = None,
    columns: npt.ArrayLike | None = None,
    *,
    reg_e: float,
    reg_cl: float,
    rounds: int = ROUNDS,
    tolerance: float = 1e-4,
    iterations: int = 30,
    last: int = 100,
) -> FloatArray:
    """Entropic plan in which a target point draws its mass from few classes.

    Parameters
    ----------
    cost : array of shape (sources, targets)
    labels : array of shape (sources,)
        Codes of the classes.
    rows, columns : arrays, optional
        Marginals; uniform by default.
    reg_e, reg_cl : float
        Weights of the entropy and of the group penalty.
    rounds, iterations, last : int
        Majorisations, scalings in each, and scalings after the last one. Rounds start where the one before
        ended, so few scalings each reach what many from the start would.
    """
    codes = np.unique(np.asarray(labels), return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    matrix = np.asarray(cost, dtype=np.float64)
    if codes.shape != matrix.shape[:1]:
        raise InputError("Expected one label for each row of the cost.")
    weights = None if rows is None else np.asarray(rows, dtype=np.float64)[order]
    solver = _Sinkhorn.of(matrix, weights, columns, reg_e, order=order, groups=codes[order])
    _check.non_negative(reg_cl=reg_cl)
    for _ in range(rounds):
        solver.solve(tolerance=tolerance, iterations=iterations)
        majorant = 0.5 / np.sqrt(solver.group_sums() + SMALLEST)
        solver.penalise(reg_cl * majorant)
    solver.solve(tolerance=tolerance, iterations=last)
    plan = np.empty_like(matrix)
    plan[order] = solver.plan()
    return plan


def objective(
    plan: FloatArray, cost: FloatArray, labels: npt.ArrayLike, *, reg_e: float, reg_cl: float
) -> float:
    """What `group_lasso` makes small."""
    codes = np.unique(np.asarray(labels), return_inverse=True)[1]
    sums = np.zeros((codes.max() + 1, plan.shape[1]))
    np.add.at(sums, codes, plan)
    positive = plan[plan > 0]
    entropy = float(np.sum(positive * (np.log(positive) - 1)))
    return float(np.sum(plan * cost)) + reg_e * entropy + reg_cl * float(np.sum(np.sqrt(sums + SMALLEST)))


def require_pot() -> None:
    """Raise an error unless POT, which solves exact plans, is installed."""
    require("transport", "ot", purpose="An exact transport plan")


def l1l2(cost: FloatArray, labels: IntArray, *, reg_e: float, reg_cl: float) -> FloatArray:
    """The convex group lasso of the paper's equation (3), solved by POT."""
    require_pot()
    import ot

    rows, columns = (np.full(n, 1 / n) for n in cost.shape)
    return ot.da.sinkhorn_l1l2_gl(rows, labels, columns, cost, reg_e, eta=reg_cl)


def exact(cost: FloatArray) -> FloatArray:
    """Plan without regularisation between uniform marginals, solved by POT."""
    import ot

    plan: FloatArray = ot.emd([], [], cost, numItermax=5_000_000)
    return plan


def barycentric(plan: FloatArray, targets: FloatArray) -> FloatArray:
    """Image of each source row: the mean of the target points that it is coupled with."""
    mass = plan.sum(axis=1, keepdims=True)
    return np.asarray((plan @ targets) / np.where(mass > 0, mass, 1.0))


def extend(new: FloatArray, rows: FloatArray, images: FloatArray) -> FloatArray:
    """Images of rows that were not coupled: moved as their nearest coupled row (Ferradans et al. 2014)."""
    from sklearn.neighbors import NearestNeighbors

    near = NearestNeighbors(n_neighbors=1).fit(rows).kneighbors(new, return_distance=False)[:, 0]
    return np.asarray(new + images[near] - rows[near])


@dataclass(eq=False)
class _Sinkhorn:
    """Scaling iterations on an absorbed kernel, one row group at a time where a majorant is set."""

    cost: FloatArray
    rows: FloatArray
    columns: FloatArray
    regularisation: float
    groups: list[slice]
    order: IntArray  # in which the kernel has the cost's rows, one group after the other
    f: FloatArray = field(init=False)
    g: FloatArray = field(init=False)
    table: FloatArray = field(init=False)  # exp(-majorant / reg), one row a group
    kernel: FloatArray = field(init=False)
    u: FloatArray = field(init=False)
    v: FloatArray = field(init=False)

    @classmethod
    def of(
        cls,
        cost: npt.ArrayLike,
        rows: Any,
        columns: Any,
        regularisation: float,
        *,
        order: IntArray | None = None,
        groups: IntArray | None = None,
    ) -> _Sinkhorn:
        matrix = np.asarray(cost, dtype=np.float64)
        if matrix.ndim != 2 or 0 in matrix.shape or np.isnan(matrix).any() or np.isneginf(matrix).any():
            raise InputError("Expected cost to be a non-empty matrix without missing values.")
        _check.positive(regularisation=regularisation)
        a, b = (_weights(side, n) for side, n in zip((rows, columns), matrix.shape, strict=True))
        cuts = [] if groups is None else list(np.flatnonzero(np.diff(groups)) + 1)
        ends = [0, *cuts, len(matrix)]
        order = np.arange(len(matrix)) if order is None else order
        if not (np.isfinite(matrix).any(axis=1).all() and np.isfinite(matrix).any(axis=0).all()):
            raise InputError("Expected every row and column to have a finite cost.")
        solver = cls(matrix, a, b, regularisation, [slice(x, y) for x, y in pairwise(ends)], order)
        # potentials by one exact sweep in the log domain: every row and column reaches its mass
        solver.table = np.ones((len(solver.groups), matrix.shape[1]))
        lowest = matrix.min(axis=1)
        solver.kernel = np.subtract(matrix, lowest[:, None])
        solver.f, solver.g = lowest[order], solver.kernel.min(axis=0)
        solver._absorb(np.ones(len(a)), np.ones(len(b)))
        return solver

    def _absorb(self, u: FloatArray, v: FloatArray) -> None:
        self.f = self.f + self.regularisation * np.log(u)
        self.g = self.g + self.regularisation * np.log(v)
        kernel = self.kernel  # the one matrix beside the cost: made anew in its own place
        np.take(self.cost, self.order, axis=0, out=kernel, mode="clip")
        np.subtract(self.g[None, :], kernel, out=kernel)
        kernel += self.f[:, None]
        kernel /= self.regularisation
        np.exp(np.minimum(kernel, 500.0, out=kernel), out=kernel)
        self.u, self.v = np.ones(len(self.rows)), np.ones(len(self.columns))

    def solve(self, *, tolerance: float, iterations: int) -> None:
        """Scale until the row marginals are met to ``tolerance`` in L1."""
        for _ in range(iterations):
            backward = np.zeros(self.kernel.shape[1])
            for i, part in enumerate(self.groups):
                backward += self.table[i] * (self.u[part] @ self.kernel[part])
            self.v = self.columns / np.maximum(backward, 1e-300)
            toward = np.concatenate(
                [self.kernel[part] @ (self.table[i] * self.v) for i, part in enumerate(self.groups)]
            )
            error = float(np.abs(self.u * toward - self.rows).sum())
            self.u = self.rows / np.maximum(toward, 1e-300)
            if max(np.abs(np.log(self.u)).max(), np.abs(np.log(self.v)).max()) > FAR:
                self._absorb(self.u, self.v)
            if error < tolerance:
                break

    def group_sums(self) -> FloatArray:
        """Mass that each column draws from each group."""
        sums = [self.u[part] @ self.kernel[part] for part in self.groups]
        return np.asarray(np.array(sums) * self.table * self.v)

    def penalise(self, majorant: FloatArray) -> None:
        """Set the price of each group and column."""
        self.table = np.exp(-(majorant - majorant.min()) / self.regularisation)

    def plan(self) -> FloatArray:
        """The coupling, rows in order, in the kernel's place: the last thing that a solver does."""
        out = self.kernel
        out *= self.u[:, None]
        out *= self.v
        for i, part in enumerate(self.groups):
            out[part] *= self.table[i]
        return np.asarray(out)


def _weights(marginal: Any, n: int) -> FloatArray:
    if marginal is None:
        return np.full(n, 1 / n)
    weights = np.asarray(marginal, dtype=np.float64)
    if weights.shape != (n,) or not np.all(weights > 0) or not np.isfinite(weights).all():
        raise InputError(f"Expected {n} positive weights.")
    return np.asarray(weights / weights.sum())


__all__ = [
    "barycentric",
    "entropic",
    "exact",
    "extend",
    "group_lasso",
    "l1l2",
    "objective",
    "relaxed",
    "require_pot",
]
