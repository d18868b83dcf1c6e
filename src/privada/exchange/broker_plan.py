"""What a broker is: where its servers are, who may use which subjects, and the ``nats.conf`` that follows.

==============  ====================================  ===========================================
party           writes                                reads
==============  ====================================  ===========================================
owner NAME      releases and refusals of NAME         questions to NAME; its releases, refusals
learner         questions to any owner                releases and refusals; questions by their
                                                      whole key, never a list of them
administrator   nothing                               nothing; creates the exchange
==============  ====================================  ===========================================

Nobody may delete, purge, change a stream, or listen to another party's replies.

Each party has an account of its own at the server, into which exactly these subjects are imported from the
account that keeps the exchange. Permissions alone would not do: they say where a party may write, not where
the server sends its reply, and a reply that is sent to another party's key would be stored there. A reply
stays in the account of the party that asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path, PurePath
from typing import Literal

from privada._text import quoted
from privada._toml import Section
from privada.exceptions import InputError
from privada.exchange.courier import is_segment
from privada.exchange.nats import DEFAULT_EXCHANGE, JETSTREAM_API, Link, stream_of, subject_of

Role = Literal["owner", "learner", "administrator"]
PARTY_API = "privada-api"  # what JetStream's API is called in a party's account, where JetStream is off
KEEPER = "EXCHANGE"  # the account that keeps the stream
_LARGEST_PAYLOAD = 1 << 20
_HIGHEST_PORT = 65535
_ROUTES_ABOVE = 2000  # NATS servers reach each other at 6222 if parties reach them at 4222
_KEYS = ("host", "port", "servers", "exchange", "owners", "learners", "days", "largest_store")


@dataclass(frozen=True)
class Party:
    """Who may connect: an owner or a learner with a name, or the administrator.

    An owner with several data sets has ``datasets``, their names in studies; by default, one of its name.
    """

    role: Role
    name: str = ""
    datasets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in (self.name, *self.datasets) if self.role != "administrator" else ():
            if not is_segment(name) or "." in name:
                raise InputError(f"Expected a name of letters, digits, - and _, got {quoted(name)}.")

    @classmethod
    def parse_owner(cls, text: str) -> Party:
        """Read ``NAME`` or, for several data sets, ``NAME=DATASET,DATASET``.

        >>> Party.parse_owner("clinic=scans,visits").datasets
        ('scans', 'visits')
        """
        name, equals, datasets = text.partition("=")
        return cls("owner", name, tuple(datasets.split(",")) if equals else ())

    @property
    def common_name(self) -> str:
        """The name in the party's certificate, by which the server knows it.

        >>> Party("owner", "clinic").common_name
        'owner-clinic'
        """
        return f"{self.role}-{self.name}" if self.name else self.role


ADMINISTRATOR = Party("administrator")


def subjects_to_publish(party: Party, exchange: str) -> list[str]:
    """Return the subjects that a party may publish to, requests to JetStream included.

    >>> subjects_to_publish(Party("administrator"), "trial")
    ['$JS.API.STREAM.CREATE.privada-trial']
    """
    stream = stream_of(exchange)
    if party.role == "administrator":
        return [f"$JS.API.STREAM.CREATE.{stream}"]
    if party.role == "owner":
        names = party.datasets or (party.name,)
        written = [f"{kind}/{name}" for name in names for kind in ("releases", "refusals")]
        listed = [*(f"questions/{name}" for name in names), *written]
        fetched = listed
    else:
        written, listed = ["questions"], ["releases", "refusals"]
        fetched = [*listed, "questions"]

    def below(folder: str) -> str:
        return subject_of(exchange, f"{folder}/>")

    return [
        *(below(folder) for folder in written),
        *(f"{PARTY_API}.CONSUMER.CREATE.{stream}.*.{below(folder)}" for folder in listed),
        *(f"{PARTY_API}.DIRECT.GET.{stream}.{below(folder)}" for folder in fetched),
    ]


@dataclass(frozen=True)
class Server:
    """One server of a broker: where parties reach it."""

    host: str
    port: int

    def __post_init__(self) -> None:
        if not 1 <= self.port <= _HIGHEST_PORT:
            raise InputError(f"Expected port from 1 to {_HIGHEST_PORT}, got {self.port}.")
        if not self.host or not all(part.isalnum() for part in self.host.replace("-", ".").split(".")):
            raise InputError(f"Expected host to be a name or an IPv4 address, got {quoted(self.host)}.")

    @classmethod
    def parse(cls, text: str, *, port: int) -> Server:
        """Read ``HOST`` or ``HOST:PORT``.

        >>> Server.parse("one.example.org", port=4222).url
        'tls://one.example.org:4222'
        """
        host, colon, own = text.partition(":")
        if colon and not own.isdecimal():
            raise InputError(f"Expected a server as HOST or HOST:PORT, got {quoted(text)}.")
        return cls(host, int(own) if colon else port)

    @property
    def name(self) -> str:
        """Its name among the others, and that of its folder."""
        return f"{self.host}-{self.port}"

    @property
    def url(self) -> str:
        """The URL at which parties connect."""
        return f"tls://{self.host}:{self.port}"

    @property
    def route_port(self) -> int:
        """The port at which the other servers connect."""
        return self.port + _ROUTES_ABOVE

    @property
    def address(self) -> str:
        """The address that it binds: of this machine only, unless its host can be reached from others."""
        try:
            is_local = ip_address(self.host).is_loopback
        except ValueError:
            is_local = self.host == "localhost"
        return "127.0.0.1" if is_local else "0.0.0.0"  # noqa: S104 - a host for others was named


@dataclass(frozen=True, kw_only=True)
class BrokerPlan:
    """Where a broker is and who may use it.

    A cluster has three or five ``servers``, each as ``HOST`` or ``HOST:PORT``, instead of ``host``.
    """

    host: str = "localhost"  # by which parties reach it; nobody on another machine can connect to localhost
    port: int = 4222
    servers: tuple[str, ...] = ()
    exchange: str = DEFAULT_EXCHANGE
    owners: tuple[str, ...] = ()  # names; an owner with several data sets is "clinic=scans,visits"
    learners: tuple[str, ...] = ()
    days: int = 365  # for which certificates are valid
    largest_store: int = 10 * 10**9  # bytes of disk that the exchange may take

    def __post_init__(self) -> None:
        for name, least, most in (("days", 1, 3650), ("largest_store", 1 << 20, 1 << 60)):
            if not least <= getattr(self, name) <= most:
                raise InputError(f"Expected {name} from {least} to {most}, got {getattr(self, name)}.")
        servers = self.all_servers
        if self.servers and (len(servers) not in (3, 5) or len(set(servers)) < len(servers)):
            raise InputError("Expected three or five different servers in a cluster.")
        if self.servers and max(server.route_port for server in servers) > _HIGHEST_PORT:
            raise InputError(f"Expected ports of at most {_HIGHEST_PORT - _ROUTES_ABOVE} in a cluster.")
        Link(servers=("nats://localhost",), exchange=self.exchange)  # checks the name of the exchange
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
    def all_servers(self) -> list[Server]:
        """Its servers: one, or those of a cluster."""
        return [Server.parse(text, port=self.port) for text in self.servers] or [Server(self.host, self.port)]

    @property
    def urls(self) -> list[str]:
        """The URLs at which parties connect."""
        return [server.url for server in self.all_servers]

    def with_parties(self, owners: Iterable[str], learners: Iterable[str]) -> BrokerPlan:
        """Return the same with more parties; an owner that exists already gets the data sets named now."""
        by_name = {Party.parse_owner(text).name: text for text in (*self.owners, *owners)}
        all_learners = dict.fromkeys((*self.learners, *learners))
        return replace(self, owners=tuple(by_name.values()), learners=tuple(all_learners))

    @classmethod
    def read(cls, folder: Path) -> BrokerPlan:
        """Read a folder's ``broker.toml``."""
        section = Section.read(folder / "broker.toml")
        with section.blaming(*_KEYS):
            plan = cls(
                servers=tuple(
                    map(str, section.array("servers", []))
                ),  # none in a plan from before there were clusters
                owners=tuple(map(str, section.array("owners"))),
                learners=tuple(map(str, section.array("learners"))),
                host=section.string("host"),
                exchange=section.string("exchange"),
                **{name: section.whole(name) for name in ("port", "days", "largest_store")},
            )
        section.done()
        return plan

    def to_toml(self) -> str:
        """Return the text of ``broker.toml``."""
        return "".join(f"{name} = {json.dumps(getattr(self, name))}\n" for name in _KEYS)


def configure_server(plan: BrokerPlan, server: Server, *, home: PurePath) -> str:
    """Return the ``nats.conf`` of a server whose certificate, key and store are in a folder."""
    settings = {
        "server_name": server.name,
        "host": server.address,
        "port": server.port,
        "max_payload": _LARGEST_PAYLOAD,
        "tls": _list_certificates(home)
        | {"verify_and_map": True, "handshake_first": True, "min_version": "1.3", "timeout": 5},
        "jetstream": {
            "store_dir": str(home / "store"),
            "max_memory_store": 1 << 26,
            "max_file_store": plan.largest_store,
            "sync_interval": "always",
        },
        "accounts": _configure_accounts(plan),
    }
    if plan.servers:
        # Whoever is let in as a server reads and writes everything, so routes have an authority of their own:
        # the certificate of a party opens none.
        settings["cluster"] = {
            "name": f"privada-{plan.exchange}",
            "listen": f"{server.address}:{server.route_port}",
            "routes": [f"nats-route://{other.host}:{other.route_port}" for other in plan.all_servers],
            "no_advertise": True,
            "tls": _list_certificates(home / "routes") | {"verify": True, "min_version": "1.3", "timeout": 5},
        }
    return "# Made by privada broker init from broker.toml.\n" + json.dumps(settings, indent=2) + "\n"


def _list_certificates(home: PurePath) -> dict[str, object]:
    """A certificate, its key, and the authority that must have signed the other side's."""
    names = {"cert_file": "certificate.pem", "key_file": "key.pem", "ca_file": "ca.pem"}
    return {key: str(home / name) for key, name in names.items()}


def _configure_accounts(plan: BrokerPlan) -> dict[str, object]:
    """An account that keeps the exchange, and one for each party, which reaches no more than its own part.

    Permissions say where a party may write, not where the server may send what it replies. In an account of
    its own a reply stays with the party, so nobody can have the server write for them.
    """

    def user(party: Party) -> dict[str, object]:
        publish = {"allow": subjects_to_publish(party, plan.exchange)}
        subscribe = {"allow": [inbox_of(party)]}
        return {
            "user": f"CN={party.common_name}",
            "permissions": {"publish": publish, "subscribe": subscribe},
        }

    def inbox_of(party: Party) -> str:
        return f"_INBOX.{party.common_name}.>"  # a party may hear replies to itself only

    def imported(subject: str) -> dict[str, str]:
        return {"account": KEEPER, "subject": subject}

    parties = [party for party in plan.parties if party != ADMINISTRATOR]
    names, stream = [party.common_name for party in parties], stream_of(plan.exchange)
    # What the accounts of the parties may import parts of.
    services = (
        subject_of(plan.exchange, ">"),
        f"{JETSTREAM_API}.CONSUMER.CREATE.{stream}.>",
        f"{JETSTREAM_API}.DIRECT.GET.{stream}.>",
    )
    exports = [*({"service": subject} for subject in services), {"stream": "_INBOX.>"}]
    accounts: dict[str, object] = {
        KEEPER: {
            "jetstream": "enabled",
            "users": [user(ADMINISTRATOR)],
            "exports": [export | {"accounts": names} for export in exports],
        }
    }
    for party in parties:
        # The requests that the party may make, and the keys that it is sent.
        requests = [
            {"service": imported(subject.replace(PARTY_API, JETSTREAM_API)), "to": subject}
            for subject in subjects_to_publish(party, plan.exchange)
        ]
        replies = {"stream": imported(inbox_of(party))}
        accounts[party.common_name] = {"users": [user(party)], "imports": [*requests, replies]}
    return accounts


__all__ = ["ADMINISTRATOR", "PARTY_API", "BrokerPlan", "Party", "Server", "configure_server"]
