"""``privada ask``: write the questions of a study into an exchange folder."""

from __future__ import annotations

from privada.cli import show
from privada.cli.exits import Exit
from privada.cli.options import AsJson, ExchangeFolder, MethodName, StudyFile, existing_file

EXAMPLE = "privada ask cells study.toml --folder exchange"


def command(method: MethodName, study: StudyFile, folder: ExchangeFolder, as_json: AsJson = False) -> None:
    """Write a study's questions into an exchange folder, for its owners to answer.

    Ends with 4 while an owner still has to answer, with 0 once all questions
    are answered: then use privada learn. Running it again asks no question twice.
    Ends with 3, and asks nothing, if an owner whose file and key are available
    could not answer all rounds.
    """
    import typer

    from privada.engines.folder import Folder
    from privada.exceptions import Waiting
    from privada.studies.outcome import learn_from
    from privada.studies.study import Study, check_method

    read = Study.read(existing_file(study, "STUDY"))
    check_method(read, method)
    exchange = Folder(folder, keys=read.keys)
    waiting = ""
    try:
        learn_from(exchange, read)
    except Waiting as error:
        waiting = str(error)
    pending = {name: [path.stem for path in exchange.pending(name)] for name in read.parties}
    view = [f"{name}: {len(digests)} unanswered" for name, digests in pending.items()]
    done = f"All questions are answered: privada learn {method} {study} --folder {folder}"
    plain = {"folder": str(folder), "pending": pending, "answered": not waiting}
    show.emit(plain, view if waiting else [done], as_json=as_json)
    if waiting:
        show.error(waiting, label="waiting")
        raise typer.Exit(Exit.WAITING)


__all__ = ["EXAMPLE", "command"]
