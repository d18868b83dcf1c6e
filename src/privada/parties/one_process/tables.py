"""Which fits of a process had the same table, and which had a part of it that privada drew.

Rows are recognised by their content, but that is not enough to state what they have lost. In a file that is
sorted by a column, replacing one row shifts all rows between its two places, so that two folds of it may
differ in many rows: no sum of the losses of their fits bounds what the one row loses. Whether rows were
divided in such a way cannot be read off the arrays. So a loss over several fits is stated only where they are
known to be

* of one *table*: the same rows, each as often, in any order;
* of *parts* of one table that were drawn secretly, by a label for each row or person that looks at no row
  (`PrivateKFold`, `PrivateSearchCV`), or of parts of such parts;
* of tables that the caller told apart: by other names, or as the parties of one fit.

The division stays secret, so what is stated covers whatever label a row may have: `possible_histories`. The
proof is in ``docs/explanation/accounting.md``, "Rows that are used again".
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from privada.parties.one_process.fingerprints import Fingerprints
from privada.privacy.relation import Relation

MOST_LABELS = 256  # combinations of labels that are looked at one by one
UNKNOWN = (
    "Expected every fit of this process to be on one table, or on parts that PrivateKFold drew, to state "
    "spent_: which rows were in which fit may depend on other rows, so divide them by PrivateKFold, or name "
    "each table by dataset=Dataset(table=...) if which one a row is in follows from that row alone."
)


@dataclass(frozen=True, eq=False)
class Division:
    """A secret division of a table: every row, or person, has one of so many labels.

    How many have each is random, or fixed by the number of rows: then it means nothing under add/remove.
    """

    labels: int
    has_fixed_sizes: bool = False


@dataclass(frozen=True, eq=False)
class Table:
    """A table that was used, or divided: fingerprints of its units, and of rows if units are persons."""

    noted: tuple[Fingerprints, ...] = field(repr=False)


Labels = tuple[Division, frozenset[int]]


@dataclass(frozen=True)
class Part:
    """Those rows of a table that have one of these labels in each of these divisions; all without any."""

    table: Table
    labels: tuple[Labels, ...] = ()

    def is_drawn_for(self, relation: Relation) -> bool:
        """Whether neighbours under this relation are divided alike."""
        return relation is not Relation.ADD_REMOVE or not any(
            division.has_fixed_sizes for division, _ in self.labels
        )


class Register:
    """The tables and parts that a process knows, by what they hold."""

    def __init__(self) -> None:
        self._parts: dict[bytes, list[Part]] = {}
        self._apart: set[frozenset[Table]] = set()

    def find(
        self, keys: Sequence[bytes], noted: Sequence[Fingerprints], relation: Relation | None = None
    ) -> tuple[Part, ...]:
        """The table, or the part of one under this relation, that has these keys; a new table if none does.

        Where it may be several, as an empty part may be, it counts as the whole of each table.
        """
        parts = dict.fromkeys(
            part
            for key in keys
            for part in self._parts.get(key, ())
            if relation is None or part.is_drawn_for(relation)
        )
        if not parts:
            parts = {Part(Table(tuple(noted))): None}
        if len(parts) > 1:
            parts = dict.fromkeys(Part(part.table) for part in parts)
        for part, key in itertools.product(parts, keys):
            self._add(key, part)
        return tuple(parts)

    def divide(
        self, parts: Sequence[Part], division: Division, keys: dict[frozenset[int], list[bytes]]
    ) -> None:
        """Note the parts of a table, or of a part: their labels, and the keys of what they hold."""
        for part, (labels, own) in itertools.product(parts, keys.items()):
            for key in own:
                self._add(key, Part(part.table, (*part.labels, (division, labels))))

    def tell_apart(self, tables: Sequence[Table]) -> None:
        """Note that these are different tables, as those of the parties of one fit are."""
        pairs = itertools.combinations(dict.fromkeys(tables), 2)
        self._apart.update(frozenset(pair) for pair in pairs)

    def are_apart(self, tables: Sequence[Table], others: Sequence[Table]) -> bool:
        """Whether all of these are known to be other tables than those."""
        return all(frozenset(pair) in self._apart for pair in itertools.product(tables, others))

    def _add(self, key: bytes, part: Part) -> None:
        parts = self._parts.setdefault(key, [])
        if part not in parts:
            parts.append(part)


def key_of(rows: Fingerprints, people: Fingerprints | None = None) -> bytes:
    """Names the content of a table: each row as often as it has it, with its person, in any order."""
    columns = rows[:, None] if people is None else np.column_stack([people, rows])
    ordered = columns[np.lexsort(columns.T)]
    return hashlib.blake2b(np.ascontiguousarray(ordered).tobytes(), digest_size=32).digest()


def keys_of_parts(
    rows: Sequence[Fingerprints], people: Fingerprints | None, labels: npt.NDArray[np.integer], count: int
) -> dict[frozenset[int], list[bytes]]:
    """The keys of the rows of each label and of those of all others, by their labels."""
    every = frozenset(range(count))
    keys = {}
    for label in range(count):
        for chosen, has in ((frozenset({label}), labels == label), (every - {label}, labels != label)):
            keys[chosen] = [key_of(view[has], None if people is None else people[has]) for view in rows]
    return keys


class PartUse(Protocol):
    """A use of a part of a table."""

    @property
    def labels(self) -> tuple[Labels, ...]:
        """Which labels the rows of the part have."""


U = TypeVar("U", bound=PartUse)


def possible_histories(history: Sequence[U]) -> Iterator[tuple[U, ...]]:
    """The uses that a row had, whatever its labels are: one history for each combination of labels.

    Divisions beyond `MOST_LABELS` combinations count as if every row was in every part, which is more.
    """
    divisions: list[Division] = []
    for division in dict.fromkeys(division for use in history for division, _ in use.labels):
        if math.prod(each.labels for each in [*divisions, division]) <= MOST_LABELS:
            divisions.append(division)
    histories: dict[tuple[int, ...], tuple[U, ...]] = {}
    for combination in itertools.product(*(range(division.labels) for division in divisions)):
        label_in = dict(zip(divisions, combination, strict=True))
        uses = tuple(
            use
            for use in history
            if all(
                division not in label_in or label_in[division] in labels for division, labels in use.labels
            )
        )
        histories[tuple(map(id, uses))] = uses
    yield from histories.values()


__all__ = [
    "UNKNOWN",
    "Division",
    "Labels",
    "Part",
    "Register",
    "Table",
    "key_of",
    "keys_of_parts",
    "possible_histories",
]
