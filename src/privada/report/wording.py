"""What a question asks for, and what its guarantee means for one person, in words that need no formula.

All of it follows from public parameters; nothing is tried out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from privada.privacy.guarantee import Guarantee
from privada.privacy.relation import Relation
from privada.privacy.release import Question

CONFIDENCE = 0.95
RAW_ROWS = "This question asks for raw rows, encrypted for a curator. They are not differentially private."


@dataclass(frozen=True, kw_only=True)
class Part:
    """One array of an answer: its name, how many numbers it has, and how far noise moves each."""

    name: str
    shape: str
    numbers: int
    noise: str
    within: str


def best_guess(guarantee: Guarantee) -> float:
    """How often, at most, somebody is right who guesses about one unit from the answer, from even odds.

    The best test between two neighbouring data sets that are equally likely succeeds with probability
    (1 + V) / 2, V their total variation distance; and V is at most the guarantee's δ at ε = 0.

    >>> from privada.privacy import PureDP
    >>> round(best_guess(PureDP(epsilon=1, relation="add/remove")), 4)  # e / (1 + e)
    0.7311
    """
    return 0.5 + min(1.0, max(0.0, guarantee.delta_at(0.0))) / 2


def in_a_hundred(share: float) -> str:
    """A frequency that is rounded up, as "62 of 100" or "50.3 of 100".

    >>> in_a_hundred(0.7311), in_a_hundred(0.5021), in_a_hundred(0.99999)
    ('74 of 100', '50.3 of 100', '100 of 100')
    """
    digits = 0 if share >= 0.51 else 1
    up = math.ceil(share * 100 * 10**digits - 1e-9) / 10**digits
    return f"{min(up, 100.0):.{digits}f} of 100"


def say_risk(guarantee: Guarantee) -> str:
    """What the answer could tell about one row or person, at most."""
    return (
        f"Suppose somebody knows everything about the data except {_unknown(guarantee)}, and would be right "
        f"in 50 of 100 cases by tossing a coin. With this answer they are right in at most "
        f"{in_a_hundred(best_guess(guarantee))} cases."
    )


def _unknown(guarantee: Guarantee) -> str:
    what = "row" if guarantee.unit.name == "row" else guarantee.unit.name
    if guarantee.relation is Relation.ADD_REMOVE:
        return f"whether one {what} is in it"
    if guarantee.relation is Relation.REPLACE_ONE:
        return f"which of two possible contents one {what} has"
    return f"which of two possible values one attribute of one {what} has"


def parts_of(question: Question) -> tuple[Part, ...]:
    """What comes back: each array with its shape and the interval that each number would carry.

    A question for rows that a curator gets encrypted has none: nothing of it is noisy.
    """
    if question.discloses:
        return ()
    draws = question.plan.draws
    shapes = question.answer_shapes() or dict.fromkeys(draws, ())
    made = []
    for name, shape in shapes.items():
        draw = draws.get(name)
        half = math.nan if draw is None else draw.half_width(CONFIDENCE)
        made.append(
            Part(
                name=name,
                shape=" × ".join(map(str, shape)) or "one value",
                numbers=math.prod(shape),
                noise="" if draw is None else draw.family,
                within=f"± {half:.3g}" if math.isfinite(half) else "no interval",
            )
        )
    return tuple(made)


def say_asked(question: Question) -> str:
    """What is asked, and how many numbers come back, in one sentence."""
    from privada.methods.registry import methods

    if question.discloses:
        return RAW_ROWS
    room = methods().get(question.method)
    title = question.method if room is None else room.title
    turn = f" ({question.turn})" if question.turn else ""
    count = sum(part.numbers for part in parts_of(question))
    numbers = "number" if count == 1 else "numbers"
    return f"This question asks for {title[0].lower()}{title[1:]}{turn}: {count} noisy {numbers}, no row."


__all__ = [
    "CONFIDENCE",
    "RAW_ROWS",
    "Part",
    "best_guess",
    "in_a_hundred",
    "parts_of",
    "say_asked",
    "say_risk",
]
