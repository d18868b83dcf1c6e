"""Choosing among public nodes, such as the members of a network, whose distances are given by a matrix.

The nodes and all distances are public; private is which nodes the source holds. Nothing of the paper's
proof for NNA needs a Euclidean space as far as counts go: each source row falls into one public cell, so
noisy counts of cells cost one unit of sensitivity. Averages of nodes do not exist, so none are asked for.

The owner's only column is the *place* of a row's node in the public order `NodeCells.order`, which puts
the nodes of a cell side by side. A cell that passes its threshold holds a row, so with probability 1 - γ
every target node has a source row within the largest of its distances to that cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada.methods.cells.questions.partition import Bins
from privada.methods.cells.questions.statistics import CellStatistics
from privada.methods.clustering.learner.source import threshold
from privada.parties.protocol import AskOwner, Inquiry, Learner, only_releases
from privada.privacy.guarantee import Guarantee
from privada.privacy.release import Release

STARTS, MOST_SWAPS = 2, 10_000


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeCells:
    """Public cells of nodes.

    Attributes
    ----------
    order : array of shape (nodes,)
        The node at each place; the nodes of a cell are side by side.
    sizes : array of shape (cells,)
        How many nodes each cell has.
    """

    order: IntArray
    sizes: IntArray

    @classmethod
    def of(cls, distances: npt.ArrayLike, count: int) -> NodeCells:
        """At most ``count`` cells around nodes that are far from each other.

        >>> line = np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0)))
        >>> NodeCells.of(line, 2).sizes.tolist()
        [3, 3]
        """
        D = check_distances(distances)
        middles, near = [0], D[0].copy()
        while len(middles) < _check.count(count=count) and near.max() > 0:
            middles.append(int(near.argmax()))
            near = np.minimum(near, D[middles[-1]])
        labels = D[middles].argmin(axis=0)
        sizes = np.bincount(labels, minlength=len(middles))
        return cls(order=np.argsort(labels, kind="stable"), sizes=sizes[sizes > 0])

    def places(self, nodes: npt.ArrayLike) -> FloatArray:
        """The values of an owner's column for rows at these nodes."""
        places = np.empty(len(self.order))
        places[self.order] = np.arange(len(self.order))
        return np.asarray(places[np.asarray(nodes, dtype=np.int64)])

    def members(self) -> list[IntArray]:
        """The nodes of each cell."""
        return np.split(self.order, np.cumsum(self.sizes)[:-1])

    def question(self, guarantee: Guarantee, *, salt: str = "") -> CellStatistics:
        """How many rows each cell holds; a row is in one cell."""
        if len(self.sizes) < 2:
            raise InputError("Expected at least two cells: one alone says nothing about where rows are.")
        edges = np.cumsum(self.sizes)[:-1].astype(np.float64) - 0.5
        return CellStatistics(tables=(Bins(feature=0, edges=edges),), guarantee=guarantee, salt=salt)


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeChoice:
    """Chosen nodes.

    Attributes
    ----------
    nodes : array of shape (k,)
        Numbers of the chosen nodes.
    cost : float
        Mean distance of target nodes to the nearest chosen or source node, if rows are spread evenly over the
        nodes of their cell; too small where cells are large and rows are not.
    cost_bound : float
        The true cost is at most this, with ``confidence``.
    confidence : float
    release : Release
        The release that the choice was made from.
    """

    nodes: IntArray
    cost: float
    cost_bound: float
    confidence: float
    release: Release


def choose_nodes(
    distances: npt.ArrayLike,
    target: npt.ArrayLike,
    cells: NodeCells,
    question: CellStatistics,
    release: Release,
    *,
    n_centers: int,
    confidence: float = 0.95,
) -> NodeChoice:
    """Choose target nodes that serve the target best, beside a source whose cells were counted.

    Parameters
    ----------
    distances : array of shape (nodes, nodes)
        A public metric.
    target : array of int
        The target's nodes, all different; centres are chosen among them.
    cells, question, release
        The cells, the question about them (`NodeCells.question`), and its answer.
    n_centers : int
        At least 1 and fewer than the target's nodes.
    confidence : float, default=0.95
        Probability with which ``cost_bound`` holds.
    """
    from privada.methods.clustering.learner.search import GivenProblem, best_of  # compiled

    only_releases(release)
    D, T = check_choice(distances, target, n_centers)
    gamma = 1 - _check.probability(confidence=confidence)
    counts = np.asarray(release["counts"], dtype=np.float64).ravel()
    draw = question.plan.draws["counts"]
    least = max(1.0, threshold(draw, cells=len(counts), gamma=gamma, width=1))
    likely, certain = np.full(len(T), np.inf), np.full(len(T), np.inf)
    for nodes, count in zip(cells.members(), counts, strict=True):
        if count >= least:
            # Rows spread evenly leave gaps of this many nodes; the farthest node is certain.
            away = np.sort(D[np.ix_(T, nodes)], axis=1)
            likely = np.minimum(likely, away[:, int(len(nodes) // (count + 1))])
            certain = np.minimum(certain, away[:, -1])
    among = D[np.ix_(T, T)]
    chosen = np.sort(best_of(GivenProblem(among, likely), n_centers, STARTS, MOST_SWAPS))
    served = among[:, chosen].min(axis=1)
    return NodeChoice(
        nodes=T[chosen],
        cost=float(np.minimum(served, likely).mean()),
        cost_bound=float(np.minimum(served, certain).mean()),
        confidence=confidence,
        release=release,
    )


def learn_nodes(
    owner: str,
    distances: npt.ArrayLike,
    target: npt.ArrayLike,
    cells: NodeCells,
    *,
    n_centers: int,
    guarantee: Guarantee,
    confidence: float = 0.95,
) -> Inquiry[NodeChoice]:
    """Ask one owner once, and choose; the parameters are those of `choose_nodes`."""
    check_choice(distances, target, n_centers)
    _check.probability(confidence=confidence)
    question = cells.question(guarantee)

    def ask_and_choose() -> Learner[NodeChoice]:
        release = yield AskOwner(owner, question)
        return choose_nodes(
            distances, target, cells, question, release, n_centers=n_centers, confidence=confidence
        )

    return Inquiry((AskOwner(owner, question),), ask_and_choose)


def check_choice(
    distances: npt.ArrayLike, target: npt.ArrayLike, n_centers: int
) -> tuple[FloatArray, IntArray]:
    """The matrix and the target's nodes, if so many of them can be chosen."""
    D, T = check_distances(distances), np.asarray(target)
    if T.ndim != 1 or T.dtype.kind not in "iu" or len(np.unique(T)) != len(T):
        raise InputError("Expected target to be a list of different nodes, by number.")
    if not len(T) or T.min() < 0 or T.max() >= len(D):
        raise InputError(f"Expected target to hold numbers from 0 to {len(D) - 1}.")
    if _check.count(n_centers=n_centers) >= len(T):
        raise InputError(f"Expected n_centers below the {len(T)} target nodes, got {n_centers}.")
    return D, T.astype(np.int64)


def check_distances(distances: npt.ArrayLike) -> FloatArray:
    """A symmetric matrix of distances, 0 on its diagonal; the triangle inequality is not needed."""
    D = _check.matrix(distances=distances)
    if D.shape[0] != D.shape[1] or (D < 0).any() or np.any(np.diag(D)) or not np.array_equal(D, D.T):
        raise InputError("Expected distances to be a symmetric matrix, >= 0, with 0 on its diagonal.")
    return D


__all__ = ["NodeCells", "NodeChoice", "choose_nodes", "learn_nodes"]
