"""``privada ask``: write the questions of a study into an exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privada.cli import show
from privada.cli.exits import Exit
from privada.cli.options import AsJson, ExchangeUrl, LearnerKeyFile, MethodName, StudyFile, existing_file

if TYPE_CHECKING:
    from privada.exchange.asking import Step

EXAMPLE = "privada ask cells study.toml --exchange exchange"


def command(
    method: MethodName,
    study: StudyFile,
    exchange: ExchangeUrl,
    key: LearnerKeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Write a study's questions into an exchange, for its owners to answer.

    Ends with 4 while an owner still has to answer, with 0 once all questions
    are answered: then use privada learn. Running it again asks no question twice.
    Ends with 3, and asks nothing, if an owner whose file and key are available
    could not answer all rounds.
    """
    import typer

    from privada.cli.studies.mailbox import open_mailbox
    from privada.exceptions import Waiting
    from privada.studies.outcome import learn_from
    from privada.studies.study import Study, check_method

    read = Study.read(existing_file(study, "STUDY"))
    check_method(read, method)
    waiting, pending = "", dict[str, list[str]]()
    try:
        with open_mailbox(exchange, read, key) as mailbox:
            learn_from(mailbox, read, watch=lambda step: _note(step, pending))
    except Waiting as error:
        waiting = str(error)
    view = [f"{name}: {len(digests)} unanswered" for name, digests in pending.items()]
    done = f"All questions are answered: privada learn {method} {study} --exchange {exchange}"
    plain = {"exchange": exchange, "pending": pending, "answered": not waiting}
    show.emit(plain, view if waiting else [done], as_json=as_json)
    if waiting:
        show.error(waiting, label="waiting")
        raise typer.Exit(Exit.WAITING)


def _note(step: Step, pending: dict[str, list[str]]) -> None:
    """Keep the questions of the present round that wait for an answer."""
    if step.state == "asked":
        pending.setdefault(step.owner, []).append(step.question)


__all__ = ["EXAMPLE", "command"]
