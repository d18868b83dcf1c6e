"""``privada broker``: set up and run a broker, a NATS server of your own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privada.cli import show
from privada.cli.options import AsJson, existing_file
from privada.exceptions import InputError

if TYPE_CHECKING:
    from privada.exchange.broker.plan import BrokerPlan

app = typer.Typer(no_args_is_help=True, help="Set up and run a broker: a NATS server of your own.")
BrokerFolder = Annotated[Path, typer.Argument(metavar="DIR", help="The broker's folder.", show_default=False)]


@app.command("init", epilog="Example: privada broker init broker --owner clinic --learner alice")
def init(
    folder: BrokerFolder,
    owner: Annotated[
        list[str] | None,
        typer.Option(
            "--owner",
            metavar="NAME[=DATASET,...]",
            help="An owner, with the names of its data sets if it has several; repeatable.",
        ),
    ] = None,
    learner: Annotated[
        list[str] | None, typer.Option("--learner", metavar="NAME", help="A learner; repeatable.")
    ] = None,
    host: Annotated[
        str | None,
        typer.Option("--host", help="Name by which parties reach it; default: localhost, this machine only."),
    ] = None,
    port: Annotated[int | None, typer.Option("--port", help="Its port; default: 4222.")] = None,
    server: Annotated[
        list[str] | None,
        typer.Option(
            "--server", metavar="HOST[:PORT]", help="A server of a cluster of three or five; repeatable."
        ),
    ] = None,
    exchange: Annotated[
        str | None,
        typer.Option("--exchange", metavar="NAME", help="Name of the exchange; default: exchange."),
    ] = None,
    days: Annotated[
        int | None, typer.Option("--days", help="For how long certificates are valid; default: 365.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make an authority, certificates, users with narrow permissions, and the server's configuration.

    Each party gets a folder with a link.toml: hand it over by a safe way, and keep authority/ to yourself.
    Run it again to add parties; what is there stays.
    """
    from privada.exchange.broker.plan import BrokerPlan
    from privada.exchange.broker.setup import set_up_broker

    if host is not None and server:
        raise InputError("Expected --host for one server or --server for each of a cluster, not both.")
    servers = tuple(server) if server else None
    wished = {"host": host, "port": port, "servers": servers, "exchange": exchange, "days": days}
    given: dict[str, Any] = {name: value for name, value in wished.items() if value is not None}
    there = (folder / "broker.toml").exists()
    if there and given:
        raise InputError(f"{folder} is set up already: change {', '.join(given)} in its broker.toml.")
    plan = (BrokerPlan.read(folder) if there else BrokerPlan(**given)).with_parties(
        owner or (), learner or ()
    )
    made = set_up_broker(folder, plan)
    view = [f"{place.name}: hand over {place}" for place in made[1:]]
    view += _next_steps(folder, plan, made[0])
    show.emit({"urls": plan.urls, "parties": [str(place) for place in made]}, view, as_json=as_json)


def _next_steps(folder: Path, plan: BrokerPlan, administrator: Path) -> list[str]:
    """How the broker is started."""
    if not plan.servers:
        return [f"Start it: privada broker serve {folder}"]
    return [
        *(f"{each.host}: copy {folder / 'servers' / each.name} there" for each in plan.all_servers),
        "Start each server in its folder: nats-server -c nats.conf",
        f"Then, once: privada broker create {administrator / 'link.toml'} --replicas {len(plan.servers)}",
    ]


@app.command("serve", epilog="Example: privada broker serve broker")
def serve(folder: BrokerFolder, as_json: AsJson = False) -> None:
    """Run the broker in the foreground; interrupt it to end it."""
    from privada.exchange.broker import server

    existing_file(folder / "broker.toml", "DIR")
    server.serve(folder, ready=lambda plan: _say_ready(plan, as_json=as_json))


def _say_ready(plan: BrokerPlan, *, as_json: bool) -> None:
    """One line as soon as parties can connect, even into a pipe."""
    who = f"{len(plan.owners)} owners and {len(plan.learners)} learners"
    plain = {"urls": plan.urls, "exchange": plan.exchange, "owners": plan.owners, "learners": plan.learners}
    show.emit(plain, [f"Serving {plan.exchange} at {plan.urls[0]} for {who}."], as_json=as_json)
    sys.stdout.flush()


@app.command("create", epilog="Example: privada broker create administrator/link.toml --replicas 3")
def create(
    link: Annotated[
        Path, typer.Argument(metavar="LINK", help="The administrator's link.toml.", show_default=False)
    ],
    replicas: Annotated[
        int, typer.Option("--replicas", min=1, max=5, help="How many servers keep each item.")
    ] = 1,
    as_json: AsJson = False,
) -> None:
    """Create the exchange on a NATS server or cluster that somebody else runs."""
    from privada.exchange.broker.server import create_exchange

    create_exchange(existing_file(link, "LINK"), replicas=replicas)
    plain = {"link": str(link), "replicas": replicas}
    show.emit(plain, [f"The exchange of {link} is there."], as_json=as_json)


__all__ = ["app"]
