"""What a ledger says, as tables, from its export alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from privada.privacy.accounting.filters import Filter
from privada.privacy.guarantee import Guarantee
from privada.report.tables import Table

_LINE = ("data set", "line", "time (UTC)", "what", "guarantee", "of the budget", "spent by then", "digest")
_DIGITS = 8  # of a digest, enough to tell lines apart by eye
_BUDGET = ("data set", "budget", "filter", "lines", "spent", "left")


def budgets_table(export: Mapping[str, Any], *, title: str = "Budgets") -> Table:
    """One row for each data set: budget, what was spent, what is left."""
    rows = tuple(_budget_row(name, account) for name, account in export["datasets"].items())
    return Table(title=title, columns=_BUDGET, rows=rows)


def _budget_row(name: str, account: Mapping[str, Any]) -> tuple[str, ...]:
    keeps = keeper(account)
    spent = keeps.guarantee(account["spent"])
    return (
        name,
        str(Guarantee.from_dict(account["budget"])),
        str(account["filter"]),
        str(account["lines"][-1]["index"] + 1 if account["lines"] else 0),
        "nothing" if spent is None else f"{'' if keeps.running else 'at most '}{spent}",
        percent(1 - account["spent"] / account["capacity"]),
    )


def keeper(account: Mapping[str, Any]) -> Filter:
    """The filter of an exported account."""
    order = {} if account["order"] is None else {"order": account["order"]}
    return Filter.from_dict({"filter": account["filter"], "budget": account["budget"]} | order)


def lines_table(
    export: Mapping[str, Any], *, title: str = "Ledger lines", last: int | None = None, after: int = -1
) -> Table:
    """One row for each line above index ``after``, or only the ``last`` of them."""
    rows = tuple(row for name in export["datasets"] for row in _line_rows(export, name, after=after))
    kept = rows if last is None else rows[-last:]
    note = f"{len(rows) - len(kept)} earlier lines are not shown." if len(kept) < len(rows) else ""
    table = Table(title=title, columns=_LINE, rows=kept, note=note)
    return table.without(_LINE[0]) if len(export["datasets"]) == 1 else table


def _line_rows(export: Mapping[str, Any], name: str, *, after: int) -> Iterator[tuple[str, ...]]:
    account = export["datasets"][name]
    for line in account["lines"]:
        if line["index"] > after:
            yield (
                name,
                str(line["index"]),
                str(line["time"])[:19].replace("T", " "),
                _what(line),
                _guarantee(line, account),
                percent(line["cost"] / account["capacity"]),
                percent(line["spent"] / account["capacity"]),
                str(line["hash"])[:_DIGITS],
            )


def _what(line: Mapping[str, Any]) -> str:
    times = f", {line['times']} times" if (line["times"] or 1) > 1 else ""
    return f"{line['purpose'] or line['text'] or line['kind']}{times}"


def _guarantee(line: Mapping[str, Any], account: Mapping[str, Any]) -> str:
    if line["kind"] == "budget":
        return f"opens {Guarantee.from_dict(account['budget'])}"
    if line["guarantee"] is None:
        return "not differentially private"
    return str(Guarantee.from_dict(line["guarantee"]))


def percent(share: float) -> str:
    """A share as a percentage of three digits.

    >>> percent(0.25), percent(1 / 3)
    ('25%', '33.3%')
    """
    return f"{100 * share:.3g}%"


__all__ = ["budgets_table", "keeper", "lines_table", "percent"]
