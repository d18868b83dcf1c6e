"""The folder of a broker: its certificates, its configuration, and what each party gets.

::

    broker/
      broker.toml                  what was asked for; edit it and run init again
      nats.conf                    made from it
      authority/                   ca.pem, ca.key: for the administrator alone
      server/                      certificate.pem, key.pem, and the store
      parties/owner-clinic/        link.toml, ca.pem, certificate.pem, key.pem: for that party alone

A cluster has, instead of ``nats.conf`` and ``server/``, a folder for each of its servers, to be copied there,
and an authority for the connections between them::

      routes/                      ca.pem, ca.key: for the administrator alone
      servers/one.example.org-4222/    nats.conf, certificate.pem, key.pem, ca.pem, routes/
"""

from __future__ import annotations

import json
import os
from pathlib import Path, PurePath

from privada.exchange.broker.certificates import Authority, write_secret
from privada.exchange.broker.configuration import configure_server
from privada.exchange.broker.permissions import PARTY_API, Party
from privada.exchange.broker.plan import ADMINISTRATOR, BrokerPlan, Server
from privada.exchange.link import JETSTREAM_API


def set_up_broker(folder: Path, plan: BrokerPlan) -> list[Path]:
    """Write what is missing in a broker's folder, and its configuration anew; the parties' folders.

    The authority and the parties' certificates stay; the server gets a new one. A party that is no longer
    in the plan keeps its files and may not connect any more.
    """
    for name in ("authority", "parties"):
        _make_private(folder / name)
    authority = Authority.open(folder / "authority", name=f"privada {plan.exchange}")
    if plan.servers:
        _write_cluster(folder, authority, plan)
    else:
        (only,) = plan.all_servers
        _write_server(folder / "server", authority, plan, only)
        text = configure_server(plan, only, home=(folder / "server").resolve())
        (folder / "nats.conf").write_text(text, encoding="utf-8")
    made = [_write_party(folder / "parties", authority, plan, party) for party in plan.parties]
    (folder / "broker.toml").write_text(plan.to_toml(), encoding="utf-8")
    return made


def _write_cluster(folder: Path, authority: Authority, plan: BrokerPlan) -> None:
    """A folder for each server, to be copied there whole: its paths are relative."""
    _make_private(folder / "routes")
    routes = Authority.open(folder / "routes", name=f"privada {plan.exchange} routes")
    for server in plan.all_servers:
        place = folder / "servers" / server.name
        _write_server(place, authority, plan, server)
        _make_private(place / "routes")
        _write_pair(place / "routes", routes, routes.issue_to_route((server.host,), days=plan.days))
        text = configure_server(plan, server, home=PurePath())
        (place / "nats.conf").write_text(text, encoding="utf-8")


def _write_server(place: Path, authority: Authority, plan: BrokerPlan, server: Server) -> None:
    _make_private(place)
    hosts = dict.fromkeys((server.host, "localhost", "127.0.0.1"))
    _write_pair(place, authority, authority.issue_to_server(hosts, days=plan.days))


def _write_party(parties: Path, authority: Authority, plan: BrokerPlan, party: Party) -> Path:
    place = parties / party.common_name
    _make_private(place)
    if not (place / "certificate.pem").exists():
        _write_pair(place, authority, authority.issue_to_party(party.common_name, days=plan.days))
    lines = {
        "servers": plan.urls,
        "exchange": plan.exchange,
        "api": JETSTREAM_API if party == ADMINISTRATOR else PARTY_API,
        "ca": "ca.pem",
        "certificate": "certificate.pem",
        "key": "key.pem",
    }
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in lines.items())
    (place / "link.toml").write_text(text, encoding="utf-8")
    return place


def _write_pair(place: Path, authority: Authority, pair: tuple[bytes, bytes]) -> None:
    """Certificate and key, with the authority's certificate beside them."""
    (place / "ca.pem").write_bytes(authority.text)
    (place / "key.pem").unlink(missing_ok=True)
    write_secret(place / "key.pem", pair[1])
    (place / "certificate.pem").write_bytes(pair[0])


def _make_private(folder: Path) -> None:
    """Make a folder that only its owner can enter."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.name == "posix" and folder.stat().st_mode & 0o077:
        folder.chmod(0o700)


__all__ = ["set_up_broker"]
