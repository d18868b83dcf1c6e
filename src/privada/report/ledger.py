"""What a ledger says, as tables, from its export alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from privada.privacy.accounting.filters import Filter, Vintage, add_up
from privada.privacy.guarantee import Guarantee
from privada.privacy.relation import Relation
from privada.report.tables import Table

DIGITS = 8  # of a digest, enough to tell lines apart by eye


def percent(share: float) -> str:
    """Write a share as a percentage of three digits.

    >>> percent(0.25), percent(1 / 3)
    ('25%', '33.3%')
    """
    return f"{100 * share:.3g}%"


def budgets_table(export: Mapping[str, Any], *, title: str = "Budgets") -> Table:
    """Make a table with one row for each data set: budget, what was spent, what is left."""
    rows = []
    for name, account in export["datasets"].items():
        accounting = account_filter(account)
        spent = accounting.guarantee(account["spent"])
        at_most = "" if accounting.running else "at most "
        rows.append(
            (
                name,
                str(Guarantee.from_dict(account["budget"])),
                str(account["filter"]),
                str(len(account["lines"])),
                "nothing" if spent is None else f"{at_most}{spent}",
                _percent_left(account),
            )
        )
    columns = ("data set", "budget", "filter", "lines", "spent", "left")
    return Table(title=title, columns=columns, rows=tuple(rows))


def account_filter(account: Mapping[str, Any]) -> Filter:
    """Make the filter of an exported account."""
    order = {} if account["order"] is None else {"order": account["order"]}
    return Filter.from_dict({"filter": account["filter"], "budget": account["budget"]} | order)


def _percent_left(account: Mapping[str, Any]) -> str:
    return percent(1 - account["spent"] / account["capacity"])


def vintages_tables(export: Mapping[str, Any]) -> list[Table]:
    """Make a table for each data set that is divided by a date: its vintages, and what holds over all."""
    accounts: dict[str, list[tuple[Vintage, Mapping[str, Any]]]] = {}
    for account in export["datasets"].values():
        if account.get("vintage"):
            vintage = Vintage.from_dict(account["vintage"])
            accounts.setdefault(vintage.of, []).append((vintage, account))
    tables = []
    for dataset, pairs in accounts.items():
        pairs.sort(key=lambda pair: str(pair[0].since))
        budgets = [Guarantee.from_dict(account["budget"]) for _, account in pairs]
        rows = tuple(
            (vintage.name, f"{vintage.column} {vintage.period}", str(budget), _percent_left(account))
            for (vintage, account), budget in zip(pairs, budgets, strict=True)
        )
        columns = ("vintage", "rows", "budget", "left")
        note = _explain_vintages(budgets)
        tables.append(Table(title=f"Vintages of {dataset}", columns=columns, rows=rows, note=note))
    return tables


def _explain_vintages(budgets: Sequence[Guarantee]) -> str:
    """Say what the budgets of all vintages mean for one row or person."""
    if budgets[0].unit.name == "row":
        text = "A row is in one vintage, by its date: the budget of that vintage is all that is spent on it."
        if budgets[0].relation is not Relation.ADD_REMOVE:
            text += " Which vintage it is in is not protected: the number of rows of each is public."
        return text
    total = add_up(budgets)
    text = "Each budget protects a person's rows of that vintage. With rows in several, losses add up"
    return f"{text}." if total is None else f"{text}; in all of them, to at most {total}."


def lines_table(
    export: Mapping[str, Any], *, title: str = "Ledger lines", last: int | None = None, after: int = -1
) -> Table:
    """Make a table with one row for each line above index ``after``, or only the ``last`` of them."""
    table = all_lines(export, title=title, last=last, after=after)
    if not any(row[table.columns.index("who")] for row in table.rows):
        table = table.without("who")
    return table.without("data set") if len(export["datasets"]) == 1 else table


def all_lines(
    export: Mapping[str, Any], *, title: str = "Ledger lines", last: int | None = None, after: int = -1
) -> Table:
    """Make the same table with every column, so that tables of several ledgers can be joined."""
    columns = (
        *("data set", "line", "time (UTC)", "what", "who"),
        *("guarantee", "of the budget", "spent by then", "digest"),
    )
    rows = []
    for name, account in export["datasets"].items():
        for line in account["lines"]:
            if line["index"] <= after:
                continue
            times = f", {line['times']} times" if (line["times"] or 1) > 1 else ""
            people = (
                line["asker"] and line["asker"]["learner"],
                line["approver"] and f"by {line['approver']}",
            )
            rows.append(
                (
                    name,
                    str(line["index"]),
                    _format_time(line["time"]),
                    f"{line['purpose'] or line['text'] or line['kind']}{times}",
                    ", ".join(filter(None, people)),
                    _describe_charge(line, account),
                    percent(line["cost"] / account["capacity"]),
                    percent(line["spent"] / account["capacity"]),
                    str(line["hash"])[:DIGITS],
                )
            )
    latest = rows if last is None else rows[-last:]
    note = f"{len(rows) - len(latest)} earlier lines are not shown." if len(latest) < len(rows) else ""
    return Table(title=title, columns=columns, rows=tuple(latest), note=note)


def _format_time(time: object) -> str:
    return str(time)[:19].replace("T", " ")


def _describe_charge(line: Mapping[str, Any], account: Mapping[str, Any]) -> str:
    if line["kind"] == "budget":
        vintage = account.get("vintage")  # not in exports of earlier versions
        rows = f", for {Vintage.from_dict(vintage)}" if vintage else ""
        return f"opens {Guarantee.from_dict(account['budget'])}{rows}"
    # Lines of these kinds let nothing of the rows out
    if line["kind"] in ("key", "approval", "refusal", "copy", "allowance"):
        return "nothing charged"
    if line["guarantee"] is None:
        return "not differentially private"
    return str(Guarantee.from_dict(line["guarantee"]))


def by_learner(export: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Sum, for each data set and learner, what was charged in its name, copied to it, and refused.

    Learners are told apart by name and key. Lines that name none, such as those of
    questions that nobody signed, are together under an empty name.
    """
    sums: dict[tuple[str, str, str], dict[str, Any]] = {}
    for name, account in export["datasets"].items():
        for line in account["lines"]:
            if line["kind"] == "allowance":
                continue  # a decision of the owner, not a request of the learner
            asker = line["asker"] or {"learner": "", "key": "", "project": ""}
            if not asker["learner"] and line["kind"] != "charge":
                continue
            empty = {"dataset": name, "learner": asker["learner"], "key": asker["key"]}
            empty |= {"charges": 0, "copies": 0, "refusals": 0, "share": 0.0, "projects": []}
            learner = sums.setdefault((name, asker["learner"], asker["key"]), empty)
            count = {"charge": "charges", "copy": "copies", "refusal": "refusals"}.get(line["kind"])
            if count:
                learner[count] += 1
            learner["share"] += line["cost"] / account["capacity"]
            learner["last"] = line["time"]
            if asker["project"] and asker["project"] not in learner["projects"]:
                learner["projects"].append(asker["project"])
    return list(sums.values())


def learners_table(export: Mapping[str, Any], *, title: str = "By learner") -> Table:
    """Make a table with one row for each learner that a data set's ledger names."""
    columns = (
        *("data set", "learner", "key", "charged", "of the budget"),
        *("copies", "refused", "last", "projects"),
    )
    rows = tuple(
        (
            learner["dataset"],
            learner["learner"] or "(not named)",
            learner["key"][:DIGITS],
            str(learner["charges"]),
            percent(learner["share"]),
            str(learner["copies"]),
            str(learner["refusals"]),
            _format_time(learner["last"]),
            ", ".join(learner["projects"]),
        )
        for learner in by_learner(export)
    )
    return Table(title=title, columns=columns, rows=rows)


__all__ = [
    "account_filter",
    "all_lines",
    "budgets_table",
    "by_learner",
    "learners_table",
    "lines_table",
    "percent",
    "vintages_tables",
]
