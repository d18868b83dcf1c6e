"""``privada question``: what a question asks for, in words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privada.cli import show
from privada.cli.options import AsJson, existing_file

if TYPE_CHECKING:
    from privada.privacy.release import Question
    from privada.report.tables import Table

app = typer.Typer(no_args_is_help=True, help="See what a question asks for, before it is answered.")


@app.callback()
def _group() -> None:
    """See what a question asks for, before it is answered."""


@app.command("show", epilog="Example: privada question show asked.question")
def show_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A question file.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Say in words what is asked, what comes back, how noisy it is, and what it costs.

    Nothing is charged and no row is read. If the question came signed, its signature is
    checked; ends with 5 if it does not hold.
    """
    from privada.exchange.files import load_question

    asked = load_question(existing_file(file, "FILE"))
    show.emit(_plain(asked), _view(asked), as_json=as_json)


def _plain(question: Question) -> dict[str, Any]:
    from privada.report import wording

    return {
        "kind": question.kind,
        "question": question.digest,
        "asked": wording.say_asked(question),
        "guarantee": question.guarantee.to_dict(),
        "risk": None if question.discloses else wording.say_risk(question.guarantee),
        "confidence": wording.CONFIDENCE,
        "parts": [vars(part) for part in wording.parts_of(question)],
    }


def _view(question: Question) -> list[Table | str]:
    from privada.report import wording
    from privada.report.tables import Table

    if question.discloses:
        return [wording.say_asked(question), f"It costs {question.guarantee}."]
    columns = ("what comes back", "shape", "noise", f"each number, {wording.CONFIDENCE:.0%}")
    rows = tuple((part.name, part.shape, part.noise, part.within) for part in wording.parts_of(question))
    return [
        wording.say_asked(question),
        Table(title=question.kind, columns=columns, rows=rows),
        f"It costs {question.guarantee}.",
        wording.say_risk(question.guarantee),
    ]


__all__ = ["app", "show_"]
