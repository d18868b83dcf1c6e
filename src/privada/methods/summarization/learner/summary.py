"""The summary at the curator's: its points, whose they are, and what they are worth."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.summarization.learner.allocation import Allocation
from privada.methods.summarization.learner.herding import marginal_gains
from privada.methods.summarization.questions.embedding import FourierEmbedding

NOT_PRIVATE = "raw rows at the curator: not differentially private"
NOT_PRIVATE_EMBEDDED = "embeddings at the curator: not differentially private"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Summary:
    """The summary, at the curator's.

    Attributes
    ----------
    X : array of shape (p, features)
        Rows, encoded as the schema says, or their embeddings.
    y : array of shape (p,) or None
        Labels: codes of the schema's classes, or numbers.
    owner : array of shape (p,)
        Who sent each.
    allocation : Allocation
    points_seen : int
        How many points the curator has received, also those that it left out.
    faults : tuple of str
        What was left out, by owner; never a row.
    embedded : bool
    embedding : FourierEmbedding

    Privacy
    -------
    Raw rows of owners: for the curator and the consumer only. On models that go back to owners, see `train`.
    """

    X: FloatArray
    y: npt.NDArray[Any] | None
    owner: npt.NDArray[np.str_]
    allocation: Allocation
    points_seen: int
    faults: tuple[str, ...]
    embedding: FourierEmbedding
    embedded: bool = False

    def __repr__(self) -> str:
        return f"<Summary of {len(self.X)} points from {len(set(self.owner.tolist()))} owners: not private>"

    def __len__(self) -> int:
        return len(self.X)

    @property
    def features(self) -> FloatArray:
        """The points' embeddings."""
        return self.X if self.embedded else self.embedding.transform(self.X)

    def contributions(self) -> dict[str, float]:
        """Value of each owner: the sum of its points' marginal gains, in greedy order.

        Privacy
        -------
        For the consumer only: an owner's value depends on other owners' rows.
        """
        order, gains = marginal_gains(self.features, self.allocation.target)
        names = self.owner[order]
        return {name: float(gains[names == name].sum()) for name in sorted({*self.allocation.rows, *names})}

    def train(self, classifier: Any) -> Any:
        """Fit any scikit-learn classifier on the summary, and return it.

        Privacy
        -------
        A plain model stays with curator and consumer. A differentially private classifier protects each
        *gathered point*. One row of an owner may change many points that it sends (choosing is not stable),
        all a_k of them at worst: that is a group of a_k, and its guarantee is what other owners have if
        the model goes back to them.
        """
        if self.y is None:
            raise InputError("The owners' schema has no label to train on.")
        return classifier.fit(self.X, self.y)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the rows into a new ``.npz`` file; one that is there is never overwritten."""
        file = Path(path)
        arrays = {"X": self.X, "owner": self.owner} | ({} if self.y is None else {"y": self.y})
        try:
            with file.open("xb") as stream:
                np.savez_compressed(stream, **arrays)
        except FileExistsError:
            raise InputError(f"{file.name} is there already; name another file.") from None
        return file

    def to_dict(self) -> dict[str, Any]:
        """Plain form for reports, without any row."""
        said = NOT_PRIVATE_EMBEDDED if self.embedded else NOT_PRIVATE
        plain = self.allocation.to_dict()
        return plain | {
            "stamps": [*plain["stamps"], said],
            "points": len(self.X),
            "points_seen": self.points_seen,
            "faults": list(self.faults),
            "values_for_the_consumer": self.contributions(),
        }


__all__ = ["Summary"]
