"""Answers to audit: one with a record of its draws, one with fixed outputs, and many at once.

An answer is a dialogue between the answerer and its mechanisms. Fixing the
outputs of the mechanisms makes the rest of it a deterministic function of the
rows, so that two data sets can be compared draw by draw, also where a later
draw depends on what an earlier one released.

Answering 20,000 times one by one is slow. If a question's payload is
exactly the outputs of its mechanisms, if their inputs do not depend on
their outputs, and if they treat every number by itself, one call of the same
`Mechanism.draw` on many copies of the exact values gives as many independent
answers. `_find_tiled_calls` checks the first two on the question itself by playing
it with different outputs, and that it uses no secret order or sample; the third is a
property of the `TILED_MECHANISMS`. Everything else is answered one by one.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada.audit.events import Mixture, Outcomes, pad
from privada.exceptions import InputError, RehearsalWarning
from privada.parties.answering import Draws, answer_rows, answered
from privada.parties.rows import Rows
from privada.privacy.mechanism import Gaussian, Lattice, Mechanism, Plan, RandomisedResponse
from privada.privacy.noise import Noise, Rehearsal
from privada.privacy.release import Question

TILED_MECHANISMS = (Lattice, RandomisedResponse)  # noise on each number by itself, independent and alike
MOST_NUMBERS = 128
GATHERED_ANSWERS = 64  # answers whose exact rows are gathered where a sample is secret
MOST_CENTRES, MOST_SAMPLED = 256, 32
STILL_NUMBERS = 8
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
    """The planned draws, with a tape of what went in and what came out."""

    def __init__(self, plan: Plan, noise: Noise) -> None:
        self.tape: list[Drawn] = []
        self._plan = plan
        super().__init__(plan, noise)

    def __call__(self, name: str, exact: npt.NDArray[Any]) -> npt.NDArray[Any]:
        before = np.array(exact)  # a copy: the answerer may change its array later
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
    """Another source of noise, with a note of whether it was used.

    Mechanisms that play back draw nothing, so what is used while they do is an answerer's own: a secret
    order or sample. Comparing a few answers would miss it where most rows are alike.
    """

    private = False

    def __init__(self, source: Noise) -> None:
        self.source, self.used = source, False

    def words(self, n: int) -> npt.NDArray[np.uint64]:
        """Draw the source's words."""
        self.used = True
        return self.source.words(n)


def coupled(seed: int) -> Noise:
    """Make seeded noise: the same words for every data set. Nothing made with it is released."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RehearsalWarning)
        return Rehearsal(seed)


def same(left: Any, right: Any) -> bool:
    """Whether two payload values are equal to the last bit, type and shape included."""
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        alike = left.dtype == right.dtype and left.shape == right.shape
        return alike and left.tobytes() == right.tobytes()
    return type(left) is type(right) and repr(left) == repr(right)


def shuffles(question: Question, rows: Rows) -> bool:
    """Whether an answer uses secret randomness beside its mechanisms, such as an order or a sample.

    Replays share that randomness between two data sets. Where common rows stand in other places, one
    order or sample picks other rows, so such pairs are for the black box.
    """
    source = WatchedNoise(coupled(1))
    try:
        outputs = draw_outputs(witnessed(question, rows, coupled(0))[0], coupled(0))
        play_back(question, rows, outputs, source)
    except Exception:  # a replay reports answers that fail
        return False
    return source.used


def flat(outcome: Any) -> FloatArray:
    """Turn a number, an array, a text or a mapping of them (by sorted name) into one row of numbers."""
    if outcome is None:
        return np.zeros(0)
    if isinstance(outcome, Mapping):
        parts = [flat(outcome[name]) for name in sorted(outcome)]
        return np.concatenate(parts) if parts else np.zeros(0)
    if isinstance(outcome, str):
        return np.array([float(zlib.crc32(outcome.encode()))])
    return np.asarray(outcome, dtype=np.float64).ravel()


def sample_function(
    mechanism: Callable[[Any], Any],
    data: Any,
    neighbour: Any,
    *,
    trials: int,
    exact: tuple[FloatArray, FloatArray] | None = None,
    resolution: float | None = None,
) -> Outcomes:
    """Call the function ``trials`` times on each data set."""
    sides = [_stack(flat(mechanism(side)) for _ in range(trials)) for side in (data, neighbour)]
    return Outcomes.of(*sides, exact=exact, resolution=resolution)


def sample_question(
    question: Question, rows: Rows, neighbour: Rows, *, trials: int, noise: Noise
) -> Outcomes:
    """Answer the question ``trials`` times on each set of rows."""
    return AnswerSource.of(question, rows, neighbour, noise=noise).draw(trials)


@dataclass(frozen=True, eq=False, repr=False)
class AnswerSource:
    """A source of fresh answers to a question on two data sets.

    ``at_once`` says whether many are drawn at once, which is quick; ``signature`` then says by how much
    the numbers of each draw move, and which of them are zero before or after.
    """

    draw: Callable[[int], Outcomes]
    at_once: bool
    signature: Hashable = None

    @classmethod
    def of(cls, question: Question, rows: Rows, neighbour: Rows, *, noise: Noise) -> AnswerSource:
        """Find out how the question can be answered many times."""
        first, second = (_find_tiled_calls(question, side, noise) for side in (rows, neighbour))
        if first is not None and second is not None:
            shapes = [[(call.name, call.exact.shape) for call in calls] for calls in (first, second)]
            if shapes[0] == shapes[1]:
                signature = []
                for before, after in zip(first, second, strict=True):
                    a, b = before.exact.ravel(), after.exact.ravel()
                    moved = np.flatnonzero(a != b)
                    columns = ((b - a)[moved], (a == 0)[moved], (b == 0)[moved])
                    moves = zip(*(column.tolist() for column in columns), strict=True)
                    signature.append((before.name, tuple(sorted(moves))))
                return cls(
                    lambda trials: _draw_tiled(first, second, trials, noise),
                    at_once=True,
                    signature=tuple(signature),
                )
        if not question.plan.draws and not any(shuffles(question, side) for side in (rows, neighbour)):
            constants = [next(_answer(question, side, 1, noise)) for side in (rows, neighbour)]
            return cls(lambda trials: Outcomes.of(*([side] * trials for side in constants)), at_once=True)
        mixture = cache(lambda: _gather_mixture(question, rows, neighbour, noise))
        # Where arithmetic is idealised, outcomes are rounded: no proof covers their last bits.
        mechanisms = [mechanism for mechanism in question.plan.draws.values() if mechanism.idealised]
        scales = [mechanism.sensitivity / mechanism.epsilon for mechanism in mechanisms if mechanism.epsilon]
        resolution = min(scales) * 2.0**-10 if scales else None

        def draw(trials: int) -> Outcomes:
            sides = [_stack(_answer(question, side, trials, noise)) for side in (rows, neighbour)]
            return replace(Outcomes.of(*sides, resolution=resolution), mixture=mixture())

        return cls(draw, at_once=False)


def _answer(question: Question, rows: Rows, trials: int, noise: Noise) -> Iterator[FloatArray]:
    """Yield flat payloads; an answer that fails is an outcome too, one without numbers."""
    for _ in range(trials):
        try:
            yield flat(answer_rows(question, rows, noise=noise))
        except Exception:  # its message may show a row
            yield np.zeros(0)


def _gather_mixture(question: Question, rows: Rows, neighbour: Rows, noise: Noise) -> Mixture | None:
    """Gather the exact rows of a first draw of Gaussian noise on rows, if they are a secret choice."""
    if not shuffles(question, rows):
        return None
    try:
        tape, payload = record_draws(question, rows, noise)
        # The first draw that adds Gaussian noise to a few whole rows and releases them
        on_rows = [
            drawn.call.name
            for drawn in tape
            if isinstance(drawn.call.mechanism, Gaussian)
            and drawn.call.exact.ndim == 2
            and 0 < len(drawn.call.exact) <= MOST_SAMPLED
            and drawn.call.exact.size > 0
            and isinstance(payload.get(drawn.call.name), np.ndarray)
            and payload[drawn.call.name].shape == drawn.call.exact.shape
        ]
        if not on_rows:
            return None
        name = on_rows[0]
        sides = []
        for side in (rows, neighbour):
            centres = []
            for _ in range(GATHERED_ANSWERS):
                answer, _payload = record_draws(question, side, noise)
                centres.append(next(drawn.call.exact for drawn in answer if drawn.call.name == name))
            sides.append(np.concatenate(centres))
    except Exception:  # an answer that fails is an outcome like others
        return None
    mechanism = question.plan.find(name, Gaussian)
    length, width = next(drawn.call.exact.shape for drawn in tape if drawn.call.name == name)
    start = sum(flat(payload[other]).size for other in payload if other < name)
    # At most so many centres, evenly taken
    first, second = (mechanism.grid.values(side[:: max(1, len(side) // MOST_CENTRES)]) for side in sides)
    return Mixture(
        at=slice(start, start + length * width),
        width=width,
        scale=mechanism.scale,
        first=first,
        second=second,
    )


def _find_tiled_calls(question: Question, rows: Rows, noise: Noise) -> list[Call] | None:
    """Return the mechanisms' calls if many answers can be drawn at once, otherwise None."""
    try:
        calls, _ = witnessed(question, rows, noise)
        if not calls or not all(isinstance(call.mechanism, TILED_MECHANISMS) for call in calls):
            return None
        for _ in range(2):
            outputs = draw_outputs(calls, noise)
            source = WatchedNoise(noise)
            again, payload = play_back(question, rows, outputs, source)
            # An input that depends on outputs, or a secret order or sample
            if source.used or any(not same(a.exact, b.exact) for a, b in zip(calls, again, strict=True)):
                return None
            # A payload that is not exactly the outputs
            if payload.keys() != outputs.keys() or any(
                not same(payload[name], outputs[name]) for name in outputs
            ):
                return None
    except Exception:  # an answer that fails is an outcome like others
        return None
    return sorted(calls, key=lambda call: call.name)


def _draw_tiled(first: list[Call], second: list[Call], trials: int, noise: Noise) -> Outcomes:
    """Draw many copies at once of the numbers that move, and of a few that do not.

    The others are noise that is independent of the data and of all the rest.
    """
    sides: tuple[list[FloatArray], list[FloatArray]] = ([], [])
    exact: tuple[list[FloatArray], list[FloatArray]] = ([], [])
    for before, after in zip(first, second, strict=True):
        moved = np.abs(after.exact.ravel().astype(np.float64) - before.exact.ravel().astype(np.float64))
        most = min(MOST_NUMBERS, int(np.count_nonzero(moved)) + STILL_NUMBERS)
        chosen = np.sort(np.argsort(-moved, kind="stable")[:most])
        for side, centre, call in zip(sides, exact, (before, after), strict=True):
            values, mechanism = call.exact.ravel()[chosen], call.mechanism
            drawn = mechanism.draw(np.tile(values, (trials, 1)), noise)
            side.append(np.asarray(drawn, dtype=np.float64))
            in_units = mechanism.grid.values(values) if isinstance(mechanism, Lattice) else values
            centre.append(np.asarray(in_units, dtype=np.float64))
    return Outcomes(
        np.hstack(sides[0]), np.hstack(sides[1]), (np.concatenate(exact[0]), np.concatenate(exact[1]))
    )


def _stack(outcomes: Iterable[FloatArray]) -> FloatArray:
    rows = list(outcomes)
    width = max(len(row) for row in rows)
    return np.stack([row if len(row) == width else pad(row[None], width)[0] for row in rows])
