"""The default question, chosen from public quantities alone.

What counts is how far apart k centres of the target are: a source point that is
much farther away than that covers nothing, and one need not know where it is any
finer than a fraction of it. So the resolution follows from the cost of clustering the
target alone, which is public; the number of cells in many dimensions follows from
how many rows a cell must hold to be seen through its noise.
"""

from __future__ import annotations

import math

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.methods.clustering.learner.solver.solve import medoids
from privada.methods.clustering.questions.calibration import budget_of, replaces
from privada.methods.clustering.questions.local import LocalMeans
from privada.methods.clustering.questions.pyramid import GridPyramid
from privada.privacy.guarantee import Guarantee
from privada.privacy.release import Question

FEW_FEATURES = 3  # up to here a grid has few enough cells
LEVELS = 3
MOST_CELLS = 2**20
SHELLS = (0.75, 1.25, 2.0, 3.0, 6.0)  # of the median distance of target points to their cell
CELL_DIVISOR = 2.5  # of the root of size times budget: each cell then holds more rows than noise can hide


def scale(target: FloatArray, n_centers: int) -> float:
    """Mean distance of the target to its own ``n_centers`` medoids: public, the size of what matters."""
    k = min(max(n_centers, 1), len(target))
    found = medoids(target, k, random_state=0).cost
    return max(float(found), 1e-9)


def default_question(
    target: FloatArray,
    *,
    n_centers: int,
    guarantee: Guarantee,
    radius: float,
    source_size: int | None = None,
    salt: str = "",
) -> Question:
    """The question that suits a target best, by public quantities alone.

    Parameters
    ----------
    target : array of shape (n, d)
        Public target, inside the public ball.
    n_centers : int
        How many centres will be chosen.
    guarantee : Guarantee
        What may be spent.
    radius : float
        Radius of the public ball around 0.
    source_size : int, optional
        Size of the source if its owner announced one; else the target's size stands in.
    """
    target = _check.matrix(target=target)
    _check.positive(radius=radius)
    if target.shape[1] <= FEW_FEATURES:
        return _pyramid(target, n_centers, guarantee, radius, salt)
    return _local(target, guarantee, radius, source_size or len(target), salt)


def _pyramid(
    target: FloatArray, n_centers: int, guarantee: Guarantee, radius: float, salt: str
) -> GridPyramid:
    width = target.shape[1]
    finest = math.ceil(math.log2(2 * radius / scale(target, n_centers)))
    most = int(math.log2(MOST_CELLS) / width)
    finest = min(max(finest, LEVELS), most)
    levels = tuple(range(finest - LEVELS + 1, finest + 1))
    return GridPyramid(levels=levels, domain=radius, width=width, guarantee=guarantee, salt=salt)


def _local(target: FloatArray, guarantee: Guarantee, radius: float, size: int, salt: str) -> LocalMeans:
    power = budget_of(guarantee) / (2.0 if replaces(guarantee) else 1.0)
    wanted = round(math.sqrt(size * power) / CELL_DIVISOR)
    cells, typical = _cells(target, min(max(wanted, 4), len(target), 400))
    shells = np.asarray(SHELLS) * typical
    return LocalMeans(
        cells=cells, shells=shells, domain=radius, moments="pooled", guarantee=guarantee, salt=salt
    )


def _cells(target: FloatArray, k: int) -> tuple[FloatArray, float]:
    """Public k-means centres of the target, and the median distance to them."""
    from sklearn.cluster import KMeans

    distinct = len(np.unique(target, axis=0))
    found = KMeans(min(k, distinct), n_init=1, random_state=0).fit(target)
    gaps = np.linalg.norm(target - found.cluster_centers_[found.labels_], axis=1)
    typical = float(np.median(gaps[gaps > 0])) if np.any(gaps > 0) else 1e-3
    return np.asarray(found.cluster_centers_, dtype=np.float64), typical


__all__ = ["default_question", "scale"]
