"""Commands that carry out a study: ``init``, ``run``, ``ask``, ``learn`` and ``evaluate``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from privada.cli import show
from privada.cli.options import (
    AsJson,
    ExchangeUrl,
    LearnerKeyFile,
    MethodName,
    ModelOut,
    PageFile,
    ResultFile,
    StudyFile,
    existing_exchange,
    existing_file,
    new_file,
)
from privada.exceptions import InputError

if TYPE_CHECKING:
    from privada.exchange import Mailbox
    from privada.exchange.asking import Step
    from privada.report.page import Page
    from privada.report.tables import Table
    from privada.studies.outcome import Outcome
    from privada.studies.study import Study

    SaveModel = Callable[[Outcome], Path]


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.", show_default=False)],
    method: Annotated[
        str,
        typer.Option(metavar="NAME", help="The method that the study uses; privada advise helps to choose."),
    ] = "reweighting",
    as_json: AsJson = False,
) -> None:
    """Write an example study of a method: commented, with generated rows, ready to run.

    Read the README.md in it, then: privada run DIR/study.toml
    """
    from privada.studies.example import write_example

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"DIR: {folder} exists and is not empty; name a new folder.")
    written = write_example(folder, name=method)
    lines = (*(f"Wrote {path}" for path in written), f"Next: privada run {folder / 'study.toml'}")
    show.emit({"written": [str(path) for path in written]}, lines, as_json=as_json)


def run(
    study: StudyFile,
    exchange: Annotated[
        str | None,
        typer.Option(
            "--exchange",
            metavar="URL",
            help="Ask owners elsewhere: a folder's path, or a URL such as s3://, gs://, az:// or nats://.",
        ),
    ] = None,
    key: LearnerKeyFile = None,
    patience: Annotated[
        float, typer.Option("--patience", metavar="SECONDS", min=0, help="How long to wait for each round.")
    ] = 600.0,
    out: ResultFile = None,
    page: PageFile = None,
    model: ModelOut = None,
    as_json: AsJson = False,
) -> None:
    """Run a study: ask, charge, answer, learn.

    Without --exchange, every owner's file must be available, and all run in one
    process. With it, owners answer where they are (privada owner serve, or
    privada answer). A run that was interrupted, or that waited in vain, continues
    where it was when it is started again; no question is paid for twice.
    To ask anew, change the number `again` of the study. Ends with 3 if an owner refuses, with 4
    if one did not answer in time.
    """
    from privada.studies.outcome import learn_from, run_study
    from privada.studies.study import Study

    definition = Study.read(existing_file(study, "STUDY"))
    # Whatever can be wrong with the files is found before anything is charged
    check_writable(out, page)
    save_model = prepare_model(model, definition)
    with show.updating(f"Running {definition.title}") as update:
        progress = Progress(definition.title, update)
        if exchange is None:
            outcome = run_study(definition)
        else:
            with open_mailbox(exchange, definition, key) as mailbox:
                outcome = learn_from(mailbox, definition, patience=patience, watch=progress.note)
    for owner, reason in progress.left_out.items():
        show.note(f"{owner} was left out: {reason}")
    finish(outcome, out=out, page=page, save_model=save_model, as_json=as_json)


def ask(
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
    from privada.exceptions import Waiting
    from privada.studies.outcome import learn_from
    from privada.studies.study import Study, check_method

    definition = Study.read(existing_file(study, "STUDY"))
    check_method(definition, method)
    pending: dict[str, list[str]] = {}

    def note_pending(step: Step) -> None:
        if step.state == "asked":
            pending.setdefault(step.owner, []).append(step.question)

    # Learning as far as the answers go asks the questions of the next round
    waiting = ""
    try:
        with open_mailbox(exchange, definition, key) as mailbox:
            learn_from(mailbox, definition, watch=note_pending)
    except Waiting as error:
        waiting = str(error)
    view = [f"{name}: {len(digests)} unanswered" for name, digests in pending.items()]
    if not waiting:
        view = [f"All questions are answered: privada learn {method} {study} --exchange {exchange}"]
    plain = {"exchange": exchange, "pending": pending, "answered": not waiting}
    show.emit(plain, view, as_json=as_json)
    if waiting:
        show.error(waiting, label="waiting")
        raise typer.Exit(show.Exit.WAITING)


def learn(
    method: MethodName,
    study: StudyFile,
    exchange: ExchangeUrl,
    key: LearnerKeyFile = None,
    out: ResultFile = None,
    page: PageFile = None,
    model: ModelOut = None,
    as_json: AsJson = False,
) -> None:
    """Compute a study's result from the releases that owners put into the exchange.

    Signatures are checked, against the owner's public key where the study's
    schema file names it. Ends with 4 while a release is missing; the questions
    of the next round are then written.
    """
    from privada.parties.owner_file import Card
    from privada.studies.outcome import learn_from
    from privada.studies.study import Study, check_method

    definition = Study.read(existing_file(study, "STUDY"))
    check_method(definition, method)
    check_writable(out, page)
    save_model = prepare_model(model, definition)
    with (
        open_mailbox(existing_exchange(exchange, "--exchange"), definition, key) as mailbox,
        show.updating(f"Learning {definition.title}"),
    ):
        outcome = learn_from(mailbox, definition)
    for name, party in definition.parties.items():
        if isinstance(party, Card) and party.public_key is None:
            show.note(f"the schema of {name} names no public_key: anyone may have signed its releases.")
    finish(outcome, out=out, page=page, save_model=save_model, as_json=as_json)


def evaluate(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="The model: ONNX, or JSON of one of privada's forms.", show_default=False
        ),
    ],
    study: StudyFile,
    owner: Annotated[
        str | None,
        typer.Option("--owner", metavar="NAME", help="Which of the study's owners; by default the first."),
    ] = None,
    bins: Annotated[
        int | None, typer.Option("--bins", metavar="N", help="Bins of scores; 1 asks only about predictions.")
    ] = None,
    positive: Annotated[
        str | None, typer.Option("--positive", metavar="CLASS", help="The class whose score is binned.")
    ] = None,
    largest: Annotated[
        float | None, typer.Option("--largest", metavar="ERROR", help="Bound of squared errors.")
    ] = None,
    out: ResultFile = None,
    page: PageFile = None,
    as_json: AsJson = False,
) -> None:
    """Tell how well a model does on an owner's rows, with intervals for noise and sampling.

    The study says who is asked and for how much; its method is not used. The
    same model again gets the same answer and is not charged again. Ends with 3 if the
    owner refuses; then nothing was charged.
    """
    from privada.studies.outcome import run_study
    from privada.studies.study import Study

    settings: dict[str, Any] = {
        "owner": owner,
        "bins": bins,
        "positive": positive,
        "max_squared_error": largest,
        "name": "evaluation",
        "model": str(existing_file(model, "MODEL").resolve()),
    }
    # The evaluation of this model takes the place of the study's own method
    definition = Study.read(
        existing_file(study, "STUDY"),
        method={name: value for name, value in settings.items() if value is not None},
    )
    check_writable(out, page)
    with show.updating(f"Evaluating {model.name}"):
        outcome = run_study(definition)
    finish(outcome, out=out, page=page, as_json=as_json)


def open_mailbox(url: str, study: Study, key: Path | None) -> Mailbox:
    """Open an exchange to ask a study's owners, signing with the learner's key if there is one."""
    from privada.exchange import Mailbox, Sender
    from privada.privacy.keys import LearnerKey

    sender = Sender(project=study.project, purpose=study.purpose)
    if key is not None:
        try:
            sender = Sender(
                learner=key.stem, key=LearnerKey.load(key), project=study.project, purpose=study.purpose
            )
        except InputError as error:  # the study's texts were checked when it was read
            raise InputError(f"--key: the name of its file is the learner's. {error}") from None
    return Mailbox.open(url, keys=study.keys, sender=sender)


class Progress:
    """What happened to each owner in the present round of a study, as one line.

    Parameters
    ----------
    title : str
        Title of the study.
    update : function
        Called with the line after every step.
    """

    WORDS: ClassVar = {
        "asked": "asked",
        "answered": "done",
        "damaged": "waiting for a reply that can be read",
        "refused": "refused",
        "late": "late",
        "left out": "left out",
    }

    def __init__(self, title: str, update: Callable[[str], None]) -> None:
        self.title, self._update = title, update
        self.left_out: dict[str, str] = {}
        self._round, self._states = 0, dict[str, str]()

    def note(self, step: Step) -> None:
        """Record one step, and show the state of all owners."""
        if step.round != self._round:
            self._round, self._states = step.round, {}
        self._states[step.owner] = self.WORDS[step.state]
        if step.state == "left out":
            self.left_out.setdefault(step.owner, step.reason.rstrip(".") + ".")
        owners = ", ".join(f"{name} {state}" for name, state in self._states.items())
        self._update(f"{self.title}, round {self._round}: {owners}")


WRITTEN_BY_PRIVADA = ('"written_by": "privada"', 'content="written by privada"')


def check_writable(*files: Path | None) -> None:
    """Check that all files can be written, so that a failure comes before anything is charged.

    An existing file is replaced only if an earlier run wrote it: a mistyped
    ``--out`` must not destroy a ledger, a study or data.
    """
    for file in files:
        if file is None:
            continue
        fresh = not file.exists()
        if not fresh:
            if not file.is_file():
                raise InputError(f"{file} is a folder or a device; name a file.")
            with file.open("rb") as stream:
                beginning = stream.read(2000).decode("utf-8", errors="replace")
            if not any(mark in beginning for mark in WRITTEN_BY_PRIVADA):
                raise InputError(f"{file} exists and was not written by an earlier run; name another file.")
        # Permissions and full disks show only by trying
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("a", encoding="utf-8"):
                pass
            if fresh:
                file.unlink()
        except OSError as error:
            raise InputError(f"{file} cannot be written: {error.strerror}.") from None


def prepare_model(file: Path | None, study: Study) -> SaveModel | None:
    """Return the function that will save the model; refuse before any charge if the study has none."""
    if file is None:
        return None
    from privada.studies.model import model_maker

    path, make = new_file(file, "--model"), model_maker(study)

    def save(outcome: Outcome) -> Path:
        saved: Path = make(outcome.learnt).save(path)
        return saved

    return save


def finish(
    outcome: Outcome,
    *,
    out: Path | None,
    page: Path | None,
    as_json: bool,
    save_model: SaveModel | None = None,
) -> None:
    """Show the result first, since it is paid for by now; then write the requested files."""
    tables = [*_result_tables(outcome), _releases_table(outcome), *_ledger_tables(outcome)]
    show.emit(outcome.to_dict(), [outcome.study.title, *tables], as_json=as_json)
    written = []
    if out is not None:
        out.write_text(show.json_text(outcome.to_dict(), indent=2) + "\n", encoding="utf-8")
        written.append(out)
    if page is not None:
        outcome_page(outcome).save(page)
        written.append(page)
    if save_model is not None:
        written.append(save_model(outcome))
    if written and not as_json:
        show.emit({}, [f"Wrote {path}" for path in written], as_json=False)


def _result_tables(outcome: Outcome) -> list[Table]:
    from privada.report.tables import tables_of

    return tables_of(summarize_result(outcome.result), title=f"Result of {outcome.study.method.name}")


def summarize_result(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Select what people read of a result: not what the table of releases says, nor a model's parameters."""
    summary = dict(plain)
    if "hypothesis" in plain:
        form = plain["hypothesis"]
        summary["hypothesis"] = form.get("reason", f"{form.get('form')}, written out in the JSON")
    if "synthetic_target" in plain:
        rows = len(plain["synthetic_target"]["weights"])
        summary["synthetic_target"] = f"{rows} public rows with weights and probabilities, in the JSON"
    titles = {
        "confusion": "rows by true class, and what was predicted of them",
        "auc": "area under the ROC curve",
    }
    return {
        titles.get(name, name): value
        for name, value in summary.items()
        if name not in ("guarantee", "guarantees", "stamps") and value is not None
    }


def _releases_table(outcome: Outcome) -> Table:
    from privada.report.tables import Table

    rows = tuple(
        (
            release.kind,
            release.receipt.dataset,
            str(release.guarantee),
            ", ".join(release.stamps),
            str(release.receipt.index),
            release.receipt.public[:12],
        )
        for release in outcome.releases
    )
    columns = ("release", "data set", "guarantee", "stamps", "ledger line", "signed by")
    return Table(title="Releases", columns=columns, rows=rows).without_empty_columns()


def _ledger_tables(outcome: Outcome) -> list[Table]:
    from privada.report.ledger import budgets_table, lines_table

    tables = []
    for name, export in outcome.ledgers.items():
        tables.append(lines_table(export, title=f"Ledger lines that were written at {name}"))
        tables.append(budgets_table(export, title=f"Budget of {name}"))
    return tables


def outcome_page(outcome: Outcome) -> Page:
    """Make the HTML page of a study's result."""
    from privada.report.page import Page, Panel

    study = outcome.study
    panels = [
        Panel(
            title=study.method.title,
            guarantee=str(study.guarantee),
            stamps=outcome.stamps,
            text="Every number below comes from releases: noisy, paid for, and signed by their owners.",
            tables=tuple(_result_tables(outcome)),
        ),
        Panel(title="Releases", tables=(_releases_table(outcome),)),
    ]
    if outcome.ledgers:
        panels.append(Panel(title="Ledgers", tables=tuple(_ledger_tables(outcome))))
    lead = (
        f"Method: {study.method.name}. Asked: {', '.join(study.parties)}. "
        f"Budget of the study: {study.guarantee}."
    )
    return Page(title=study.title, lead=lead, panels=tuple(panels), stamps=outcome.stamps)
