"""What the curator tells owners in a round, before its noise is drawn.

A learner draws nothing. It yields one of these, and whoever drives it draws
(`privada.methods.summarization.curator_noise`) and sends back the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from privada._arrays import FloatArray
from privada.methods.summarization.questions.asking_rules import AskRule
from privada.privacy.mechanism import Gaussian


@dataclass(frozen=True, eq=False, repr=False)
class NoisySum:
    """Wanted: the noisy sum of the summary's embeddings, which is then broadcast.

    Attributes
    ----------
    features : array of shape (points, features)
        The exact embeddings: at the curator's only.
    mechanism : Gaussian
        Its noise, as `RoundPlan.broadcast` says.
    """

    features: FloatArray
    mechanism: Gaussian

    def equals(self, other: Draw) -> bool:
        """Whether another draw is of the same sum."""
        return isinstance(other, NoisySum) and np.array_equal(self.features, other.features)


@dataclass(frozen=True, eq=False, repr=False)
class AskedOwners:
    """Wanted: which owners are asked for their points, a random set of names.

    Attributes
    ----------
    ranks : mapping of owner's name to int
        The exact ranks: at the curator's only.
    rule : AskRule
        With which probability each rank is asked, as `RoundPlan.rule` says.
    """

    ranks: Mapping[str, int]
    rule: AskRule

    def equals(self, other: Draw) -> bool:
        """Whether another draw is of the same ranks."""
        return isinstance(other, AskedOwners) and self.ranks == other.ranks


Draw = NoisySum | AskedOwners

__all__ = ["AskedOwners", "Draw", "NoisySum"]
