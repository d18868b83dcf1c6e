"""``privada owner learners``: who may ask, and how much of its allowance each has used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privada.cli import show
from privada.cli.options import AsJson, OwnerToml, existing_file

if TYPE_CHECKING:
    from privada.parties.owner_file import OwnerFile
    from privada.parties.permissions import KnownLearner, KnownLearners
    from privada.privacy.ledger import Ledger
    from privada.report.tables import Table


def learners(owner: OwnerToml, as_json: AsJson = False) -> None:
    """List the learners of owner.toml, with what each may have and has used. Nothing is charged."""
    from privada.parties.owner_file import OwnerFile

    file = OwnerFile.read(existing_file(owner, "OWNER_TOML"))
    with file.open_ledger() as ledger:
        rows = _rows(file, ledger)
        left, unlisted = ledger.remaining(file.dataset), ledger.unlisted(file.dataset)
    plain = {"learners": rows, "left": left.share, "unlisted_refusals": unlisted}
    view: list[Table | str] = [str(left)]
    if file.learners is None:
        view.append("The file lists no learners: whoever the policy allows may ask.")
    else:
        view.append(_table(rows))
    if unlisted:
        view.append(f"Refusals that got no line, mostly of strangers: {sum(unlisted.values())}.")
    show.emit(plain, view, as_json=as_json)


def _rows(file: OwnerFile, ledger: Ledger) -> list[dict[str, Any]]:
    from privada.parties.permissions import KnownLearners
    from privada.report.ledger import by_learner

    known = KnownLearners(file.learners or (), budget=ledger.budget(file.dataset))
    done = by_learner(ledger.export(file.dataset))
    return [_row(each, known, ledger, file.dataset, done) for each in known.learners]


def _row(
    learner: KnownLearner, known: KnownLearners, ledger: Ledger, dataset: str, done: list[dict[str, Any]]
) -> dict[str, Any]:
    now = ledger.allowed(dataset, known.allowance(learner)).filter
    mine = [one for one in done if learner.name == one["learner"] or learner.key == one["key"]]
    return {
        "name": learner.name,
        "key": learner.key,
        "methods": None if learner.methods is None else list(learner.methods),
        "allowance": None if now is None else now.budget.to_dict(),
        "declared": None if learner.allowance is None else learner.allowance.to_dict(),
        "left": ledger.used(dataset, known.allowance(learner)).share,
        "expires": None if learner.expires is None else learner.expires.isoformat(),
        "approval": learner.approval,
        "last": max((one["last"] for one in mine), default=None),
        **{count: sum(one[count] for one in mine) for count in ("charges", "copies", "refusals")},
    }


def _table(rows: list[dict[str, Any]]) -> Table:
    from privada.privacy.guarantee import Guarantee
    from privada.report.ledger import percent
    from privada.report.tables import Table

    columns = (
        *("learner", "key", "methods", "allowance", "used", "last day"),
        *("approval", "charges", "copies", "refusals", "last asked (UTC)"),
    )
    body = tuple(
        (
            row["name"],
            row["key"][:8],
            "as the policy" if row["methods"] is None else ", ".join(row["methods"]),
            "the budget" if row["allowance"] is None else str(Guarantee.from_dict(row["allowance"])),
            "" if row["allowance"] is None else percent(1 - row["left"]),
            row["expires"] or "",
            {None: "as the policy", True: "yes", False: "no"}[row["approval"]],
            *(str(row[count]) for count in ("charges", "copies", "refusals")),
            str(row["last"] or "")[:19].replace("T", " "),
        )
        for row in rows
    )
    return Table(title="Who may ask", columns=columns, rows=body).without_empty_columns()


__all__ = ["learners"]
