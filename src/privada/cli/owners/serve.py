"""``privada owner serve``: an owner's process, which answers questions as they come."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privada.cli.options import ExchangeUrl, existing_file
from privada.exceptions import InputError

if TYPE_CHECKING:
    from privada.parties.owner import Owner
    from privada.parties.owner_file import OwnerFile

EXAMPLE = "privada owner serve clinic=clinic/owner.toml --exchange nats://broker:4222 --metrics-port 9464"


def command(
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
        typer.Option("--console", help="Serve the console, too: pages on this machine to see and decide."),
    ] = False,
    console_port: Annotated[
        int,
        typer.Option(
            "--console-port", metavar="PORT", min=0, max=65535, help="Its port; 0 takes any free one."
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

    The process dials out and listens to nobody but this machine. It answers each
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
    from privada.service.console.hosting import host
    from privada.service.console.oidc.settings import FILE as SETTINGS
    from privada.service.console.users import FILE, Users
    from privada.service.log import json_log
    from privada.service.metrics import Metrics, publish
    from privada.service.serving import LOG, Service, open_desks

    named = [(check_owner(name), file) for name, file in map(_read, owners)]
    if len({name for name, _ in named}) < len(named):
        raise InputError("Expected every owner to have a name of its own: NAME=OWNER_TOML.")
    open_courier(exchange).close()  # a URL that names no courier is an error now, not later
    with ExitStack() as stack:
        desks = open_desks([(name, partial(_open, file, stack)) for name, file in named])
        metrics = Metrics()
        stack.enter_context(json_log(sys.stderr))
        port = stack.enter_context(publish(metrics, metrics_port))
        if port is not None:
            LOG.info("publishing metrics", extra={"port": port})
        service = Service(desks, lambda: open_courier(exchange), metrics=metrics)
        first = Path(owners[0].rpartition("=")[2])
        users = Users(console_users or first.with_name(FILE))
        oidc = _find_settings(console_settings, first.with_name(SETTINGS))
        with host(service, users, console_port if console else None, oidc=oidc) as address:
            if address is not None:
                LOG.info("console", extra={"address": address})
            with _stopped_by_signals(service.stop):
                service.run()


def _find_settings(given: Path | None, beside: Path) -> Path | None:
    """The file that was named, which must be there; or the one beside the owner's, if there is one."""
    if given is not None:
        return existing_file(given, "--console-settings")
    return beside if beside.is_file() else None


def _read(argument: str) -> tuple[str, OwnerFile]:
    """Name and file of ``NAME=owner.toml``."""
    from privada.parties.owner_file import OwnerFile

    name, given, path = argument.rpartition("=")
    file = OwnerFile.read(existing_file(Path(path), "OWNER_TOML"))
    return name if given else file.dataset, file


def _open(file: OwnerFile, stack: ExitStack) -> Owner:
    """The owner of a file, which no other process serves meanwhile."""
    from privada.parties.owner import Owner

    ledger = stack.enter_context(file.open_ledger())
    ledger.claim(file.dataset)  # before the rows are read, which takes its time
    return Owner.from_file(file, ledger=ledger)


@contextmanager
def _stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    before = {each: signal.signal(each, lambda *_: stop()) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


__all__ = ["EXAMPLE", "command"]
