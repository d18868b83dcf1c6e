"""What a broker's servers are told: ``nats.conf``."""

from __future__ import annotations

import json
from pathlib import PurePath

from privada.exchange.broker.permissions import PARTY_API, Party, subjects_to_hear, subjects_to_publish
from privada.exchange.broker.plan import ADMINISTRATOR, BrokerPlan, Server
from privada.exchange.couriers.nats import stream_of, subject_of
from privada.exchange.link import JETSTREAM_API

KEEPER = "EXCHANGE"  # the account that keeps the stream
_LARGEST_PAYLOAD = 1 << 20


def configure_server(plan: BrokerPlan, server: Server, *, home: PurePath) -> str:
    """The text of ``nats.conf`` of a server whose certificate, key and store are in a folder."""
    settings = {
        "server_name": server.name,
        "host": server.listens_at,
        "port": server.port,
        "max_payload": _LARGEST_PAYLOAD,
        "tls": _identity(home)
        | {"verify_and_map": True, "handshake_first": True, "min_version": "1.3", "timeout": 5},
        "jetstream": {
            "store_dir": str(home / "store"),
            "max_memory_store": 1 << 26,
            "max_file_store": plan.largest_store,
            "sync_interval": "always",
        },
        "accounts": _accounts(plan),
    }
    if plan.servers:
        settings["cluster"] = _cluster(plan, server, home / "routes")
    return "# Made by privada broker init from broker.toml.\n" + json.dumps(settings, indent=2) + "\n"


def _identity(home: PurePath) -> dict[str, object]:
    """A certificate, its key, and the authority that the other side's must be of."""
    names = {"cert_file": "certificate.pem", "key_file": "key.pem", "ca_file": "ca.pem"}
    return {key: str(home / name) for key, name in names.items()}


def _cluster(plan: BrokerPlan, server: Server, routes: PurePath) -> dict[str, object]:
    """How the servers find each other.

    Whoever is let in as a server reads and writes everything, so routes have an authority of their own: the
    certificate of a party opens none.
    """
    return {
        "name": f"privada-{plan.exchange}",
        "listen": f"{server.listens_at}:{server.route_port}",
        "routes": [f"nats-route://{each.host}:{each.route_port}" for each in plan.all_servers],
        "no_advertise": True,
        "tls": _identity(routes) | {"verify": True, "min_version": "1.3", "timeout": 5},
    }


def _accounts(plan: BrokerPlan) -> dict[str, object]:
    """An account that keeps the exchange, and one for each party, which reaches no more than its own part.

    Permissions say where a party may write, not where the server may send what it replies. In an account of
    its own a reply stays with the party, so nobody can have the server write for them.
    """
    parties = [party for party in plan.parties if party != ADMINISTRATOR]
    keeper = {
        "jetstream": "enabled",
        "users": [_user(ADMINISTRATOR, plan.exchange)],
        "exports": [
            {**each, "accounts": [party.common_name for party in parties]} for each in _exports(plan)
        ],
    }
    return {KEEPER: keeper} | {party.common_name: _account(party, plan.exchange) for party in parties}


def _exports(plan: BrokerPlan) -> list[dict[str, str]]:
    """What the parties' accounts may import parts of."""
    stream = stream_of(plan.exchange)
    services = (
        subject_of(plan.exchange, ">"),
        f"{JETSTREAM_API}.CONSUMER.CREATE.{stream}.>",
        f"{JETSTREAM_API}.DIRECT.GET.{stream}.>",
    )
    return [*({"service": subject} for subject in services), {"stream": "_INBOX.>"}]


def _account(party: Party, exchange: str) -> dict[str, object]:
    """The requests that a party may make, and the keys that it is sent."""
    services = [
        {"service": _of_keeper(subject.replace(PARTY_API, JETSTREAM_API)), "to": subject}
        for subject in subjects_to_publish(party, exchange)
    ]
    streams = [{"stream": _of_keeper(subject)} for subject in subjects_to_hear(party)]
    return {"users": [_user(party, exchange)], "imports": [*services, *streams]}


def _of_keeper(subject: str) -> dict[str, str]:
    return {"account": KEEPER, "subject": subject}


def _user(party: Party, exchange: str) -> dict[str, object]:
    return {
        "user": f"CN={party.common_name}",
        "permissions": {
            "publish": {"allow": subjects_to_publish(party, exchange)},
            "subscribe": {"allow": subjects_to_hear(party)},
        },
    }


__all__ = ["configure_server"]
