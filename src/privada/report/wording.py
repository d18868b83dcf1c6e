"""What a question asks for, and what its guarantee means for one person, in words that need no formula.

Everything here follows from public parameters; no code of the question is run on rows.
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
    """Compute how often, at most, somebody guesses right about one unit who started from even odds.

    The best test between two neighbouring data sets that are equally likely succeeds with probability
    (1 + V) / 2, V their total variation distance; and V is at most the guarantee's δ at ε = 0.

    >>> from privada.privacy import PureDP
    >>> round(best_guess(PureDP(epsilon=1, relation="add/remove")), 4)  # e / (1 + e)
    0.7311
    """
    return 0.5 + min(1.0, max(0.0, guarantee.delta_at(0.0))) / 2


def in_a_hundred(share: float) -> str:
    """Round a frequency up, and write it as "62 of 100" or "50.3 of 100".

    >>> in_a_hundred(0.7311), in_a_hundred(0.5021), in_a_hundred(0.99999)
    ('74 of 100', '50.3 of 100', '100 of 100')
    """
    digits = 0 if share >= 0.51 else 1
    up = math.ceil(share * 100 * 10**digits - 1e-9) / 10**digits
    return f"{min(up, 100.0):.{digits}f} of 100"


def say_risk(guarantee: Guarantee) -> str:
    """Say what the answer could tell about one row or person, at most."""
    unit = guarantee.unit.name
    unknown = {
        Relation.ADD_REMOVE: f"whether one {unit} is in it",
        Relation.REPLACE_ONE: f"which of two possible contents one {unit} has",
    }.get(guarantee.relation, f"which of two possible values one attribute of one {unit} has")
    return (
        f"Suppose somebody knows everything about the data except {unknown}, and would be right "
        f"in 50 of 100 cases by tossing a coin. With this answer they are right in at most "
        f"{in_a_hundred(best_guess(guarantee))} cases."
    )


def parts_of(question: Question) -> tuple[Part, ...]:
    """Describe each array that comes back: its shape, and the interval that each number would have.

    A question for raw rows, which a curator gets encrypted, has none: nothing of it is noisy.
    """
    if question.discloses:
        return ()
    draws = question.plan.draws
    shapes = question.answer_shapes() or dict.fromkeys(draws, ())
    parts = []
    for name, shape in shapes.items():
        draw = draws.get(name)
        half = math.nan if draw is None else draw.half_width(CONFIDENCE)
        parts.append(
            Part(
                name=name,
                shape=" × ".join(map(str, shape)) or "one value",
                numbers=math.prod(shape),
                noise="" if draw is None else draw.family,
                within=f"± {half:.3g}" if math.isfinite(half) else "no interval",
            )
        )
    return tuple(parts)


def say_asked(question: Question) -> str:
    """Say in one sentence what is asked, and how many numbers come back."""
    from privada.methods.method import methods

    if question.discloses:
        return RAW_ROWS
    method = methods().get(question.method)
    title = question.method if method is None else method.title
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
