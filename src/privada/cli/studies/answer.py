"""``privada answer``: an owner answers what is pending in an exchange."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privada.cli import show
from privada.cli.exits import Exit
from privada.cli.options import AsJson, ExchangeUrl, OwnerToml, existing_exchange, existing_file, whole_digest
from privada.cli.owners.decisions import By, person
from privada.exceptions import CourierError, InputError, PrivadaError

if TYPE_CHECKING:
    from privada.exchange.answering import Answered, Answering
    from privada.exchange.courier import Courier
    from privada.parties.owner_file import OwnerFile

EXAMPLE = "privada answer owner.toml --exchange exchange --name clinic"


def command(
    owner: OwnerToml,
    exchange: ExchangeUrl,
    name: Annotated[
        str | None,
        typer.Option(
            "--name", metavar="NAME", help="The owner's name in studies; by default the data set's name."
        ),
    ] = None,
    approve: Annotated[
        list[str] | None,
        typer.Option(
            "--approve", metavar="DIGEST", help="Approve the question with this whole digest; repeatable."
        ),
    ] = None,
    reconsider: Annotated[
        list[str] | None,
        typer.Option(
            "--reconsider", metavar="DIGEST", help="Look again at the refused question with this digest."
        ),
    ] = None,
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Answer every pending question: check, charge the ledger, open the rows, draw, sign.

    A question is charged once: one that was answered before gets the same
    release again. If the policy asks for approval, look at the price that is
    shown and approve the digest, here or by privada owner approve; the ledger
    records who did. Ends with 3 if a question was refused, else
    with 4 if one still waits or could not be delivered.
    """
    from privada.exchange import open_courier
    from privada.exchange.answering import Answering
    from privada.parties.owner import Owner
    from privada.parties.owner_file import OwnerFile

    file = OwnerFile.read(existing_file(owner, "OWNER_TOML"))
    approved = frozenset(whole_digest("--approve", text) for text in approve or ())
    again = frozenset(whole_digest("--reconsider", text) for text in reconsider or ())
    with open_courier(existing_exchange(exchange, "--exchange")) as courier:
        called = _name(courier, name or file.dataset)
        with show.working(f"Answering for {called}"):
            answering = Answering(courier, called, Owner.from_file(file))
            if unknown := again - (answering.refused() if again else frozenset()):
                raise InputError(f"--reconsider: {called} did not refuse {', '.join(sorted(unknown))}.")
            _approve(answering, approved, again, by)
            done = answering.answer(reconsider=again)
        rows = [_plain(each, answering, file) for each in done]
    show.emit({"owner": called, "questions": rows}, _view(rows, called), as_json=as_json)
    outcomes = {answered.outcome for answered in done}
    if "refused" in outcomes:
        raise typer.Exit(Exit.REFUSED)
    if outcomes & {"waiting", "undelivered"}:
        raise typer.Exit(Exit.WAITING)


def _approve(answering: Answering, approved: frozenset[str], again: frozenset[str], by: str | None) -> None:
    """Write who approves what is pending on the chain; the owner looks it up there."""
    asked = {each.digest for each in answering.pending(reconsider=again)} if approved else set()
    for digest in sorted(approved & asked):
        ledger, dataset = answering.owner.ledger, answering.owner.dataset
        ledger.approve(dataset, digest, by=person(by), reconsider=digest in again)


def _name(courier: Courier, name: str) -> str:
    """The owner's name, if anyone has asked it; not every exchange shows who else was asked."""
    from privada.exchange.posting import check_owner

    if not courier.keys(f"questions/{check_owner(name)}/"):
        with suppress(CourierError):
            there = sorted({key.split("/")[1] for key in courier.keys("questions/") if key.count("/") > 1})
            if there:
                raise InputError(f"Nobody asked {name!r} here; say --name, one of: {', '.join(there)}.")
    return name


def _plain(answered: Answered, answering: Answering, file: OwnerFile) -> dict[str, Any]:
    about = {"digest": answered.digest, "outcome": answered.outcome, "reason": answered.reason}
    if answered.learner:
        about["learner"] = answered.learner
    known = answered.outcome not in ("refused", "ignored")
    return about | (_about(answered, answering, file) if known else {})


def _about(answered: Answered, answering: Answering, file: OwnerFile) -> dict[str, Any]:
    """What a person should see before approving: kind, guarantee, share of the budget.

    The item is read again and may be another by now; nothing is said of that one. No part of a
    question is tried out here: nobody has approved it yet.
    """
    try:
        question = answering.read_question(answered.key, answered.digest)
    except PrivadaError:
        return {}
    plain: dict[str, Any] = {"kind": question.kind, "guarantee": str(question.guarantee)}
    try:
        return plain | {"share": file.share(question)}
    except PrivadaError:
        return plain


def _view(rows: list[dict[str, Any]], name: str) -> list[Any]:
    from privada.report.ledger import percent
    from privada.report.tables import Table

    if not rows:
        return [f"Nothing is pending for {name}."]
    body = tuple(
        (
            row["digest"][:12],
            row["outcome"],
            row.get("learner", ""),
            row.get("kind", ""),
            row.get("guarantee", ""),
            percent(row["share"]) if "share" in row else "",
            row["reason"],
        )
        for row in rows
    )
    columns = ("question", "outcome", "asked by", "kind", "guarantee", "of the budget", "reason")
    table = Table(title=f"Questions to {name}", columns=columns, rows=body).without_empty_columns()
    return [table, *(f"To approve: --approve {row['digest']}" for row in rows if row["outcome"] == "waiting")]


__all__ = ["EXAMPLE", "command"]
