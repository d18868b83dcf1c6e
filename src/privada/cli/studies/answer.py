"""``privada answer``: an owner answers what is pending in an exchange folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privada.cli import show
from privada.cli.exits import Exit
from privada.cli.options import AsJson, ExchangeFolder, OwnerToml, existing_file, existing_folder
from privada.exceptions import InputError, PrivadaError

if TYPE_CHECKING:
    from privada.engines.folder import Answered
    from privada.parties.owner_file import OwnerFile

EXAMPLE = "privada answer owner.toml --folder exchange --name clinic"
_DIGITS = 64


def command(
    owner: OwnerToml,
    folder: ExchangeFolder,
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
    as_json: AsJson = False,
) -> None:
    """Answer every pending question: check, charge the ledger, open the rows, draw, sign.

    A question is charged once: one that was answered before gets the same
    release again. If the policy asks for approval, look at the price that is
    shown and approve the digest. Ends with 3 if a question was refused, else
    with 4 if one still waits or could not be delivered.
    """
    from privada.engines.folder import Folder
    from privada.parties.owner import Owner
    from privada.parties.owner_file import OwnerFile

    file = OwnerFile.read(existing_file(owner, "OWNER_TOML"))
    exchange = Folder(existing_folder(folder, "--folder"))
    called = _name(exchange.path, name or file.dataset)
    approved = frozenset(_digest("--approve", text) for text in approve or ())
    again = frozenset(_digest("--reconsider", text) for text in reconsider or ())
    if unknown := again - exchange.refused(called):
        raise InputError(f"--reconsider: {called} did not refuse {', '.join(sorted(unknown))}.")
    with show.working(f"Answering for {called}"):
        done = exchange.answer(called, Owner.from_file(file), approved=approved, reconsider=again)
    rows = [_plain(answered, file) for answered in done]
    show.emit({"owner": called, "questions": rows}, _view(rows, called), as_json=as_json)
    outcomes = {answered.outcome for answered in done}
    if "refused" in outcomes:
        raise typer.Exit(Exit.REFUSED)
    if outcomes & {"waiting", "undelivered"}:
        raise typer.Exit(Exit.WAITING)


def _name(folder: Path, name: str) -> str:
    """The owner's name, if anyone has asked it."""
    there = sorted(path.name for path in (folder / "questions").glob("*") if path.is_dir())
    if there and name not in there:
        raise InputError(f"Nobody asked {name!r} in {folder}; say --name, one of: {', '.join(there)}.")
    return name


def _digest(flag: str, text: str) -> str:
    digits = text.lower()
    if len(digits) != _DIGITS or set(digits) - set("0123456789abcdef"):
        raise InputError(
            f"Expected {flag} to be all {_DIGITS} digits of a digest (two questions can be made "
            f"that begin alike), got {text!r:.100}."
        )
    return digits


def _plain(answered: Answered, file: OwnerFile) -> dict[str, Any]:
    about = {"digest": answered.digest, "outcome": answered.outcome, "reason": answered.reason}
    return about | (_about(answered, file) if answered.outcome != "refused" else {})


def _about(answered: Answered, file: OwnerFile) -> dict[str, Any]:
    """What a person should see before approving: kind, guarantee, share of the budget.

    The file is read again and may be another by now; nothing is said of that one. No part of a
    question is tried out here: nobody has approved it yet.
    """
    from privada.privacy.release import Question

    try:
        question = Question.load(answered.path)
    except PrivadaError:
        return {}
    if question.digest != answered.digest:
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
            row.get("kind", ""),
            row.get("guarantee", ""),
            percent(row["share"]) if "share" in row else "",
            row["reason"],
        )
        for row in rows
    )
    columns = ("question", "outcome", "kind", "guarantee", "of the budget", "reason")
    table = Table(title=f"Questions to {name}", columns=columns, rows=body).without_empty_columns()
    return [table, *(f"To approve: --approve {row['digest']}" for row in rows if row["outcome"] == "waiting")]


__all__ = ["EXAMPLE", "command"]
