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
    from privada.exchange.broker_plan import BrokerPlan

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
        typer.Option(
            "--host", help="The broker's name for the parties; default: localhost, this machine only."
        ),
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

    Each party gets a folder with a link.toml: hand it over in a safe way, and keep authority/ to yourself.
    Run the command again to add parties; existing files stay as they are.
    """
    from privada.exchange.broker import set_up_broker
    from privada.exchange.broker_plan import BrokerPlan

    if host is not None and server:
        raise InputError("Expected --host for one server or --server for each of a cluster, not both.")
    options = {
        "host": host,
        "port": port,
        "servers": tuple(server) if server else None,
        "exchange": exchange,
        "days": days,
    }
    settings: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    # The settings of a broker that exists are in its file; only parties can be added here
    if not (folder / "broker.toml").exists():
        plan = BrokerPlan(**settings)
    elif settings:
        raise InputError(f"{folder} is set up already: change {', '.join(settings)} in its broker.toml.")
    else:
        plan = BrokerPlan.read(folder)
    plan = plan.with_parties(owner or (), learner or ())
    administrator, *others = places = set_up_broker(folder, plan)
    view = [f"{place.name}: hand over {place}" for place in others]
    if plan.servers:
        view += [f"{node.host}: copy {folder / 'servers' / node.name} there" for node in plan.all_servers]
        view += [
            "Start each server in its folder: nats-server -c nats.conf",
            f"Then, once: privada broker create {administrator / 'link.toml'} --replicas {len(plan.servers)}",
        ]
    else:
        view.append(f"Start it: privada broker serve {folder}")
    show.emit({"urls": plan.urls, "parties": [str(place) for place in places]}, view, as_json=as_json)


@app.command("serve", epilog="Example: privada broker serve broker")
def serve(folder: BrokerFolder, as_json: AsJson = False) -> None:
    """Run the broker in the foreground; interrupt it to end it."""
    from privada.exchange.broker import serve as serve_broker

    def report_ready(plan: BrokerPlan) -> None:
        parties = f"{len(plan.owners)} owners and {len(plan.learners)} learners"
        plain = {
            "urls": plan.urls,
            "exchange": plan.exchange,
            "owners": plan.owners,
            "learners": plan.learners,
        }
        show.emit(plain, [f"Serving {plan.exchange} at {plan.urls[0]} for {parties}."], as_json=as_json)
        sys.stdout.flush()  # a program that reads our output waits for this line

    existing_file(folder / "broker.toml", "DIR")
    serve_broker(folder, ready=report_ready)


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
    """Create the exchange on a NATS server or cluster that runs already."""
    from privada.exchange.broker import create_exchange

    create_exchange(existing_file(link, "LINK"), replicas=replicas)
    plain = {"link": str(link), "replicas": replicas}
    show.emit(plain, [f"The exchange of {link} is there."], as_json=as_json)
