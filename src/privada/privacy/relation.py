"""Neighbouring relations and the unit that they protect.

A guarantee means nothing until it says which data sets are neighbours. There are three relations
(privacy.md, section 0) and two units: one row, or one person with a public bound on the number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from privada import _check
from privada._text import quoted
from privada.exceptions import RelationError


class Relation(StrEnum):
    """When two data sets count as neighbours.

    >>> print(Relation.ADD_REMOVE)
    add/remove
    >>> Relation.ADD_REMOVE.implies(Relation.REPLACE_ONE), Relation.REPLACE_ONE.implies(Relation.ADD_REMOVE)
    (True, False)
    """

    ADD_REMOVE = "add/remove"
    REPLACE_ONE = "replace-one"
    ATTRIBUTE = "attribute"

    @classmethod
    def parse(cls, text: Relation | str) -> Relation:
        """Read a relation from its name."""
        try:
            return cls(text)
        except ValueError:
            names = ", ".join(relation.value for relation in cls)
            raise RelationError(f"Expected relation to be one of {names}, got {quoted(text)}.") from None

    def steps_to(self, other: Relation) -> int:
        """How many steps of this relation make one step of ``other``.

        Replacing a record is one removal and one addition; changing one attribute is one
        replacement. The converse is not true: a guarantee for data sets of equal size says nothing
        about sizes that differ, and one attribute says nothing about a whole record.
        """
        try:
            return _STEPS[self, other]
        except KeyError:
            raise RelationError(
                f"A guarantee under {self} says nothing about {other}; ask the question under {other}."
            ) from None

    def implies(self, other: Relation) -> bool:
        """Whether a guarantee under this relation can be converted to ``other``."""
        return (self, other) in _STEPS


_STEPS = {
    (Relation.ADD_REMOVE, Relation.ADD_REMOVE): 1,
    (Relation.REPLACE_ONE, Relation.REPLACE_ONE): 1,
    (Relation.ATTRIBUTE, Relation.ATTRIBUTE): 1,
    (Relation.ADD_REMOVE, Relation.REPLACE_ONE): 2,
    (Relation.ADD_REMOVE, Relation.ATTRIBUTE): 2,
    (Relation.REPLACE_ONE, Relation.ATTRIBUTE): 1,
}


@dataclass(frozen=True, kw_only=True)
class Unit:
    """What one step of the relation changes: a row, or a person with at most ``max_rows`` rows.

    >>> print(Unit(), "|", Unit(name="person", max_rows=3))
    row | person (at most 3 rows)
    """

    name: str = "row"
    max_rows: int = 1

    def __post_init__(self) -> None:
        _check.one_of(("row", "person"), unit=self.name)
        _check.count(max_rows=self.max_rows)
        if self.name == "row" and self.max_rows != 1:
            raise RelationError(f"A unit of one row has max_rows=1, got {self.max_rows}.")

    def __str__(self) -> str:
        return "row" if self.name == "row" else f"person (at most {self.max_rows} rows)"

    def to_dict(self) -> dict[str, Any]:
        """Plain form for headers and ledgers."""
        return {"name": self.name, "max_rows": self.max_rows}


ROW = Unit()

__all__ = ["ROW", "Relation", "Unit"]
