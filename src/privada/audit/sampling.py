"""Outcomes to audit: many answers of a question or a function on two data sets.

Answering 20,000 times one by one is slow. If a question's payload is
exactly the outputs of its mechanisms, if their inputs do not depend on
their outputs, and if they treat every number by itself, one call of the same
`Mechanism.draw` on many copies of the exact values gives as many independent
answers. `_independent` checks the first two on the question itself by playing
it with different outputs, and that it uses no secret order or sample; the third is a
property of the `TILED_MECHANISMS`. Everything else is answered one by one.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from privada._arrays import FloatArray
from privada.audit.events import Mixture
from privada.audit.replaying import shuffles
from privada.audit.transcript import (
    Call,
    Drawn,
    WatchedNoise,
    draw_outputs,
    play_back,
    record_draws,
    same,
    witnessed,
)
from privada.exceptions import InputError
from privada.parties.answering import answer_rows
from privada.parties.rows import Rows
from privada.privacy.mechanism import Gaussian, Lattice, Mechanism, RandomisedResponse
from privada.privacy.noise import Noise
from privada.privacy.release import Question

TILED_MECHANISMS = (Lattice, RandomisedResponse)  # noise on each number by itself, independent and alike
LEAST_OUTCOMES = 40
MOST_NUMBERS = 128
GATHERED_ANSWERS = 64  # answers whose exact rows are gathered where a sample is secret
MOST_CENTRES, MOST_SAMPLED = 256, 32
STILL_NUMBERS = 8


@dataclass(frozen=True, eq=False, repr=False)
class Outcomes:
    """Outcomes of D and of D', one per row, and the exact values if they are known."""

    first: FloatArray
    second: FloatArray
    exact: tuple[FloatArray, FloatArray] | None = None
    mixture: Mixture | None = None

    @classmethod
    def of(
        cls,
        first: npt.ArrayLike,
        second: npt.ArrayLike,
        *,
        exact: tuple[FloatArray, FloatArray] | None = None,
        resolution: float | None = None,
    ) -> Outcomes:
        """Outcomes as matrices of one width; what an outcome lacks is NaN."""
        sides = _rounded(_matrix(first), resolution), _rounded(_matrix(second), resolution)
        if len(sides[0]) != len(sides[1]) or len(sides[0]) < LEAST_OUTCOMES:
            raise InputError(f"Expected as many outcomes of both data sets, at least {LEAST_OUTCOMES} each.")
        width = max(side.shape[1] for side in sides)
        known = (
            None if exact is None else (_padded(exact[0][None], width)[0], _padded(exact[1][None], width)[0])
        )
        return cls(_padded(sides[0], width), _padded(sides[1], width), known)

    def halves(self) -> tuple[Outcomes, Outcomes]:
        """Two independent halves."""
        middle = len(self.first) // 2
        early, late = slice(0, middle), slice(middle, 2 * middle)
        return (
            replace(self, first=self.first[early], second=self.second[early]),
            replace(self, first=self.first[late], second=self.second[late]),
        )


def flat(outcome: Any) -> FloatArray:
    """One row of numbers from a number, an array, a text or a mapping of them (by sorted name)."""
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
    sides = [_stacked(flat(mechanism(side)) for _ in range(trials)) for side in (data, neighbour)]
    return Outcomes.of(*sides, exact=exact, resolution=resolution)


def sample_question(
    question: Question, rows: Rows, neighbour: Rows, *, trials: int, noise: Noise
) -> Outcomes:
    """Answer the question ``trials`` times on each set of rows."""
    return AnswerSource.of(question, rows, neighbour, noise=noise).draw(trials)


@dataclass(frozen=True, eq=False, repr=False)
class AnswerSource:
    """Answers of a question on two data sets, as many as are asked for, fresh every time.

    ``at_once`` says whether they are drawn many at once, which is quick; ``signature`` then says by how much
    the numbers of each draw move, and which of them are zero before or after.
    """

    draw: Callable[[int], Outcomes]
    at_once: bool
    signature: Hashable = None

    @classmethod
    def of(cls, question: Question, rows: Rows, neighbour: Rows, *, noise: Noise) -> AnswerSource:
        """Find out how the question can be answered many times."""
        first, second = (_independent(question, side, noise) for side in (rows, neighbour))
        if first is not None and second is not None and _aligned(first, second):
            signature = tuple(map(_signature, first, second))
            return cls(lambda trials: _tiled(first, second, trials, noise), at_once=True, signature=signature)
        if not question.plan.draws and not any(shuffles(question, side) for side in (rows, neighbour)):
            constant = [next(_answers(question, side, 1, noise)) for side in (rows, neighbour)]
            return cls(lambda trials: Outcomes.of(*([side] * trials for side in constant)), at_once=True)
        mixture = cache(lambda: _mixture(question, rows, neighbour, noise))

        def answers(trials: int) -> Outcomes:
            sides = [_stacked(_answers(question, side, trials, noise)) for side in (rows, neighbour)]
            return replace(Outcomes.of(*sides, resolution=_resolution(question)), mixture=mixture())

        return cls(answers, at_once=False)


def _signature(before: Call, after: Call) -> Hashable:
    a, b = before.exact.ravel(), after.exact.ravel()
    at = np.flatnonzero(a != b)
    moves = zip((b - a)[at].tolist(), (a[at] == 0).tolist(), (b[at] == 0).tolist(), strict=True)
    return before.name, tuple(sorted(moves))


def _answers(question: Question, rows: Rows, trials: int, noise: Noise) -> Iterator[FloatArray]:
    """Flat payloads; an answer that fails is an outcome too, one without numbers."""
    for _ in range(trials):
        try:
            yield flat(answer_rows(question, rows, noise=noise))
        except Exception:  # its message may show a row
            yield np.zeros(0)


def _mixture(question: Question, rows: Rows, neighbour: Rows, noise: Noise) -> Mixture | None:
    """The exact rows of a first draw of Gaussian noise on rows, if they are a secret choice."""
    if not shuffles(question, rows):
        return None
    try:
        tape, payload = record_draws(question, rows, noise)
        name = next((each.call.name for each in tape if _on_rows(each, payload)), None)
        if name is None:
            return None
        sides = [
            np.concatenate(
                [_exact_rows(record_draws(question, side, noise)[0], name) for _ in range(GATHERED_ANSWERS)]
            )
            for side in (rows, neighbour)
        ]
    except Exception:  # an answer that fails is an outcome like others
        return None
    mechanism, shape = question.plan.find(name, Gaussian), _exact_rows(tape, name).shape
    start = sum(flat(payload[other]).size for other in payload if other < name)
    first, second = (mechanism.grid.values(_spread_out(side)) for side in sides)
    return Mixture(
        at=slice(start, start + shape[0] * shape[1]),
        width=shape[1],
        scale=mechanism.scale,
        first=first,
        second=second,
    )


def _on_rows(drawn: Drawn, payload: Mapping[str, Any]) -> bool:
    exact = drawn.call.exact
    released = payload.get(drawn.call.name)
    return (
        isinstance(drawn.call.mechanism, Gaussian)
        and exact.ndim == 2
        and exact.size > 0
        and len(exact) <= MOST_SAMPLED
        and isinstance(released, np.ndarray)
        and released.shape == exact.shape
    )


def _exact_rows(tape: list[Drawn], name: str) -> npt.NDArray[Any]:
    return next(drawn.call.exact for drawn in tape if drawn.call.name == name)


def _spread_out(centres: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """At most so many, evenly taken."""
    step = max(1, len(centres) // MOST_CENTRES)
    return centres[::step]


def _resolution(question: Question) -> float | None:
    """Where arithmetic is idealised, outcomes are rounded: no proof covers their last bits."""
    scales = [
        draw.sensitivity / draw.epsilon
        for draw in question.plan.draws.values()
        if draw.idealised and draw.epsilon
    ]
    return min(scales) * 2.0**-10 if scales else None


def _independent(question: Question, rows: Rows, noise: Noise) -> list[Call] | None:
    """The mechanisms' calls, if the payload is what they say and they do not hear each other."""
    try:
        return _heard_nothing(question, rows, noise)
    except Exception:  # an answer that fails is an outcome like others
        return None


def _heard_nothing(question: Question, rows: Rows, noise: Noise) -> list[Call] | None:
    calls, _ = witnessed(question, rows, noise)
    if not calls or not all(isinstance(call.mechanism, TILED_MECHANISMS) for call in calls):
        return None
    for _ in range(2):
        said = draw_outputs(calls, noise)
        source = WatchedNoise(noise)
        again, payload = play_back(question, rows, said, source)
        heard = source.used or any(not same(a.exact, b.exact) for a, b in zip(calls, again, strict=True))
        plain = payload.keys() == said.keys() and all(same(payload[name], said[name]) for name in said)
        if heard or not plain:
            return None
    return sorted(calls, key=lambda call: call.name)


def _aligned(first: list[Call], second: list[Call]) -> bool:
    shapes = [[(call.name, call.exact.shape) for call in calls] for calls in (first, second)]
    return shapes[0] == shapes[1]


def _tiled(first: list[Call], second: list[Call], trials: int, noise: Noise) -> Outcomes:
    """Draw many copies at once of the numbers that move, and of a few that do not.

    The others are noise that is independent of the data and of all the rest.
    """
    sides: tuple[list[FloatArray], list[FloatArray]] = ([], [])
    exact: tuple[list[FloatArray], list[FloatArray]] = ([], [])
    for before, after in zip(first, second, strict=True):
        at = _kept(before.exact.ravel(), after.exact.ravel())
        for side, centre, call in zip(sides, exact, (before, after), strict=True):
            values = call.exact.ravel()[at]
            drawn = call.mechanism.draw(np.tile(values, (trials, 1)), noise)
            side.append(np.asarray(drawn, dtype=np.float64))
            centre.append(_values(call.mechanism, values))
    return Outcomes(
        np.hstack(sides[0]), np.hstack(sides[1]), (np.concatenate(exact[0]), np.concatenate(exact[1]))
    )


def _kept(before: npt.NDArray[Any], after: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    moved = np.abs(after.astype(np.float64) - before.astype(np.float64))
    most = min(MOST_NUMBERS, int(np.count_nonzero(moved)) + STILL_NUMBERS)
    return np.sort(np.argsort(-moved, kind="stable")[:most])


def _values(mechanism: Mechanism, exact: npt.NDArray[Any]) -> FloatArray:
    return mechanism.grid.values(exact) if isinstance(mechanism, Lattice) else exact.astype(np.float64)


def _stacked(outcomes: Iterable[FloatArray]) -> FloatArray:
    rows = list(outcomes)
    width = max(len(row) for row in rows)
    return np.stack([row if len(row) == width else _padded(row[None], width)[0] for row in rows])


def _matrix(outcomes: npt.ArrayLike) -> FloatArray:
    array = np.asarray(outcomes, dtype=np.float64)
    return array.reshape(len(array), int(np.prod(array.shape[1:])))


def _rounded(outcomes: FloatArray, resolution: float | None) -> FloatArray:
    return outcomes if resolution is None else np.round(outcomes / resolution) * resolution


def _padded(outcomes: FloatArray, width: int) -> FloatArray:
    return np.pad(outcomes, ((0, 0), (0, width - outcomes.shape[1])), constant_values=np.nan)


__all__ = ["AnswerSource", "Outcomes", "flat", "sample_function", "sample_question"]
