"""``privada answer`` and ``privada owner serve``: an owner answers what it is asked, once or as it comes."""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privada.cli import show
from privada.cli.options import (
    AsJson,
    DecidedBy,
    ExchangeUrl,
    OwnerToml,
    decider_name,
    existing_exchange,
    existing_file,
    read_owner_file,
    whole_digest,
)
from privada.exceptions import CourierError, InputError, PrivadaError

if TYPE_CHECKING:
    from privada.exchange.answering import Answered, Answering
    from privada.exchange.courier import Courier
    from privada.parties.owner import Owner
    from privada.parties.owner_file import OwnerFile


def answer(
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
    by: DecidedBy = None,
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
    from privada.report.ledger import percent
    from privada.report.tables import Table

    file = read_owner_file(owner)
    approved = frozenset(whole_digest("--approve", text) for text in approve or ())
    again = frozenset(whole_digest("--reconsider", text) for text in reconsider or ())
    with open_courier(existing_exchange(exchange, "--exchange")) as courier:
        owner_name = _check_name(courier, name or file.dataset)
        with show.updating(f"Answering for {owner_name}"):
            answering = Answering(courier, owner_name, Owner.from_file(file))
            if unknown := again - (answering.refused() if again else frozenset()):
                raise InputError(f"--reconsider: {owner_name} did not refuse {', '.join(sorted(unknown))}.")
            # Approvals are lines of the ledger: the owner looks them up there when it answers.
            pending = (
                {question.digest for question in answering.pending(reconsider=again)} if approved else set()
            )
            for digest in sorted(approved & pending):
                answering.owner.ledger.approve(
                    answering.owner.dataset, digest, by=decider_name(by), reconsider=digest in again
                )
            answers = answering.answer(reconsider=again)
        rows = [describe_answer(answered, answering, file) for answered in answers]
    columns = ("question", "outcome", "asked by", "kind", "guarantee", "of the budget", "reason")
    body = tuple(
        (
            row["digest"][:12],
            row["outcome"],
            *(row.get(key, "") for key in ("learner", "kind", "guarantee")),
            percent(row["share"]) if "share" in row else "",
            row["reason"],
        )
        for row in rows
    )
    table = Table(title=f"Questions to {owner_name}", columns=columns, rows=body).without_empty_columns()
    waiting = [f"To approve: --approve {row['digest']}" for row in rows if row["outcome"] == "waiting"]
    view: list[Table | str] = [table, *waiting] if rows else [f"Nothing is pending for {owner_name}."]
    show.emit({"owner": owner_name, "questions": rows}, view, as_json=as_json)
    outcomes = {answered.outcome for answered in answers}
    if "refused" in outcomes:
        raise typer.Exit(show.Exit.REFUSED)
    if outcomes & {"waiting", "undelivered"}:
        raise typer.Exit(show.Exit.WAITING)


def _check_name(courier: Courier, name: str) -> str:
    """Return the owner's name, unless the exchange shows that only others were asked."""
    from privada.exchange.posting import check_owner

    if not courier.keys(f"questions/{check_owner(name)}/"):
        with suppress(CourierError):  # not every exchange shows who else was asked
            others = sorted({key.split("/")[1] for key in courier.keys("questions/") if key.count("/") > 1})
            if others:
                raise InputError(f"Nobody asked {name!r} here; say --name, one of: {', '.join(others)}.")
    return name


def describe_answer(answered: Answered, answering: Answering, file: OwnerFile) -> dict[str, Any]:
    """Say what happened to a question, with what a person should see before approving it.

    The item in the exchange is read again, and may have been replaced meanwhile; then nothing is
    said of it. No part of a question is tried out here: nobody has approved it yet.
    """
    plain: dict[str, Any] = {
        "digest": answered.digest,
        "outcome": answered.outcome,
        "reason": answered.reason,
    }
    if answered.learner:
        plain["learner"] = answered.learner
    if answered.outcome in ("refused", "ignored"):
        return plain
    with suppress(PrivadaError):
        question = answering.read_question(answered.key, answered.digest)
        plain |= {"kind": question.kind, "guarantee": str(question.guarantee)}
        plain["share"] = file.share(question)
    return plain


def serve(
    owners: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]OWNER_TOML...",
            help="Owners' files, each with its name in studies; by default the data set's name.",
            show_default=False,
        ),
    ],
    exchange: ExchangeUrl,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port",
            metavar="PORT",
            min=0,
            max=65535,
            help="Publish /health and /metrics (Prometheus) on this machine; 0 takes any free port.",
        ),
    ] = None,
    console: Annotated[
        bool,
        typer.Option("--console", help="Also serve the console: pages on this machine to see and decide."),
    ] = False,
    console_port: Annotated[
        int,
        typer.Option(
            "--console-port",
            metavar="PORT",
            min=0,
            max=65535,
            help="The console's port; 0 takes any free one.",
        ),
    ] = 8400,
    console_users: Annotated[
        Path | None,
        typer.Option(
            "--console-users",
            metavar="FILE",
            help="Who may sign in; by default console-users.json beside the first owner's file.",
        ),
    ] = None,
    console_settings: Annotated[
        Path | None,
        typer.Option(
            "--console-settings",
            metavar="FILE",
            help="Sign-in by OpenID Connect; by default console.toml beside the first owner's file, if any.",
        ),
    ] = None,
) -> None:
    """Serve one or many data sets over an exchange until the process is told to stop.

    The process connects to the exchange and accepts connections from this machine only. It answers each
    question at most once, whatever is repeated or restarted; questions that need
    approval wait for privada owner approve, or for a decision in the console.
    While a cluster, database, object store, file or ledger of the owner is away,
    questions wait; /health and the log name it. A second process for the same
    data set ends at once with exit code 7. The
    log on stderr is one JSON object per line, without data. SIGTERM or
    Ctrl-C ends it after the answer that is being computed.
    """
    from privada.exchange import open_courier
    from privada.exchange.posting import check_owner
    from privada.parties.owner import Owner
    from privada.service.console import host
    from privada.service.console.oidc import FILE as SETTINGS
    from privada.service.console.users import FILE, Users
    from privada.service.log import json_log
    from privada.service.metrics import Metrics, publish
    from privada.service.serving import LOG, Service, open_desks

    files: dict[str, OwnerFile] = {}
    for argument in owners:
        name, equals, path = argument.rpartition("=")
        file = read_owner_file(Path(path))
        if not equals:
            name = file.dataset
        if check_owner(name) in files:
            raise InputError("Expected every owner to have a name of its own: NAME=OWNER_TOML.")
        files[name] = file
    first = Path(owners[0].rpartition("=")[2])
    # A file of settings that was named must exist; the default one may be absent.
    oidc: Path | None = first.with_name(SETTINGS)
    if console_settings is not None:
        oidc = existing_file(console_settings, "--console-settings")
    elif not first.with_name(SETTINGS).is_file():
        oidc = None
    open_courier(exchange).close()  # a URL that names no courier is an error now, not later
    with ExitStack() as stack:

        def open_owner(file: OwnerFile) -> Owner:
            ledger = stack.enter_context(file.open_ledger())
            ledger.claim(file.dataset)  # before the rows are read, which can take long
            return Owner.from_file(file, ledger=ledger)

        desks = open_desks([(name, partial(open_owner, file)) for name, file in files.items()])
        metrics = Metrics()
        stack.enter_context(json_log(sys.stderr))
        port = stack.enter_context(publish(metrics, metrics_port))
        if port is not None:
            LOG.info("publishing metrics", extra={"port": port})
        service = Service(desks, lambda: open_courier(exchange), metrics=metrics)
        users = Users(console_users or first.with_name(FILE))
        address = stack.enter_context(host(service, users, console_port if console else None, oidc=oidc))
        if address is not None:
            LOG.info("console", extra={"address": address})
        for number in (signal.SIGTERM, signal.SIGINT):
            stack.callback(signal.signal, number, signal.signal(number, lambda *_: service.stop()))
        service.run()
