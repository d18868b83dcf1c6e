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

from privada.audit.transcript import Call, coupled, draw_outputs, play_back, same, witnessed
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
    """One bound of the proof: how much of it the pair used."""

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
    """The result of a replay. It names draws and says how far they moved, never a row.

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
    seed : int, default=0
        Seed of the outputs that are fixed; those of an odd seed are drawn for ``neighbour``, of an even one
        for ``rows``. What a draw reveals may depend on earlier outputs, so try several.
    pair : str, default=""
        A name for messages.
    """
    try:
        side = neighbour if seed % 2 else rows
        outputs = draw_outputs(witnessed(question, side, coupled(seed))[0], coupled(seed))
        before = play_back(question, rows, outputs, coupled(seed))
        after = play_back(question, neighbour, outputs, coupled(seed))
    except Exception as error:
        return _report_failure(question, error, pair)
    return _compare_answers(question, before, after, pair)


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
    seed : int, default=0
        Seed of the outputs that are fixed; they are drawn for the data set in the middle.
    pair : str, default=""
        A name for messages, to which the number of the step is added.
    """
    try:
        calls, _ = witnessed(question, chain[len(chain) // 2], coupled(seed))
        outputs = draw_outputs(calls, coupled(seed))
        plays = [play_back(question, rows, outputs, coupled(seed)) for rows in chain]
    except Exception as error:
        return [_report_failure(question, error, pair)]
    return [
        _compare_answers(question, before, after, f"{pair}, step {number}")
        for number, (before, after) in enumerate(pairwise(plays), start=1)
    ]


def _report_failure(question: Question, error: Exception, pair: str) -> ReplayResult:
    # Whether an answer fails must not depend on the rows. Its message may show a row: only its type is told.
    fault = f"the answer fails on some rows ({type(error).__name__})"
    return ReplayResult(claimed=question.guarantee, faults=(fault,), pair=pair)


def _compare_answers(
    question: Question,
    before: tuple[list[Call], dict[str, Any]],
    after: tuple[list[Call], dict[str, Any]],
    pair: str,
) -> ReplayResult:
    """Check every step of the proof on two answers with the same outputs: their calls and their payloads."""
    faults: list[str] = []
    comparable = []
    # a. names, order, shapes and types of the calls
    same_calls = [call.name for call in before[0]] == [call.name for call in after[0]]
    if not same_calls:
        faults.append("the draws differ in number or order")
    for a, b in zip(before[0], after[0], strict=False):
        if (a.name, a.exact.shape, a.exact.dtype) == (b.name, b.exact.shape, b.exact.dtype):
            comparable.append((a, b))
        elif same_calls:
            faults.append(f"{a.name}: shape or type depends on the rows")
    # e. what is released beside the outputs
    faults += [
        f"payload {name!r}: depends on the rows beside the draws"
        for name in sorted(before[1].keys() | after[1].keys())
        if name not in before[1] or name not in after[1] or not same(before[1][name], after[1][name])
    ]
    # d. the plan
    try:
        if not keeps(question.plan, question.guarantee):
            faults.append(f"the plan does not keep {question.guarantee}")
    except RelationError as error:
        faults.append(f"the plan has no price under {question.guarantee.relation}: {error}")
    moves = [(a.mechanism, move(a.mechanism, a.exact, b.exact)) for a, b in comparable]
    return ReplayResult(
        claimed=question.guarantee,
        draws=tuple(  # b. every value by itself
            Check(name=a.name, used=moved, allowed=mechanism.sensitivity)
            for (a, _), (mechanism, moved) in zip(comparable, moves, strict=True)
        ),
        joint=tuple(_check_total(question.plan, moves)),  # c. all of them together
        faults=tuple(faults),
        pair=pair,
    )


def _check_total(plan: Plan, moves: list[tuple[Mechanism, float]]) -> Iterator[Check]:
    """Bound all moves together, in each currency in which the plan has a bound."""
    from privada.privacy.accounting import accountant, curves

    gaussian = math.fsum(
        (moved / mechanism.sensitivity * mechanism.mu) ** 2
        for mechanism, moved in moves
        if isinstance(mechanism, Gaussian)
    )
    pure = [loss(mechanism, moved) for mechanism, moved in moves if not isinstance(mechanism, Gaussian)]
    if plan.epsilon is not None:
        yield Check(name="all draws, epsilon", used=math.fsum(pure), allowed=plan.epsilon)
    if accountant.only_gaussian(plan.event):
        yield Check(name="all draws, μ²", used=gaussian, allowed=accountant.gaussian_mu(plan.event) ** 2)
    laplace = math.fsum(
        curves.laplace_to_zcdp(loss(mechanism, moved))
        for mechanism, moved in moves
        if isinstance(mechanism, Laplace) and moved
    )
    yield Check(name="all draws, ρ", used=gaussian / 2 + laplace, allowed=accountant.zcdp(plan.event))


def repeats(question: Question, rows: Rows) -> Iterator[str]:
    """Say what changes between two answers on the same rows with the same outputs and source of noise.

    Such randomness is neither a mechanism's nor the owner's: its distribution and its secrecy are unknown.
    """
    try:
        outputs = draw_outputs(witnessed(question, rows, coupled(0))[0], coupled(0))
        first, second = (play_back(question, rows, outputs, coupled(0)) for _ in range(2))
    except Exception:  # a replay reports answers that fail
        return
    for name in sorted(first[1].keys() & second[1].keys()):
        if not same(first[1][name], second[1][name]):
            yield f"payload {name!r}: noise that no planned mechanism drew"
    for a, b in zip(first[0], second[0], strict=False):
        if not same(a.exact, b.exact):
            yield f"{a.name}: its exact value has noise that no planned mechanism drew"


@singledispatch
def move(mechanism: Mechanism, before: npt.NDArray[Any], after: npt.NDArray[Any]) -> float:  # noqa: ARG001
    """Measure how far a mechanism's input moved, in the norm and units of its sensitivity.

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
    """Add up the cylinder's norm over cells, times the radius."""
    moved = (after - before).astype(np.float64)
    sums = np.linalg.norm(moved[:, 1:], axis=1)
    return float(np.maximum(np.abs(moved[:, 0]) * mechanism.sensitivity, sums).sum())


@move.register
def _(mechanism: Exponential, before: npt.NDArray[Any], after: npt.NDArray[Any]) -> float:  # noqa: ARG001
    """Measure the largest move of one score."""
    return float(np.abs(after - before).max(initial=0.0))


@move.register
def _(mechanism: RandomisedResponse, before: npt.NDArray[Any], after: npt.NDArray[Any]) -> float:  # noqa: ARG001
    """Count the rows whose code changed."""
    return float(np.count_nonzero(after != before))


def loss(mechanism: Mechanism, moved: float) -> float:
    """Compute the pure epsilon that a move costs."""
    if isinstance(mechanism, Laplace):
        return moved / mechanism.scale
    if isinstance(mechanism, RandomisedResponse):
        return moved * mechanism.budget
    return math.inf if mechanism.epsilon is None else moved / mechanism.sensitivity * mechanism.epsilon


__all__ = ["Check", "ReplayResult", "keeps", "loss", "move", "repeats", "replay", "replay_chain"]
