"""An owner in memory whose budget is one question, for the faces that hold both sides."""

from __future__ import annotations

from typing import Any

from privada.methods.transport.questions.descent import Descent
from privada.methods.transport.questions.rows import RowRelease
from privada.methods.transport.questions.statistics import ClassStatistics
from privada.parties.in_memory import owner_in_memory
from privada.parties.owner import Owner
from privada.parties.schema import Schema


def owner_for(
    question: Descent | ClassStatistics | RowRelease,
    rows: Any,
    *,
    y: Any = None,
    schema: Schema,
    dataset: str,
    rehearsal: int | None = None,
) -> Owner:
    """Hold rows for this one question and no other.

    Gaussian noise alone composes exactly, and the budget is the question's guarantee. Randomised labels and
    sampled batches keep their guarantee by a privacy-loss distribution, which no filter can add up: their
    budget is the ρ that the ledger charges for them, all of which the question uses.
    """
    return owner_in_memory(
        rows,
        [question],
        y=y,
        schema=schema,
        dataset=dataset,
        budget=question.guarantee,
        rehearsal=rehearsal,
    )


__all__ = ["owner_for"]
