"""The parties of a shift, in one process: a consumer, its owners, and a curator that drives them."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada.exceptions import PrivacyLeakWarning
from privada.methods.summarization import (
    Consumer,
    Curator,
    FourierEmbedding,
    Matching,
    OwnerNode,
    Summary,
    gather,
    match,
)
from privada.parties.owner import Owner
from privada.parties.permissions import Policy
from privada.parties.schema import Category, Schema
from privada.privacy.guarantee import ApproxDP
from privada.privacy.relation import Relation
from privada_lab.datasets.shift import Shift

Rows = tuple[FloatArray, npt.NDArray[Any]]
SIZES = (50, 100, 200, 400)
FEATURES = 140
VALIDATION = ApproxDP(epsilon=1.4, delta=0.01, relation=Relation.REPLACE_ONE)
OWNER = ApproxDP(epsilon=0.5, delta=1e-4, relation=Relation.REPLACE_ONE)


class Market:
    """The parties of one shift, in one process, with secure noise and ledgers of their own."""

    def __init__(
        self,
        shift: Shift,
        *,
        seed: int,
        validation: ApproxDP = VALIDATION,
        owners: ApproxDP = OWNER,
    ) -> None:
        self.shift = shift
        self.embedding = FourierEmbedding.of(
            width=shift.validation.shape[1], n_features=FEATURES, gamma=shift.gamma, random_state=seed
        )
        self.matching = Matching(
            embedding=self.embedding, size=max(SIZES), validation=validation, owners=owners
        )
        self.curator = Curator()
        consumer, sellers = self._parties()
        self.nodes = {node.name: node for node in (consumer, *sellers)}
        sizes = {node.name: node.size for node in sellers}
        learner = match(consumer.name, consumer.size, sizes, self.matching)
        self.allocation = self.curator.drive(learner, self.nodes)

    def _parties(self) -> tuple[Consumer, list[OwnerNode]]:
        """All parties anew, each with its whole budget."""
        validation = self._owner(self.shift.validation, None, "validation", self.matching.validation)
        owners = [
            OwnerNode(f"owner-{k}", self._owner(X, y, f"owner-{k}", self.matching.owners))
            for k, (X, y) in enumerate(self.shift.owners)
        ]
        return Consumer("consumer", validation), owners

    def _owner(self, X: FloatArray, y: Any, name: str, budget: ApproxDP) -> Owner:
        label = None if y is None else Category(name="label", values=self.shift.classes)
        schema = Schema.of_numbers(bounds=self.shift.bounds, width=X.shape[1], size=len(X), label=label)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)  # the δ is the paper's
            return Owner(
                X,
                y=y,
                schema=schema,
                dataset=name,
                budget=budget,
                policy=Policy(curators=(self.curator.name,)),
                accounting="gaussian",
            )

    def summary(self, p: int, *, denoised: bool = True, embedded: bool = False) -> tuple[Rows, int]:
        """A summary of p rows, or of their hashes, and how many points the curator saw."""
        matching = replace(self.matching, size=p, denoised=denoised, embedded=embedded)
        return self._rows(self.curator.drive(gather(self.allocation.resized(p), matching), self.nodes))

    def rounds(self, p: int, *, number: int = 10) -> tuple[Rows, int]:
        """A summary in rounds, of parties that were not asked before."""
        consumer, owners = self._parties()
        matching = replace(self.matching, size=p)
        return self._rows(self.curator.auction(consumer, owners, matching, batch=max(1, p // number)))

    def _rows(self, made: Summary) -> tuple[Rows, int]:
        assert made.y is not None
        return (made.X, np.asarray(self.shift.classes)[made.y]), made.points_seen


__all__ = ["FEATURES", "OWNER", "SIZES", "VALIDATION", "Market", "Rows"]
