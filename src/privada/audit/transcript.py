"""Answer a question with a witness, or with outputs that were fixed beforehand.

An answer is a dialogue between the answerer and its mechanisms. Fixing the
outputs of the mechanisms makes the rest of it a deterministic function of the
rows, so that two data sets can be compared draw by draw, also where a later
draw depends on what an earlier one released.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from privada.exceptions import InputError, RehearsalWarning
from privada.parties.answering import Draws, answer_rows, answered
from privada.parties.rows import Rows
from privada.privacy.mechanism import Mechanism, Plan
from privada.privacy.noise import Noise, Rehearsal
from privada.privacy.release import Question

Released = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False, repr=False)
class Call:
    """One call of a mechanism: its name in the plan, and the exact value that it was given."""

    name: str
    mechanism: Mechanism
    exact: npt.NDArray[Any]

    def __repr__(self) -> str:
        return f"<Call {self.name}: {self.mechanism.family}>"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Playback(Mechanism):
    """Returns a fixed output, whatever its input. Never part of a question's plan."""

    released: npt.NDArray[Any]
    sensitivity: float = 1.0
    family: ClassVar[str] = "playback"
    norm: ClassVar[int] = 0

    @property
    def event(self) -> Any:
        raise InputError("A playback is no mechanism: it has no event.")

    def draw(self, exact: npt.NDArray[Any], noise: Noise) -> npt.NDArray[Any]:  # noqa: ARG002
        return self.released.copy()

    def half_width(self, confidence: float) -> float:  # noqa: ARG002
        raise InputError("A playback is no mechanism: it has no interval.")


def witnessed(question: Question, rows: Rows, noise: Noise) -> tuple[list[Call], dict[str, Any]]:
    """Answer once, and record the input of each mechanism."""
    calls: list[Call] = []
    payload = answer_rows(question, rows, noise=noise, witness=lambda *call: calls.append(Call(*call)))
    return calls, payload


@dataclass(frozen=True, eq=False, repr=False)
class Drawn:
    """A call and what its mechanism answered."""

    call: Call
    output: npt.NDArray[Any]

    def __repr__(self) -> str:
        return f"<Drawn {self.call.name}: {self.call.mechanism.family}>"


class _RecordingDraws(Draws):
    """The planned draws, remembering what went in and what came out."""

    def __init__(self, plan: Plan, noise: Noise) -> None:
        self.tape: list[Drawn] = []
        self._plan = plan
        super().__init__(plan, noise)

    def __call__(self, name: str, exact: npt.NDArray[Any]) -> npt.NDArray[Any]:
        before = np.array(exact)
        output = super().__call__(name, exact)
        self.tape.append(Drawn(Call(name, self._plan.draws[name], before), np.array(output)))
        return output


def record_draws(question: Question, rows: Rows, noise: Noise) -> tuple[list[Drawn], dict[str, Any]]:
    """Answer once, and record the input and the output of each mechanism."""
    draws = _RecordingDraws(question.plan, noise)
    payload = dict(answered(question, rows, draws))
    draws.finish()
    return draws.tape, payload


def draw_outputs(calls: list[Call], noise: Noise) -> dict[str, npt.NDArray[Any]]:
    """Draw one output for every call."""
    return {call.name: call.mechanism.draw(call.exact, noise) for call in calls}


def play_back(
    question: Question, rows: Rows, released: Released, noise: Noise
) -> tuple[list[Call], dict[str, Any]]:
    """Answer with mechanisms that return ``released``, and record the input of each.

    ``noise`` is what the answerer may use beside its mechanisms, such as the
    order of released rows; no mechanism draws from it.
    """
    calls: list[Call] = []

    def witness(name: str, _: Mechanism, exact: npt.NDArray[Any]) -> None:
        calls.append(Call(name, question.plan.draws[name], exact))

    fixed = {name: _Playback(released=value) for name, value in released.items()}
    draws = Draws(Plan(draws=fixed, event=question.plan.event), noise, witness)
    payload = dict(answered(question, rows, draws))
    draws.finish()
    return calls, payload


class WatchedNoise(Noise):
    """Another source of noise that remembers whether it was used.

    Mechanisms that play back draw nothing, so what is used while they do is an answerer's own: a secret
    order or sample. Comparing a few answers would miss it where most rows are alike.
    """

    private = False

    def __init__(self, source: Noise) -> None:
        self.source, self.used = source, False

    def words(self, n: int) -> npt.NDArray[np.uint64]:
        """The source's words."""
        self.used = True
        return self.source.words(n)


def coupled(seed: int) -> Noise:
    """Seeded noise, the same words for every data set. Nothing made with it is released."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RehearsalWarning)
        return Rehearsal(seed)


def same(left: Any, right: Any) -> bool:
    """Whether two payload values are equal to the last bit, type and shape included."""
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        alike = left.dtype == right.dtype and left.shape == right.shape
        return alike and left.tobytes() == right.tobytes()
    return type(left) is type(right) and repr(left) == repr(right)


__all__ = [
    "Call",
    "Drawn",
    "WatchedNoise",
    "coupled",
    "draw_outputs",
    "play_back",
    "record_draws",
    "same",
    "witnessed",
]
