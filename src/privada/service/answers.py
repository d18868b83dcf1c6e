"""What a person answers while an owner is set up, as text: checked one by one and as a whole.

The same questions are asked at a terminal and on a page. Nothing here reads a row; `WARNINGS` says why no
answer may be taken from the rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privada._toml import Section
from privada.exceptions import InputError, PrivadaError, StudyError
from privada.parties.columns import KINDS
from privada.parties.schema import Schema
from privada.privacy.guarantee import Guarantee, make_guarantee
from privada.privacy.relation import Relation

LEFT_OUT = "left out"
RELATIONS = {
    "add/remove": "whether somebody is in the data is protected, too",
    "replace-one": "the number of rows is public, and must be declared; the noise is the same or less",
}
WARNINGS = {
    "bounds": "Public. Use what you knew before you looked: 0 to 120 for an age. The least and the "
    "largest value of the rows would give a person away.",
    "values": "Public. List what can occur by the code book, not what does occur: a rare value would give a "
    "person away.",
    "size": "Public. A number that you publish anyway; under replace-one it must be true.",
    "max_rows": "Public. What you decide to use of a person's rows, not the largest number that there is.",
}


def list_kinds() -> dict[str, str]:
    """The kinds of columns and what they hold, in words; or that a column is left out."""
    meanings = {word: kind.meaning for word, (kind, _) in KINDS.items()}
    return meanings | {LEFT_OUT: "not used: no question can ask for it"}


@dataclass(frozen=True, kw_only=True)
class ColumnAnswer:
    """What is declared of one column, as text.

    Its kind is one of `list_kinds`; kinds such as numbers and dates have bounds. The values of categories are
    separated by semicolons or lines, or by commas if there is neither.

    >>> ColumnAnswer(name="age", kind="integer", low="0", high="120").pairs()
    {'name': 'age', 'kind': 'integer', 'low': 0.0, 'high': 120.0}
    >>> ColumnAnswer(name="stage", kind="ordered", values="I; II; III").pairs()["values"]
    ['I', 'II', 'III']
    """

    name: str
    kind: str
    low: str = ""
    high: str = ""
    values: str = ""
    missing: bool = False

    def pairs(self) -> dict[str, Any]:
        """Return the keys of its table in owner.toml."""
        if self.kind not in KINDS:
            kinds = ", ".join(list_kinds())
            raise InputError(f"Column {self.name!r}: expected one of {kinds}, got {self.kind!r}.")
        kind, column_type = KINDS[self.kind]
        pairs: dict[str, Any] = {"name": self.name, "kind": self.kind}
        if kind.asks == "bounds":
            for key, text in (("low", self.low), ("high", self.high)):
                what = f"{key} of column {self.name!r}"
                pairs[key] = read_number(what, text) if column_type.holds_floats else text.strip()
        if kind.asks == "values":
            pairs["values"] = split_values(self.values)
        return pairs | ({"missing": True} if self.missing else {})

    def check(self) -> None:
        """Raise an error that names the column if the answer is no valid column."""
        if self.kind != LEFT_OUT:
            read_schema([self.pairs()])


@dataclass(frozen=True, kw_only=True)
class Answers:
    """All that is declared of an owner's data: protection, budget and columns, as text."""

    columns: tuple[ColumnAnswer, ...]
    relation: str
    epsilon: str
    delta: str = ""
    label: str = ""  # the column to predict
    size: str = ""
    person_id: str = ""
    max_rows: str = ""

    def check(self) -> Guarantee:
        """Return the declared budget, or raise an error that names the first answer that is wrong."""
        for column in self.used:
            column.check()
        if self.label and self.label not in [column.name for column in self.used]:
            raise InputError(f"The column to predict, {self.label!r}, is not among those that are used.")
        schema = read_schema(self.column_tables, label=self.label_table, **self.schema_pairs)
        return make_guarantee(
            epsilon=read_number("epsilon", self.epsilon),
            delta=read_number("delta", self.delta) if self.delta.strip() else None,
            rho=None,
            relation=Relation.parse(self.relation),
            unit=schema.unit,
        )

    @property
    def used(self) -> tuple[ColumnAnswer, ...]:
        """Columns that are not left out; the one that names persons is no feature."""
        person = self.person_id.strip()
        return tuple(column for column in self.columns if column.kind != LEFT_OUT and column.name != person)

    @property
    def column_tables(self) -> list[dict[str, Any]]:
        """The tables ``[[schema.columns]]``."""
        return [column.pairs() for column in self.used if column.name != self.label]

    @property
    def label_table(self) -> dict[str, Any] | None:
        """The table ``[schema.label]``."""
        labels = (column.pairs() for column in self.used if self.label and column.name == self.label)
        return next(labels, None)

    @property
    def schema_pairs(self) -> dict[str, Any]:
        """The keys of ``[schema]``."""
        pairs: dict[str, Any] = {}
        if self.size.strip():
            pairs["size"] = read_whole("size", self.size)
        if self.person_id.strip():
            pairs["person_id"] = self.person_id.strip()
            pairs["max_rows"] = read_whole("max_rows", self.max_rows)
        return pairs


def read_schema(columns: list[dict[str, Any]], *, label: dict[str, Any] | None = None, **rest: Any) -> Schema:
    """Return the schema of plain tables; an error says what is wrong without the name of a file."""
    plain = {"columns": columns, **({} if label is None else {"label": label}), **rest}
    try:
        return Schema.from_section(Section(plain, name="schema", text=""))
    except StudyError as error:
        raise InputError(re.sub(r"^schema, line \d+, \S*?: ", "", str(error))) from None


def split_values(text: str) -> list[str]:
    """Split a list that a person wrote by semicolons or lines, or by commas if there is neither."""
    separator = r"[;\n]" if re.search(r"[;\n]", text.strip()) else ","
    return [part.strip() for part in re.split(separator, text) if part.strip()]


def read_number(what: str, text: str) -> float:
    """Return a finite number; the error names what it is."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"Expected {what} to be a number such as 0.5, got {text.strip()[:40]!r}.")
    return number


def read_whole(what: str, text: str) -> int:
    """Return a whole number; the error names what it is."""
    if not re.fullmatch(r"\s*[0-9]{1,18}\s*", text):
        raise InputError(f"Expected {what} to be a whole number such as 3, got {text.strip()[:40]!r}.")
    return int(text)


def is_right(check: Any) -> str | None:
    """Return what a check says against an answer; None if it is right."""
    try:
        check()
    except PrivadaError as error:
        return str(error)
    return None


def read_form(form: Mapping[str, str], names: list[str]) -> Answers:
    """Return the answers of a page's form, whose fields are ``relation``, ``kind-0``, ``low-0`` and so on."""
    columns = tuple(
        ColumnAnswer(
            name=name,
            kind=form.get(f"kind-{place}", LEFT_OUT),
            low=form.get(f"low-{place}", ""),
            high=form.get(f"high-{place}", ""),
            values=form.get(f"values-{place}", ""),
            missing=form.get(f"missing-{place}", "") == "yes",
        )
        for place, name in enumerate(names)
    )
    keys = ("relation", "epsilon", "delta", "label", "size", "person_id", "max_rows")
    return Answers(columns=columns, **{key: form.get(key, "") for key in keys})


__all__ = [
    "LEFT_OUT", "RELATIONS", "WARNINGS", "Answers", "ColumnAnswer", "is_right", "list_kinds", "read_form",
    "read_number", "read_whole",
]  # fmt: skip
