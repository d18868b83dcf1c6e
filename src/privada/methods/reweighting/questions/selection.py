"""Private model selection: which of a few public models does best on private validation rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privada import _check
from privada._arrays import FloatArray
from privada.exceptions import InputError
from privada.methods.linear.questions import losses, public
from privada.privacy.accounting import curves
from privada.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP
from privada.privacy.mechanism import Exponential, Plan
from privada.privacy.release import PublicSchema, Question

LARGEST_EPSILON = 1e6


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Selection(Question):
    """Ask which candidate has the least loss on the private rows: the exponential mechanism.

    Candidates are released or public models; asked of rows that were not trained on, it is honest validation.

    Parameters
    ----------
    weights : array of shape (candidates, features, outputs)
    intercepts : array of shape (candidates, outputs)
    loss : "squared", "logistic" or "softmax"
    largest_loss : float
        B, to which each record's loss is clipped.

    Notes
    -----
    The payload is ``choice``, the index of a candidate.

    Privacy
    -------
    The score of a candidate is minus the sum of its clipped losses over B, each truncated to whole steps of
    2^-20, from 0 to 1: replacing one row moves it by at most 1, a person's m rows by at most m, exactly and
    in every order of the rows. The number of rows need not be public; under add/remove the same bound holds.
    """

    weights: FloatArray
    intercepts: FloatArray
    loss: str = "squared"
    largest_loss: float = 1.0
    kind: ClassVar[str] = "reweighting.selection"
    answered_by: ClassVar[str] = "privada.methods.reweighting.owner.answer:answer_selection"

    def validate(self) -> None:
        """Check every public parameter by name."""
        _check.one_of(losses.LOSSES, loss=self.loss)
        _check.positive(largest_loss=self.largest_loss)
        shape = np.shape(self.weights)
        if len(shape) != 3 or 0 in shape or shape[0] < 2:
            raise InputError(f"Expected weights of shape (2 or more, features, outputs), got {shape}.")
        flat = public.matrix(weights=np.reshape(self.weights, (shape[0], -1)))
        object.__setattr__(self, "weights", flat.reshape(shape))
        intercepts = public.matrix(intercepts=self.intercepts, width=shape[2])
        if len(intercepts) != shape[0]:
            raise InputError(f"Expected intercepts of {shape[0]} candidates, got {len(intercepts)}.")
        object.__setattr__(self, "intercepts", intercepts)

    def fits(self, schema: PublicSchema) -> None:
        """Check features and label against the owner's schema."""
        if self.weights.shape[1] != schema.width:
            raise InputError(f"Expected weights of {schema.width} features, got {self.weights.shape[1]}.")
        if self.loss == "squared":
            public.numeric_label(schema)
        elif losses.outputs(self.loss, len(schema.classes)) != self.weights.shape[2]:
            raise InputError(f"Expected weights for {len(schema.classes)} classes.")

    def answer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the payload."""
        return {"choice": (1,)}

    def planned(self) -> Plan:
        """One choice."""
        reach = float(self.guarantee.unit.max_rows)
        return Plan(draws={"choice": Exponential(sensitivity=reach, budget=_budget(self.guarantee))})


def _budget(guarantee: Guarantee) -> float:
    """ε of a choice: its loss has range ε, so it is (ε²/8)-zCDP."""
    if isinstance(guarantee, PureDP):
        return guarantee.epsilon
    if isinstance(guarantee, ZCDP):
        return math.sqrt(8 * guarantee.rho)
    assert isinstance(guarantee, ApproxDP)
    if guarantee.epsilon > LARGEST_EPSILON:
        raise InputError(f"Expected epsilon of at most {LARGEST_EPSILON:g}, got {guarantee.epsilon:g}.")
    return math.sqrt(8 * curves.zcdp_rho(epsilon=guarantee.epsilon, delta=guarantee.delta))


__all__ = ["Selection"]
