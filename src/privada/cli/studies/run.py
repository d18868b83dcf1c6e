"""``privada run``: a whole study, in one process or over an exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from privada.cli import show
from privada.cli.options import (
    AsJson,
    LearnerKeyFile,
    ModelOut,
    PageFile,
    ResultFile,
    StudyFile,
    existing_file,
)

if TYPE_CHECKING:
    from pathlib import Path

    from privada.studies.outcome import Outcome
    from privada.studies.study import Study

EXAMPLE = "privada run study.toml --page result.html"


def command(
    study: StudyFile,
    exchange: Annotated[
        str | None,
        typer.Option(
            "--exchange",
            metavar="URL",
            help="Ask owners elsewhere: a folder's path, or s3://, gs://, az://, nats:// and so on.",
        ),
    ] = None,
    key: LearnerKeyFile = None,
    patience: Annotated[
        float,
        typer.Option("--patience", metavar="SECONDS", min=0, help="How long to wait for each round."),
    ] = 600.0,
    out: ResultFile = None,
    page: PageFile = None,
    model: ModelOut = None,
    as_json: AsJson = False,
) -> None:
    """Run a study: ask, charge, answer, learn.

    Without --exchange, every owner's file must be available, and all run in one
    process. With it, owners answer where they are (privada owner serve, or
    privada answer). A run that was interrupted, or that waited in vain, goes on
    where it was when it is started again; no question is paid for twice.
    Another seed makes other questions. Ends with 3 if an owner refuses, with 4
    if one did not answer in time.
    """
    from privada.cli.studies.outcome import finish, prepare, prepare_model
    from privada.studies.outcome import run_study
    from privada.studies.study import Study

    read = Study.read(existing_file(study, "STUDY"))
    prepare(out, page)
    keep = prepare_model(model, read)
    if exchange is not None:
        outcome = _run_over(exchange, read, key, patience)
    else:
        with show.working(f"Running {read.title}"):
            outcome = run_study(read)
    finish(outcome, out=out, page=page, keep=keep, as_json=as_json)


def _run_over(url: str, study: Study, key: Path | None, patience: float) -> Outcome:
    from privada.cli.studies.mailbox import open_mailbox
    from privada.cli.studies.progress import Progress
    from privada.studies.outcome import learn_from

    with open_mailbox(url, study, key) as mailbox, show.updating(f"Running {study.title}") as update:
        progress = Progress(study.title, update)
        outcome = learn_from(mailbox, study, patience=patience, watch=progress.note)
    for owner, reason in progress.left_out.items():
        show.note(f"{owner} was left out: {reason}")
    return outcome


__all__ = ["EXAMPLE", "command"]
