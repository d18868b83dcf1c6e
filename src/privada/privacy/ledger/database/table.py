"""The few queries that a ledger asks; all find their rows by index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, bindparam, func, insert, or_, select

from privada.exceptions import BudgetError, TamperError
from privada.privacy.ledger.database.schema import datasets, lines
from privada.privacy.ledger.database.store import Store
from privada.privacy.ledger.lines import ALLOWANCE, CHARGE, COPY, REFUSAL, RESTORE, Line

_PAGE = 1000

# made once: building a statement takes longer than running it
_OF = select(lines).where(lines.c.dataset == bindparam("dataset"))
_FIRST = _OF.where(lines.c.position == 0)
_LAST = _OF.order_by(lines.c.position.desc()).limit(1)
_AFTER = _OF.where(lines.c.position > bindparam("after")).order_by(lines.c.position).limit(_PAGE)
_AT = _OF.where(lines.c.position == bindparam("position"))
_ON = _OF.where(lines.c.question == bindparam("question")).order_by(lines.c.position)
_BY = or_(lines.c.learner == bindparam("learner"), lines.c.learner_key == bindparam("key"))
_TOLD = (
    _OF.where(_BY, lines.c.kind.in_((CHARGE, COPY)), lines.c.position > bindparam("after"))
    .order_by(lines.c.position)
    .limit(_PAGE)
)
_RESTORED = _OF.where(  # the lines about no question are few, and there is an index to find them by
    lines.c.question == "", lines.c.kind == RESTORE, lines.c.position > bindparam("after")
).order_by(lines.c.position)
_GRANTS = _OF.where(_BY, lines.c.kind == ALLOWANCE).order_by(lines.c.position)
_REFUSED = (
    select(func.count())
    .select_from(lines)
    .where(lines.c.dataset == bindparam("dataset"), _BY)
    .where(lines.c.kind == REFUSAL, lines.c.time >= bindparam("since"))
)
_LOCK = select(datasets.c.dataset).where(datasets.c.dataset == bindparam("dataset")).with_for_update()
_BEGIN, _APPEND = insert(datasets), insert(lines)


def absent(dataset: str, known: Sequence[str] = ()) -> BudgetError:
    """The error of a data set that the ledger does not know."""
    others = f" (it knows {', '.join(map(repr, known[:5]))})" if known else ""
    return BudgetError(
        f"The budget of {dataset!r} is absent: the ledger does not know this data set{others}. "
        "If it is a new one, open its budget: privada owner open-budget, or Ledger.open_budget. "
        "Nothing was charged."
    )


def names(connection: Connection) -> list[str]:
    """The data sets, in alphabetical order."""
    return sorted(connection.scalars(select(datasets.c.dataset)))


def names_in_lines(connection: Connection) -> list[str]:
    """The data sets that lines speak of: the same, unless someone tampered."""
    return sorted(connection.scalars(select(lines.c.dataset).distinct()))


def first(connection: Connection, dataset: str) -> Line | None:
    """Line 0, None for an unknown data set."""
    return _one(connection, _FIRST, dataset)


def last(connection: Connection, dataset: str) -> Line:
    """The last line of a known data set."""
    line = _one(connection, _LAST, dataset)
    if line is None:
        raise TamperError(f"The lines of {dataset!r} are gone.")
    return line


def locked_last(connection: Connection, dataset: str) -> Line:
    """Keep other writers of the data set out, then read its last line."""
    if connection.scalar(_LOCK, {"dataset": dataset}) is None:
        raise absent(dataset)
    return last(connection, dataset)


def at(connection: Connection, dataset: str, position: int) -> Line | None:
    """One line by its number."""
    return _one(connection, _AT, dataset, position=position)


def on_question(connection: Connection, dataset: str, question: str) -> list[Line]:
    """All lines of one question, in order."""
    rows = connection.execute(_ON, {"dataset": dataset, "question": question}).mappings()
    return [Line.from_row(row) for row in rows]


def told(connection: Connection, dataset: str, *, learner: str, key: str, after: int = -1) -> Iterator[Line]:
    """The lines after one by which a learner, of this name or this key, got an answer."""
    found: dict[str, Any] = {"dataset": dataset, "learner": learner, "key": key}
    while True:
        rows = connection.execute(_TOLD, found | {"after": after}).mappings().all()
        yield from map(Line.from_row, rows)
        if len(rows) < _PAGE:
            return
        after = rows[-1]["position"]


def restored(connection: Connection, dataset: str, *, after: int) -> list[Line]:
    """The lines after one by which a copy was continued and what it lacked was counted."""
    rows = connection.execute(_RESTORED, {"dataset": dataset, "after": after}).mappings()
    return [Line.from_row(row) for row in rows]


def grants(connection: Connection, dataset: str, *, learner: str, key: str) -> list[Line]:
    """The lines that changed the allowance of a learner of this name or this key, in order."""
    found = {"dataset": dataset, "learner": learner, "key": key}
    return [Line.from_row(row) for row in connection.execute(_GRANTS, found).mappings()]


def refusals(connection: Connection, dataset: str, *, learner: str, key: str, since: str) -> int:
    """How many refusals of a learner have a line, since a moment."""
    found = {"dataset": dataset, "learner": learner, "key": key, "since": since}
    return int(connection.scalar(_REFUSED, found) or 0)


def begin(connection: Connection, line: Line) -> None:
    """Write line 0 of a new data set."""
    connection.execute(_BEGIN, {"dataset": line.dataset})
    append(connection, line)


def append(connection: Connection, line: Line) -> None:
    """Write one more line."""
    connection.execute(_APPEND, line.to_row())


def pages(store: Store, dataset: str) -> Iterator[Sequence[RowMapping]]:
    """All rows of a data set by pages, so that no transaction stays open while a caller thinks."""
    after = -1
    while True:
        with store.reading() as connection:
            rows = connection.execute(_AFTER, {"dataset": dataset, "after": after}).mappings().all()
        if rows:
            yield rows
        if len(rows) < _PAGE:
            return
        after = rows[-1]["position"]


def every(store: Store, dataset: str) -> Iterator[Line]:
    """All lines of a data set in order."""
    for rows in pages(store, dataset):
        yield from map(Line.from_row, rows)


def _one(connection: Connection, query: Select[Any], dataset: str, **more: Any) -> Line | None:
    row = connection.execute(query, {"dataset": dataset, **more}).mappings().first()
    return None if row is None else Line.from_row(row)


__all__ = [
    "absent",
    "append",
    "at",
    "begin",
    "every",
    "first",
    "last",
    "locked_last",
    "names",
    "names_in_lines",
    "on_question",
    "pages",
    "refusals",
    "restored",
    "told",
]
