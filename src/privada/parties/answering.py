"""Compute an answer and add its noise: the only code path from exact values to a payload.

An answerer (in ``methods/<method>/owner``) is a function
``answer(question, rows, draw) -> payload``. It may pass exact values to
``draw`` only; ``draw`` returns them with the noise of the mechanism that the
question's plan declares under that name. Every declared draw happens exactly
once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.exceptions import AnswerError
from privada.parties.rows import Rows
from privada.privacy.mechanism import Mechanism, Plan
from privada.privacy.noise import Noise
from privada.privacy.release import Question

Witness = Callable[[str, Mechanism, npt.NDArray[Any]], None]
Payload = Mapping[str, Any]


class Draws:
    """The planned draws of one answer; each can be made once."""

    def __init__(self, plan: Plan, noise: Noise, witness: Witness | None = None) -> None:
        self._left = dict(plan.draws)
        self._noise = noise
        self._witness = witness

    def __call__(self, name: str, exact: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Release ``exact`` through the mechanism that was planned under ``name``."""
        if name not in self._left:
            raise AnswerError(f"The plan has no (further) draw named {name!r}.")
        mechanism = self._left.pop(name)
        if self._witness is not None:
            self._witness(name, mechanism, np.array(exact))
        return mechanism.draw(exact, self._noise)

    @property
    def noise(self) -> Noise:
        """Randomness that is not a mechanism, such as the order of released rows."""
        return self._noise

    def finish(self) -> None:
        """Refuse an answer that left a draw out: its shape would reveal something."""
        if self._left:
            raise AnswerError(f"The answer left out planned draws: {', '.join(sorted(self._left))}.")


def answerer(question: Question) -> Callable[[Question, Rows, Draws], Payload]:
    """The owner-side function of a question, imported here and nowhere else."""
    module, _, name = type(question).answered_by.partition(":")
    return getattr(import_module(module), name)


def answered(question: Question, rows: Rows, draw: Draws) -> Payload:
    """The answerer's payload, from the columns that the question needs.

    NumPy's warnings stay here: an overflow could reveal something about a row.
    A process that turns warnings into errors would fail on some rows and not on others.
    """
    rows = rows.reading(features=question.needed_features, label=question.needs_label)
    with np.errstate(all="ignore"):
        return answerer(question)(question, rows, draw)


def answer_rows(
    question: Question, rows: Rows, *, noise: Noise, witness: Witness | None = None
) -> dict[str, Any]:
    """Answer a question on opened rows.

    ``witness`` sees every exact value just before its noise is drawn. It is
    for the replay auditor on synthetic rows, never for an owner's rows.
    """
    draw = Draws(question.plan, noise, witness)
    payload = dict(answered(question, rows, draw))
    draw.finish()
    # Shapes that did not follow from public parameters alone could say something about the rows.
    shapes = question.answer_shapes()
    if shapes and {name: np.shape(value) for name, value in payload.items()} != dict(shapes):
        raise AnswerError("The payload has other shapes than the question says.")
    for name, value in payload.items():
        if not isinstance(value, (np.ndarray, int, float, str, bool)):
            raise AnswerError(f"The payload's {name!r} is not an array or a plain value.")
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    return payload


__all__ = ["Draws", "answer_rows", "answered", "answerer"]
