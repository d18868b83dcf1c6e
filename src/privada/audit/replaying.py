"""Follow every exact value into its mechanism, on two neighbouring data sets.

A privacy proof says: whatever was released so far, the next mechanism is given
values that neighbours move by no more than its sensitivity, and nothing is
released but the outputs of mechanisms. `replay` checks exactly that. It answers
the question once, fixes the outputs of the mechanisms, and answers again on both data
sets with these outputs (so adaptive answers are compared after the same past).
Then

a. both make the same calls: names, order, shapes and types;
b. every value moved by no more than its mechanism's sensitivity, in its norm;
c. all moves together cost no more than the plan's event and epsilon;
d. the plan keeps the guarantee that the question names;
e. both payloads are equal to the last bit, as the outputs are; neither answer fails.

**What is proved.** A violation is a counterexample to the question's proof on
this pair. No violation proves nothing about other pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from privada.audit.transcript import Call, WatchedNoise, coupled, draw_outputs, play_back, same, witnessed
from privada.exceptions import InputError, RelationError
from privada.parties.rows import Rows
from privada.privacy.accounting.accountant import keeps
from privada.privacy.guarantee import Guarantee
from privada.privacy.mechanism import (
    Exponential,
    Gaussian,
    KNorm,
    KNormCylinder,
    Laplace,
    Mechanism,
    Plan,
    RandomisedResponse,
)
from privada.privacy.release import Question

TOLERANCE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Check:
    """One bound of the proof: what the pair used of what is allowed."""

    name: str
    used: float
    allowed: float

    @property
    def share(self) -> float:
        """Used over allowed; 1 is a tight proof."""
        return self.used / self.allowed if self.allowed else (math.inf if self.used else 0.0)

    @property
    def passed(self) -> bool:
        """Whether the bound holds, up to a relative rounding of 1e-9."""
        return self.used <= self.allowed * (1 + TOLERANCE)

    def __str__(self) -> str:
        return f"{self.name}: {self.used:.6g} of {self.allowed:.6g} allowed"


@dataclass(frozen=True, kw_only=True)
class ReplayResult:
    """What a replay found; it names draws and says how far they moved, never a row.

    Attributes
    ----------
    claimed : Guarantee
    draws, joint : tuple of Check
        Bounds of single draws, and of all together.
    faults : tuple of str
        Calls, shapes or payloads that differ, and a plan that does not keep its guarantee.
    pair : str
        Name of the pair of data sets, if it has one.
    """

    claimed: Guarantee
    draws: tuple[Check, ...] = ()
    joint: tuple[Check, ...] = ()
    faults: tuple[str, ...] = ()
    pair: str = field(default="")

    @property
    def violations(self) -> tuple[str, ...]:
        """Every bound that does not hold, and every fault, in words."""
        return tuple(str(check) for check in (*self.draws, *self.joint) if not check.passed) + self.faults

    @property
    def passed(self) -> bool:
        """Whether nothing was violated."""
        return not self.violations

    @property
    def share(self) -> float:
        """The largest share of the joint bounds that this pair used: how adversarial it is."""
        return max((check.share for check in self.joint), default=0.0)

    def __str__(self) -> str:
        on = f" on '{self.pair}'" if self.pair else ""
        if self.passed:
            return f"passed{on}: {self.share:.0%} of the proof's bound used [{self.claimed}]"
        return f"FAILED{on} [{self.claimed}]: {'; '.join(self.violations)}"

    def to_dict(self) -> dict[str, Any]:
        """Plain form for reports."""
        return {
            "passed": self.passed,
            "pair": self.pair,
            "share": self.share,
            "claimed": self.claimed.to_dict(),
            "violations": list(self.violations),
        }


def replay(question: Question, rows: Rows, neighbour: Rows, *, seed: int = 0, pair: str = "") -> ReplayResult:
    """Replay a question on two neighbouring sets of generated rows.

    Parameters
    ----------
    question : Question
    rows, neighbour : Rows
        Neighbours under the question's relation and unit.
    seed : int
        Of the outputs that are fixed; those of an odd seed are drawn for ``neighbour``, of an even one for
        ``rows``. What a draw reveals may depend on earlier outputs, so try several.
    pair : str
        A name for messages.
    """
    try:
        side = neighbour if seed % 2 else rows
        said = draw_outputs(witnessed(question, side, coupled(seed))[0], coupled(seed))
        before = play_back(question, rows, said, coupled(seed))
        after = play_back(question, neighbour, said, coupled(seed))
    except Exception as error:  # whether an answer fails must not depend on the rows; nor is a row shown
        fault = f"the answer fails on some rows ({type(error).__name__})"
        return ReplayResult(claimed=question.guarantee, faults=(fault,), pair=pair)
    return _compared(question, before, after, pair)


def replay_chain(
    question: Question, chain: Sequence[Rows], *, seed: int = 0, pair: str = ""
) -> list[ReplayResult]:
    """Replay a question on data sets of which each is a neighbour of the next; one result for each step.

    A bound that only breaks once there are so many rows of a kind shows at one step of a growing crowd. All
    data sets are answered with the same outputs, so a chain costs one answer for each, not three.

    Parameters
    ----------
    question : Question
    chain : sequence of Rows
    seed : int
        Of the outputs that are fixed; they are drawn for the data set in the middle.
    pair : str
        A name for messages, to which the number of the step is added.
    """
    try:
        said = draw_outputs(witnessed(question, chain[len(chain) // 2], coupled(seed))[0], coupled(seed))
        plays = [play_back(question, rows, said, coupled(seed)) for rows in chain]
    except Exception as error:  # as in a replay
        fault = f"the answer fails on some rows ({type(error).__name__})"
        return [ReplayResult(claimed=question.guarantee, faults=(fault,), pair=pair)]
    steps = enumerate(pairwise(plays), start=1)
    return [_compared(question, before, after, f"{pair}, step {number}") for number, (before, after) in steps]


def _compared(
    question: Question,
    before: tuple[list[Call], dict[str, Any]],
    after: tuple[list[Call], dict[str, Any]],
    pair: str,
) -> ReplayResult:
    """Check every step of the proof on two answers with the same outputs: their calls and their payloads."""
    calls = before[0], after[0]
    comparable = [(a, b) for a, b in zip(*calls, strict=False) if _form(a) == _form(b)]
    return ReplayResult(
        claimed=question.guarantee,
        draws=tuple(_single(a, b) for a, b in comparable),
        joint=tuple(_joint(question.plan, comparable)),
        faults=(*_calls(*calls), *_payloads(before[1], after[1]), *_plan(question)),
        pair=pair,
    )


def repeats(question: Question, rows: Rows) -> Iterator[str]:
    """What changes between two answers on the same rows with the same outputs and the same source of noise.

    Such randomness is neither a mechanism's nor the owner's: its distribution and its secrecy are unknown.
    """
    try:
        said = draw_outputs(witnessed(question, rows, coupled(0))[0], coupled(0))
        plays = [play_back(question, rows, said, coupled(0)) for _ in range(2)]
    except Exception:  # a replay says so
        return
    for name in sorted(plays[0][1].keys() & plays[1][1].keys()):
        if not same(plays[0][1][name], plays[1][1][name]):
            yield f"payload {name!r}: noise that no planned mechanism drew"
    for a, b in zip(plays[0][0], plays[1][0], strict=False):
        if not same(a.exact, b.exact):
            yield f"{a.name}: its exact value has noise that no planned mechanism drew"


def shuffles(question: Question, rows: Rows) -> bool:
    """Whether an answer uses secret randomness beside its mechanisms, such as an order or a sample.

    Replays share that randomness between two data sets. Where common rows stand in other places, one
    order or sample picks other rows, so such pairs are for the black box.
    """
    try:
        said = draw_outputs(witnessed(question, rows, coupled(0))[0], coupled(0))
        source = WatchedNoise(coupled(1))
        play_back(question, rows, said, source)
    except Exception:  # a replay says so
        return False
    return source.used


def _form(call: Call) -> tuple[str, tuple[int, ...], Any]:
    return call.name, call.exact.shape, call.exact.dtype


def _calls(before: list[Call], after: list[Call]) -> Iterator[str]:
    """Differences in names, order, shapes and types."""
    if [call.name for call in before] != [call.name for call in after]:
        yield "the draws differ in number or order"
        return
    for a, b in zip(before, after, strict=True):
        if _form(a) != _form(b):
            yield f"{a.name}: shape or type depends on the rows"


def _payloads(first: dict[str, Any], second: dict[str, Any]) -> Iterator[str]:
    """What is released beside what the mechanisms said."""
    for name in sorted(first.keys() | second.keys()):
        if name not in first or name not in second or not same(first[name], second[name]):
            yield f"payload {name!r}: depends on the rows beside the draws"


def _plan(question: Question) -> Iterator[str]:
    try:
        kept = keeps(question.plan, question.guarantee)
    except RelationError as error:
        yield f"the plan has no price under {question.guarantee.relation}: {error}"
        return
    if not kept:
        yield f"the plan does not keep {question.guarantee}"


def _single(before: Call, after: Call) -> Check:
    moved = move(before.mechanism, before.exact, after.exact)
    return Check(name=before.name, used=moved, allowed=before.mechanism.sensitivity)


def _joint(plan: Plan, pairs: list[tuple[Call, Call]]) -> Iterator[Check]:
    """Bounds on all moves together, in each currency in which the plan has one."""
    from privada.privacy.accounting import accountant, curves

    losses = [(a.mechanism, move(a.mechanism, a.exact, b.exact)) for a, b in pairs]
    gaussian = math.fsum(
        _mu(mechanism, moved) ** 2 for mechanism, moved in losses if isinstance(mechanism, Gaussian)
    )
    pure = [loss(mechanism, moved) for mechanism, moved in losses if not isinstance(mechanism, Gaussian)]
    if plan.epsilon is not None:
        yield Check(name="all draws, epsilon", used=math.fsum(pure), allowed=plan.epsilon)
    if accountant.only_gaussian(plan.event):
        yield Check(name="all draws, μ²", used=gaussian, allowed=accountant.gaussian_mu(plan.event) ** 2)
    laplace = [
        curves.laplace_to_zcdp(loss(mechanism, moved))
        for mechanism, moved in losses
        if isinstance(mechanism, Laplace) and moved
    ]
    yield Check(
        name="all draws, ρ", used=gaussian / 2 + math.fsum(laplace), allowed=accountant.zcdp(plan.event)
    )


def _mu(mechanism: Gaussian, moved: float) -> float:
    return moved / mechanism.sensitivity * mechanism.mu


@singledispatch
def move(mechanism: Mechanism, before: npt.NDArray[Any], after: npt.NDArray[Any]) -> float:  # noqa: ARG001
    """How far a mechanism's input moved, in the norm and units of its sensitivity.

    A mechanism of your own registers its rule: ``@move.register``.
    """
    raise InputError(
        f"The replay auditor does not know {type(mechanism).__name__}; register a rule with move.register."
    )


@move.register
def _(mechanism: Laplace, before: npt.NDArray[Any], after: npt.NDArray[Any]) -> float:
    return float(np.abs(after - before).sum()) * mechanism.grid.step


@move.register
def _(mechanism: Gaussian, before: npt.NDArray[Any], after: npt.NDArray[Any]) -> float:
    return float(np.linalg.norm((after - before).astype(np.float64).ravel())) * mechanism.grid.step


@move.register
def _(mechanism: KNorm, before: npt.NDArray[Any], after: npt.NDArray[Any]) -> float:  # noqa: ARG001
    return float(np.linalg.norm((after - before).astype(np.float64).ravel()))


@move.register
def _(mechanism: KNormCylinder, before: npt.NDArray[Any], after: npt.NDArray[Any]) -> float:
    """Sum over cells of the cylinder's norm, times the radius."""
    moved = (after - before).astype(np.float64)
    sums = np.linalg.norm(moved[:, 1:], axis=1)
    return float(np.maximum(np.abs(moved[:, 0]) * mechanism.sensitivity, sums).sum())


@move.register
def _(mechanism: Exponential, before: npt.NDArray[Any], after: npt.NDArray[Any]) -> float:  # noqa: ARG001
    """The largest move of one score."""
    return float(np.abs(after - before).max(initial=0.0))


@move.register
def _(mechanism: RandomisedResponse, before: npt.NDArray[Any], after: npt.NDArray[Any]) -> float:  # noqa: ARG001
    """The number of rows whose code changed."""
    return float(np.count_nonzero(after != before))


def loss(mechanism: Mechanism, moved: float) -> float:
    """Pure epsilon that a move costs."""
    if isinstance(mechanism, Laplace):
        return moved / mechanism.scale
    if isinstance(mechanism, RandomisedResponse):
        return moved * mechanism.budget
    return math.inf if mechanism.epsilon is None else moved / mechanism.sensitivity * mechanism.epsilon


__all__ = ["Check", "ReplayResult", "keeps", "loss", "move", "repeats", "replay", "replay_chain", "shuffles"]
