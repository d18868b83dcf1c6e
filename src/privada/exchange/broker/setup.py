"""The folder of a broker: what it is, its certificates, its configuration, and what each party gets.

::

    broker/
      broker.toml                  what was asked for; edit it and run init again
      nats.conf                    made from it
      authority/                   ca.pem, ca.key: for the administrator alone
      server/                      certificate.pem, key.pem, and the store
      parties/owner-clinic/        link.toml, ca.pem, certificate.pem, key.pem: for that party alone
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path

from privada._text import quoted
from privada._toml import Section
from privada.exceptions import InputError
from privada.exchange.broker.certificates import Authority, write_secret
from privada.exchange.broker.permissions import PARTY_API, Party, subjects_to_hear, subjects_to_publish
from privada.exchange.couriers.nats import stream_of, subject_of
from privada.exchange.link import JETSTREAM_API, Link

ADMINISTRATOR = Party("administrator")
KEEPER = "EXCHANGE"  # the account that keeps the stream
_LARGEST_PAYLOAD = 1 << 20


@dataclass(frozen=True, kw_only=True)
class BrokerPlan:
    """Where a broker is and who may use it.

    Parameters
    ----------
    host : str, default="localhost"
        The name by which parties reach it. On ``localhost`` nobody on another machine can connect.
    port : int, default=4222
    exchange : str, default="exchange"
    owners, learners : tuple of str, default=()
        Names; an owner with several data sets is ``"clinic=scans,visits"``.
    days : int, default=365
        For how long certificates are valid.
    largest_store : int, default=10 GB
        Bytes of disk that the exchange may take.
    """

    host: str = "localhost"
    port: int = 4222
    exchange: str = "exchange"
    owners: tuple[str, ...] = ()
    learners: tuple[str, ...] = ()
    days: int = 365
    largest_store: int = 10 * 10**9

    def __post_init__(self) -> None:
        for name, least, most in (("port", 1, 65535), ("days", 1, 3650), ("largest_store", 1 << 20, 1 << 60)):
            if not least <= getattr(self, name) <= most:
                raise InputError(f"Expected {name} from {least} to {most}, got {getattr(self, name)}.")
        if not self.host or not all(part.isalnum() for part in self.host.replace("-", ".").split(".")):
            raise InputError(f"Expected host to be a name or an IPv4 address, got {quoted(self.host)}.")
        Link(servers=("nats://localhost",), exchange=self.exchange)
        names = [party.common_name for party in self.parties]
        datasets = [name for party in self.parties for name in party.datasets or (party.common_name,)]
        if len(set(names)) < len(names) or len(set(datasets)) < len(datasets):
            raise InputError("Expected each owner, each data set and each learner once.")

    @property
    def parties(self) -> list[Party]:
        """Everybody who may connect."""
        owners = [Party.parse_owner(text) for text in self.owners]
        return [ADMINISTRATOR, *owners, *(Party("learner", name) for name in self.learners)]

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def url(self) -> str:
        """Where parties connect to."""
        return f"tls://{self.host}:{self.port}"

    def with_parties(self, owners: Iterable[str], learners: Iterable[str]) -> BrokerPlan:
        """The same with more parties; an owner that is there already gets the data sets named now."""
        by_name = {Party.parse_owner(text).name: text for text in (*self.owners, *owners)}
        return replace(
            self,
            owners=tuple(by_name.values()),
            learners=tuple(dict.fromkeys((*self.learners, *learners))),
        )

    @classmethod
    def read(cls, folder: Path) -> BrokerPlan:
        """Read a folder's ``broker.toml``."""
        section = Section.read(folder / "broker.toml")
        with section.blaming("host", "port", "exchange", "owners", "learners", "days", "largest_store"):
            plan = cls(
                host=section.string("host"),
                port=section.whole("port"),
                exchange=section.string("exchange"),
                owners=tuple(map(str, section.array("owners"))),
                learners=tuple(map(str, section.array("learners"))),
                days=section.whole("days"),
                largest_store=section.whole("largest_store"),
            )
        section.done()
        return plan

    def to_toml(self) -> str:
        """The text of ``broker.toml``."""
        names = ("host", "port", "exchange", "owners", "learners", "days", "largest_store")
        return "".join(f"{name} = {json.dumps(getattr(self, name))}\n" for name in names)


def set_up_broker(folder: Path, plan: BrokerPlan) -> list[Path]:
    """Write what is missing in a broker's folder, and its configuration anew; the parties' folders.

    The authority and the parties' certificates stay; the server gets a new one. A party that is no longer
    in the plan keeps its files and may not connect any more.
    """
    for name in ("authority", "server", "parties"):
        _make_private(folder / name)
    authority = Authority.open(folder / "authority", name=f"privada {plan.exchange}")
    hosts = dict.fromkeys((plan.host, "localhost", "127.0.0.1"))
    _write_pair(folder / "server", authority, authority.issue_to_server(hosts, days=plan.days))
    made = [_write_party(folder / "parties", authority, plan, party) for party in plan.parties]
    (folder / "nats.conf").write_text(server_configuration(folder, plan), encoding="utf-8")
    (folder / "broker.toml").write_text(plan.to_toml(), encoding="utf-8")
    return made


def server_configuration(folder: Path, plan: BrokerPlan) -> str:
    """The text of ``nats.conf``."""
    home = folder.resolve()
    settings = {
        "server_name": f"privada-{plan.exchange}",
        "host": "127.0.0.1" if plan.is_local else "0.0.0.0",  # noqa: S104 - a host for others was named
        "port": plan.port,
        "max_payload": _LARGEST_PAYLOAD,
        "tls": {
            "cert_file": str(home / "server" / "certificate.pem"),
            "key_file": str(home / "server" / "key.pem"),
            "ca_file": str(home / "authority" / "ca.pem"),
            "verify_and_map": True,
            "handshake_first": True,
            "min_version": "1.3",
            "timeout": 5,
        },
        "jetstream": {
            "store_dir": str(home / "server" / "store"),
            "max_memory_store": 1 << 26,
            "max_file_store": plan.largest_store,
            "sync_interval": "always",
        },
        "accounts": _accounts(plan),
    }
    return "# Made by privada link init from broker.toml.\n" + json.dumps(settings, indent=2) + "\n"


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


def _write_party(parties: Path, authority: Authority, plan: BrokerPlan, party: Party) -> Path:
    place = parties / party.common_name
    _make_private(place)
    if not (place / "certificate.pem").exists():
        _write_pair(place, authority, authority.issue_to_party(party.common_name, days=plan.days))
    lines = {
        "servers": [plan.url],
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


__all__ = ["ADMINISTRATOR", "BrokerPlan", "server_configuration", "set_up_broker"]
