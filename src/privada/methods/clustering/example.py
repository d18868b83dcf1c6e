"""A small complete case of clustering, generated."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from privada.methods.clustering.estimator import SourceTargetMedoids
from privada.methods.clustering.learner.learn import Choice
from privada.methods.clustering.method import Clustering
from privada.methods.clustering.questions.means import NearestMeans, NeighbourAverages, SourceRadius
from privada.methods.clustering.questions.multiscale import GridPyramid, LocalMeans
from privada.methods.example import Example
from privada.methods.method import Public
from privada.parties.protocol import Inquiry
from privada.parties.schema import Schema
from privada.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP
from privada.privacy.relation import Relation
from privada.privacy.release import Question

TARGETS = np.array([[-0.3, -0.2], [0.3, -0.2], [0.0, 0.3], [0.0, 0.3], [0.1, 0.0]])  # one of them twice
SHELLS = np.array([0.1, 0.25])
RADIUS = 0.5
CENTERS = 2


def example() -> Example:
    """Two features in the ball of radius 1/2, 200 source rows; all questions under all guarantees.

    K-norm noise is left out: an owner allows idealised arithmetic only on purpose.
    """
    public = np.random.default_rng(11)
    source = public.normal((0.15, 0.0), 0.2, size=(200, 2))
    return Example(
        schema=Schema.of_numbers(bounds=(-0.5, 0.5), width=2, size=200),
        data={"data": source},
        questions=tuple(_questions()),
        inquiry=_inquiry,
        estimator=lambda seed: SourceTargetMedoids(
            CENTERS, norm_bound=RADIUS, epsilon=3.0, random_state=0, insecure_seed=seed
        ),
        fit_more={"Xt": TARGETS},
    )


def _inquiry(owner: str) -> Inquiry[Choice]:
    pure = PureDP(epsilon=3.0, relation=Relation.ADD_REMOVE)
    method = Clustering(n_centers=CENTERS, norm_bound=RADIUS)
    return method.prepare(Public(TARGETS), {owner: Schema.of_numbers(bounds=(-0.5, 0.5), width=2)}, pure)


def _guarantees() -> Iterator[Guarantee]:
    for relation in (Relation.ADD_REMOVE, Relation.REPLACE_ONE):
        yield PureDP(epsilon=2.0, relation=relation)
        yield ZCDP(rho=0.3, relation=relation)
    yield ApproxDP(epsilon=1.0, delta=1e-5, relation=Relation.ADD_REMOVE)


def _questions() -> Iterator[Question]:
    for index, guarantee in enumerate(_guarantees()):
        recentred = index % 2 == 0
        yield NearestMeans(
            cells=TARGETS, radius=RADIUS, recentred=recentred, domain=RADIUS, guarantee=guarantee
        )
        yield LocalMeans(
            cells=TARGETS,
            shells=SHELLS,
            domain=RADIUS,
            moments=("full", "trace", "none")[index % 3],
            guarantee=guarantee,
        )
        yield NeighbourAverages(targets=TARGETS, t=20, radius=RADIUS, guarantee=guarantee)
        yield SourceRadius(targets=TARGETS, t=20, radius=RADIUS, guarantee=guarantee)
        yield GridPyramid(levels=(1, 3), domain=RADIUS, width=2, guarantee=guarantee)


__all__ = ["example"]
