"""A small complete case of summarization, generated."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from privada.methods.example import Example
from privada.methods.summarization.estimator import PrivateSummarizer
from privada.methods.summarization.learner.learn import Matching, match
from privada.methods.summarization.learner.summary import Allocation
from privada.methods.summarization.questions.matching import EmbeddingSum, FourierEmbedding, NearCount
from privada.methods.summarization.questions.rounds import Participation
from privada.parties.protocol import Inquiry
from privada.parties.schema import Schema
from privada.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP
from privada.privacy.relation import Relation
from privada.privacy.release import Question

GAMMA, FEATURES, SIZE = 0.5, 12, 10
VALIDATION = ApproxDP(epsilon=1.0, delta=1e-5, relation=Relation.REPLACE_ONE)
EMBEDDING = FourierEmbedding.of(width=2, n_features=FEATURES, gamma=GAMMA, random_state=0)


def example() -> Example:
    """Two features, 60 rows; every question that releases something, under all guarantees that it keeps.

    The questions for rows are left out: they disclose, and have no guarantee to keep.
    """
    public = np.random.default_rng(5)
    return Example(
        schema=Schema.of_numbers(bounds=(-3.0, 3.0), width=2, size=60),
        data={"data": public.normal(1.0, 0.5, size=(60, 2))},
        questions=tuple(_questions()),
        inquiry=_inquiry,
        estimator=lambda seed: PrivateSummarizer(
            SIZE,
            gamma=GAMMA,
            bounds=(-3.0, 3.0),
            epsilon=VALIDATION.epsilon,
            delta=VALIDATION.delta,
            n_features=FEATURES,
            random_state=0,
            insecure_seed=seed,
        ),
        fit_more={"owners": [public.normal(1.0, 0.5, size=(30, 2)), public.normal(-1, 0.5, size=(30, 2))]},
    )


def _inquiry(owner: str) -> Inquiry[Allocation]:
    """Consumer and single owner in one: only the validation set is asked about."""
    matching = Matching(embedding=EMBEDDING, size=SIZE, validation=VALIDATION, owners=VALIDATION)
    return match(owner, 60, {owner: 60}, matching)


def _guarantees() -> Iterator[Guarantee]:
    for relation in (Relation.REPLACE_ONE, Relation.ADD_REMOVE):
        yield PureDP(epsilon=1.0, relation=relation)
        yield ZCDP(rho=0.1, relation=relation)
        yield ApproxDP(epsilon=1.0, delta=1e-5, relation=relation)


def _questions() -> Iterator[Question]:
    direction = EMBEDDING.mean(np.ones((1, 2))) - EMBEDDING.mean(-np.ones((1, 2)))
    for guarantee in _guarantees():
        yield EmbeddingSum(embedding=EMBEDDING, guarantee=guarantee)
        yield NearCount(embedding=EMBEDDING, direction=direction, threshold=0.1, guarantee=guarantee)
    yield Participation(
        size=SIZE, batch=2, dimension=FEATURES, guarantee=ZCDP(rho=0.1, relation=Relation.ADD_REMOVE)
    )
    yield Participation(
        size=SIZE, batch=2, dimension=FEATURES, ask_share=0.5, coalition=2, guarantee=VALIDATION
    )


__all__ = ["example"]
