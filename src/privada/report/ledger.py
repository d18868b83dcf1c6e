"""What a ledger says, as tables, from its export alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from privada.privacy.accounting.filters import Filter, Vintage, add_up
from privada.privacy.guarantee import Guarantee
from privada.privacy.relation import Relation
from privada.report.tables import Table

_LINE = (
    *("data set", "line", "time (UTC)", "what", "who"),
    *("guarantee", "of the budget", "spent by then", "digest"),
)
# kinds of lines by which nothing of the rows got out
_FREE = ("key", "approval", "refusal", "copy", "allowance")
_WHO = "who"
_LEARNER = ("data set", "learner", "key", "charged", "of the budget", "copies", "refused", "last", "projects")
_DIGITS = 8  # of a digest, enough to tell lines apart by eye
_VINTAGE = ("vintage", "rows", "budget", "left")
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
        str(len(account["lines"])),
        "nothing" if spent is None else f"{'' if keeps.running else 'at most '}{spent}",
        percent(1 - account["spent"] / account["capacity"]),
    )


def vintages_tables(export: Mapping[str, Any]) -> list[Table]:
    """For each data set that is divided by a date: its vintages, and what holds over all of them."""
    found: dict[str, list[tuple[Vintage, Mapping[str, Any]]]] = {}
    for account in export["datasets"].values():
        if account.get("vintage"):
            vintage = Vintage.from_dict(account["vintage"])
            found.setdefault(vintage.of, []).append((vintage, account))
    return [
        _vintages_table(of, sorted(some, key=lambda one: str(one[0].since))) for of, some in found.items()
    ]


def _vintages_table(of: str, some: Sequence[tuple[Vintage, Mapping[str, Any]]]) -> Table:
    budgets = [Guarantee.from_dict(account["budget"]) for _, account in some]
    rows = tuple(
        (
            vintage.name,
            f"{vintage.column} {vintage.period}",
            str(budget),
            percent(1 - account["spent"] / account["capacity"]),
        )
        for (vintage, account), budget in zip(some, budgets, strict=True)
    )
    return Table(title=f"Vintages of {of}", columns=_VINTAGE, rows=rows, note=_say_together(budgets))


def _say_together(budgets: Sequence[Guarantee]) -> str:
    """What the budgets of all vintages mean for one row or person."""
    if budgets[0].unit.name == "row":
        said = "A row is in one vintage, by its date: the budget of that one is all that is spent on it."
        public = " Which vintage it is in is not protected: the number of rows of each is public."
        return said + ("" if budgets[0].relation is Relation.ADD_REMOVE else public)
    whole = add_up(budgets)
    said = "Each budget protects a person's rows of that vintage. With rows in several, losses add up"
    return f"{said}." if whole is None else f"{said}; in all of them, to at most {whole}."


def keeper(account: Mapping[str, Any]) -> Filter:
    """The filter of an exported account."""
    order = {} if account["order"] is None else {"order": account["order"]}
    return Filter.from_dict({"filter": account["filter"], "budget": account["budget"]} | order)


def lines_table(
    export: Mapping[str, Any], *, title: str = "Ledger lines", last: int | None = None, after: int = -1
) -> Table:
    """One row for each line above index ``after``, or only the ``last`` of them."""
    table = all_lines(export, title=title, last=last, after=after)
    if all(not row[_LINE.index(_WHO)] for row in table.rows):
        table = table.without(_WHO)
    return table.without(_LINE[0]) if len(export["datasets"]) == 1 else table


def all_lines(
    export: Mapping[str, Any], *, title: str = "Ledger lines", last: int | None = None, after: int = -1
) -> Table:
    """The same with every column, so that tables of several ledgers can be joined."""
    rows = tuple(row for name in export["datasets"] for row in _line_rows(export, name, after=after))
    kept = rows if last is None else rows[-last:]
    note = f"{len(rows) - len(kept)} earlier lines are not shown." if len(kept) < len(rows) else ""
    return Table(title=title, columns=_LINE, rows=kept, note=note)


def _line_rows(export: Mapping[str, Any], name: str, *, after: int) -> Iterator[tuple[str, ...]]:
    account = export["datasets"][name]
    for line in account["lines"]:
        if line["index"] > after:
            yield (
                name,
                str(line["index"]),
                str(line["time"])[:19].replace("T", " "),
                _what(line),
                _who(line),
                _guarantee(line, account),
                percent(line["cost"] / account["capacity"]),
                percent(line["spent"] / account["capacity"]),
                str(line["hash"])[:_DIGITS],
            )


def _what(line: Mapping[str, Any]) -> str:
    times = f", {line['times']} times" if (line["times"] or 1) > 1 else ""
    return f"{line['purpose'] or line['text'] or line['kind']}{times}"


def _who(line: Mapping[str, Any]) -> str:
    """Who asked and who decided, if that is known."""
    asked = line["asker"]["learner"] if line["asker"] else ""
    return ", ".join(part for part in (asked, line["approver"] and f"by {line['approver']}") if part)


def by_learner(export: Mapping[str, Any]) -> list[dict[str, Any]]:
    """For each data set and learner: what was charged in its name, what it got besides, what was refused.

    Learners are told apart by name and key. Lines that name none, such as those of
    questions that nobody signed, are together under an empty name.
    """
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for name, account in export["datasets"].items():
        for line in account["lines"]:
            asked = line["asker"] or {"learner": "", "key": "", "project": ""}
            if line["kind"] == "allowance":
                continue  # nothing that the learner asked
            if asked["learner"] or line["kind"] == "charge":
                place = (name, asked["learner"], asked["key"])
                one = found.setdefault(place, _nothing_yet(*place))
                _add_line(one, line, asked["project"], capacity=account["capacity"])
    return list(found.values())


def _nothing_yet(dataset: str, learner: str, key: str) -> dict[str, Any]:
    counts: dict[str, Any] = dict.fromkeys(("charges", "copies", "refusals"), 0)
    return {"dataset": dataset, "learner": learner, "key": key, **counts, "share": 0.0, "projects": []}


def _add_line(one: dict[str, Any], line: Mapping[str, Any], project: str, *, capacity: int) -> None:
    counted = {"charge": "charges", "copy": "copies", "refusal": "refusals"}.get(line["kind"])
    if counted:
        one[counted] += 1
    one["share"] += line["cost"] / capacity
    one["last"] = line["time"]
    if project and project not in one["projects"]:
        one["projects"].append(project)


def learners_table(export: Mapping[str, Any], *, title: str = "By learner") -> Table:
    """One row for each learner that a data set's ledger names."""
    rows = tuple(
        (
            one["dataset"],
            one["learner"] or "(not named)",
            one["key"][:_DIGITS],
            str(one["charges"]),
            percent(one["share"]),
            str(one["copies"]),
            str(one["refusals"]),
            str(one["last"])[:19].replace("T", " "),
            ", ".join(one["projects"]),
        )
        for one in by_learner(export)
    )
    return Table(title=title, columns=_LEARNER, rows=rows)


def _guarantee(line: Mapping[str, Any], account: Mapping[str, Any]) -> str:
    if line["kind"] == "budget":
        vintage = account.get("vintage")  # not in exports of earlier versions
        rows = f", for {Vintage.from_dict(vintage)}" if vintage else ""
        return f"opens {Guarantee.from_dict(account['budget'])}{rows}"
    if line["kind"] in _FREE:
        return "nothing charged"
    if line["guarantee"] is None:
        return "not differentially private"
    return str(Guarantee.from_dict(line["guarantee"]))


def percent(share: float) -> str:
    """A share as a percentage of three digits.

    >>> percent(0.25), percent(1 / 3)
    ('25%', '33.3%')
    """
    return f"{100 * share:.3g}%"


__all__ = [
    "all_lines",
    "budgets_table",
    "by_learner",
    "keeper",
    "learners_table",
    "lines_table",
    "percent",
    "vintages_tables",
]
