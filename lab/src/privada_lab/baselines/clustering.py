"""What people would do instead of source-target clustering, each in one line.

A private baseline turns the source into a few public points (centres, or points of a generator) and
never looks at the target; the solver of `privada.methods.clustering` then takes these points for the source.

=================  =========================================================================
name               source that the solver is given
=================  =========================================================================
``ClusterT``       none: the source is ignored
``STC``            the source itself: **not private**
``PrivateKmeans``  100 private centres, Balcan et al. 2017
``TreeKmeans``     100 private centres by k-means on a private tree: the best we know
``DP-GAN``         100 points of a privately trained generator (extra ``deep``); a pure
                   guarantee is met with δ = 1e-5 only, which is weaker
=================  =========================================================================

Every baseline gets the least noise that its guarantee allows. (The paper runs them at ``ε = √(ρ/2)`` for
ρ-zCDP, which is twice less than ``√(2ρ)``, and that again less than ``ε tanh(ε/2) = ρ``.)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from privada import _check
from privada._arrays import FloatArray, IntArray
from privada.exceptions import InputError
from privada.methods.clustering.learner.medoids import medoids, source_distances
from privada.privacy.guarantee import ApproxDP, Guarantee, PureDP, make_guarantee
from privada.privacy.release import Question
from privada_lab.baselines.coreset import Coreset
from privada_lab.baselines.private._asking import ask, ball_schema, row_width
from privada_lab.baselines.private.gan import GeneratedPoints
from privada_lab.baselines.private.private_kmeans import SwappedCenters
from privada_lab.baselines.private.tree_kmeans import TreeCenters

N_CENTERS = 100
PURE_DELTA = 1e-5  # what a generator needs in place of a pure guarantee


class _PrivateCenters(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """What the private baselines share: one question, and the centres that it yields."""

    def __init__(
        self,
        n_clusters: int = N_CENTERS,
        *,
        norm_bound: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        relation: str = "add/remove",
        size: int | None = None,
        random_state: int = 0,
        insecure_seed: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.norm_bound = norm_bound
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.relation = relation
        self.size = size
        self.random_state = random_state
        self.insecure_seed = insecure_seed

    @abstractmethod
    def _question(self, width: int, guarantee: Guarantee) -> Question:
        """What is asked."""

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 - scikit-learn's signature
        """Ask an owner in memory."""
        width = row_width(X)
        schema = ball_schema(self.norm_bound, width=width, size=self.size)
        guarantee = make_guarantee(
            epsilon=self.epsilon, delta=self.delta, rho=self.rho, relation=self.relation
        )
        question = self._question(width, guarantee)
        self.release_ = ask(question, X, schema=schema, insecure_seed=self.insecure_seed)
        self.guarantee_ = self.release_.guarantee
        seen = self.release_["weights"] > 0
        self.cluster_centers_ = self.release_["centers"][seen]
        self.weights_ = self.release_["weights"][seen]
        self.n_features_in_ = width
        return self

    def predict(self, X: Any) -> IntArray:
        """Index of the nearest centre of each row."""
        check_is_fitted(self)
        from privada.methods.cells.questions.partition import NearestCells

        rows = _check.matrix(X=X, width=self.n_features_in_)
        if not len(self.cluster_centers_):
            raise InputError("No centre was seen above the noise; there is nothing to predict.")
        return NearestCells(centers=self.cluster_centers_).assign(rows)


class PrivateKMeans(_PrivateCenters):
    """k-means as Balcan et al. 2017 do it, soundly: candidates, private swaps, noisy means.

    Parameters
    ----------
    n_clusters : int
        At most so many centres; those that noise alone could show are left out.
    norm_bound : float
        Radius of the public ball around 0; rows beyond it are clipped.
    epsilon, delta, rho : float
        The guarantee; epsilon and rho exclude each other.
    relation : str
        "add/remove", or "replace-one", under which ``size`` is public and needed.
    size : int, optional
        Declared number of rows.
    random_state : int
        Of public randomness.
    insecure_seed : int, optional
        Seed for reproducible noise: not private.

    Attributes
    ----------
    cluster_centers_, weights_
        Centres, and noisy numbers of rows.
    release_, guarantee_
        What left the owner, and what was promised.

    Privacy
    -------
    Unit: one row. Proof: `privada_lab.baselines.private.private_kmeans`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat([[-0.3, 0.0], [0.3, 0.0]], 2000, axis=0)
    >>> model = PrivateKMeans(2, norm_bound=0.5, epsilon=3).fit(X)
    >>> sorted(model.cluster_centers_[:, 0].round(1).tolist()), str(model.guarantee_)
    ([-0.3, 0.3], 'ε = 3 (pure), add/remove one row')
    """

    def _question(self, width: int, guarantee: Guarantee) -> Question:
        return SwappedCenters(
            n_clusters=self.n_clusters,
            width=width,
            norm_bound=float(self.norm_bound or 0),
            random_state=self.random_state,
            guarantee=guarantee,
        )


class TreeKMeans(_PrivateCenters):
    """k-means on a private tree of cubes: for few features the best private k-means that we know.

    Parameters and attributes are those of `PrivateKMeans`.

    Privacy
    -------
    Unit: one row. Proof: `privada_lab.baselines.private.tree_kmeans`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat([[-0.3, 0.0], [0.3, 0.0]], 500, axis=0)
    >>> model = TreeKMeans(2, norm_bound=0.5, rho=0.5).fit(X)
    >>> sorted(model.cluster_centers_[:, 0].round(1).tolist())
    [-0.3, 0.3]
    """

    def _question(self, width: int, guarantee: Guarantee) -> Question:
        return TreeCenters(
            n_clusters=self.n_clusters,
            width=width,
            norm_bound=float(self.norm_bound or 0),
            random_state=self.random_state,
            guarantee=guarantee,
        )


class DPGAN(_PrivateCenters):
    """Points of a generator that was trained with noisy gradients; needs the extra ``deep``.

    Parameters and attributes are those of `PrivateKMeans`; the guarantee is epsilon with delta, or rho, and
    ``n_clusters`` points are drawn.

    Privacy
    -------
    Unit: one row. Proof: `privada_lab.baselines.private.gan`.
    """

    def _question(self, width: int, guarantee: Guarantee) -> Question:
        return GeneratedPoints(
            n_points=self.n_clusters,
            width=width,
            norm_bound=float(self.norm_bound or 0),
            random_state=self.random_state,
            guarantee=guarantee,
        )


def choose(target: Any, k: int, points: Any, *, coreset_radius: float | None = None) -> IntArray:
    """Indices of k target points that serve the target best beside ``points``.

    With ``coreset_radius`` the choice is made among, and for, a weighted coreset of the target; centres
    that are left when all of a small coreset is chosen are then chosen for the whole target.
    """
    T = _check.matrix(target=target)
    caps = source_distances(T, points)
    if coreset_radius is None:
        return medoids(T, k, caps=caps).indices
    coreset = Coreset.of(T, radius=coreset_radius)
    few = coreset.indices
    found = few[medoids(T[few], k, caps=caps[few], weights=coreset.weights).indices]
    if len(found) == k:
        return found
    served = np.minimum(caps, source_distances(T, T[found]))
    return np.union1d(found, medoids(T, k - len(found), caps=served).indices)


class _Chosen(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """A choice of target points beside a source that may be used as it is."""

    def __init__(self, n_centers: int = 8, *, coreset_radius: float | None = None) -> None:
        self.n_centers = n_centers
        self.coreset_radius = coreset_radius

    def _choose(self, target: Any, points: Any) -> Self:
        self.indices_ = choose(target, self.n_centers, points, coreset_radius=self.coreset_radius)
        self.cluster_centers_ = np.asarray(target, dtype=np.float64)[self.indices_]
        return self


class ClusterT(_Chosen):
    """Choose target points as if there were no source.

    Parameters
    ----------
    n_centers : int
    coreset_radius : float, optional
        Choose for a coreset of the target of this radius.

    Attributes
    ----------
    indices_, cluster_centers_

    Privacy
    -------
    Perfect: the source is not looked at.

    Examples
    --------
    >>> ClusterT(2).fit(None, Xt=[[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]]).indices_.tolist()
    [1, 4]
    """

    def fit(self, X: Any = None, y: Any = None, Xt: Any = None) -> Self:  # noqa: ARG002
        """Choose; ``X``, the source, is ignored."""
        return self._choose(Xt, None)


class STC(_Chosen):
    """Choose target points beside the source itself: **not private**.

    Parameters and attributes are those of `ClusterT`.

    Privacy
    -------
    None: which points are chosen tells of single source rows.

    Examples
    --------
    >>> target = [[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]]
    >>> STC(1).fit([[1.0]], Xt=target).indices_.tolist()
    [4]
    """

    def fit(self, X: Any, y: Any = None, Xt: Any = None) -> Self:  # noqa: ARG002
        """Choose beside the source ``X``."""
        return self._choose(Xt, X)


def _budget(guarantee: Guarantee) -> dict[str, Any]:
    """A guarantee as the parameters of an estimator."""
    plain = {name: getattr(guarantee, name, None) for name in ("epsilon", "delta", "rho")}
    return plain | {"relation": guarantee.relation.value}


def _fitted(
    kind: type[_PrivateCenters], source: Any, guarantee: Guarantee, seed: int, norm_bound: float, n: int
) -> FloatArray:
    size = None if guarantee.relation == "add/remove" else len(source)
    model = kind(n, norm_bound=norm_bound, random_state=seed, size=size, **_budget(guarantee))
    points: FloatArray = model.fit(source).cluster_centers_
    return points


def _generated(source: Any, guarantee: Guarantee, seed: int, norm_bound: float, n: int) -> FloatArray:
    if isinstance(guarantee, PureDP):
        guarantee = ApproxDP(
            epsilon=guarantee.epsilon, delta=PURE_DELTA, relation=guarantee.relation, unit=guarantee.unit
        )
    return _fitted(DPGAN, source, guarantee, seed, norm_bound, n)


def _ignored(source: Any, guarantee: Guarantee, seed: int, norm_bound: float, n: int) -> None:  # noqa: ARG001
    return None


def _seen(source: Any, guarantee: Guarantee, seed: int, norm_bound: float, n: int) -> Any:  # noqa: ARG001
    return source


SOURCES: Mapping[str, Callable[[Any, Guarantee, int, float, int], Any]] = {
    "ClusterT": _ignored,
    "STC": _seen,
    "PrivateKmeans": partial(_fitted, PrivateKMeans),
    "TreeKmeans": partial(_fitted, TreeKMeans),
    "DP-GAN": _generated,
}
"""Name to ``(source, guarantee, seed, norm_bound, n_centers) -> points``, which serve for every k."""


def _baseline(
    name: str,
    source: Any,
    target: Any,
    k: int,
    guarantee: Guarantee,
    seed: int,
    *,
    coreset_radius: float | None = None,
    norm_bound: float = 0.5,
    n_centers: int = N_CENTERS,
) -> IntArray:
    """Indices of the target points that a baseline chooses; the seed is of public randomness only."""
    points = SOURCES[name](source, guarantee, seed, norm_bound, n_centers)
    return choose(target, k, points, coreset_radius=coreset_radius)


BASELINES: Mapping[str, Callable[..., IntArray]] = {name: partial(_baseline, name) for name in SOURCES}
"""Name to ``(source, target, k, guarantee, seed, *, coreset_radius=None, norm_bound=0.5) -> indices``."""


__all__ = ["BASELINES", "DPGAN", "SOURCES", "STC", "ClusterT", "PrivateKMeans", "TreeKMeans", "choose"]
