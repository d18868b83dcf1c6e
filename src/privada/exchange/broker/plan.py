"""What a broker is: where its servers are, and who may use them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path

from privada._text import quoted
from privada._toml import Section
from privada.exceptions import InputError
from privada.exchange.broker.permissions import Party
from privada.exchange.link import Link

ADMINISTRATOR = Party("administrator")
_HIGHEST_PORT = 65535
_ROUTES_ABOVE = 2000  # NATS servers find each other at 6222 if parties find them at 4222


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
        """Where parties connect to."""
        return f"tls://{self.host}:{self.port}"

    @property
    def route_port(self) -> int:
        """Where the other servers connect to."""
        return self.port + _ROUTES_ABOVE

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def listens_at(self) -> str:
        """The address that it binds."""
        return "127.0.0.1" if self.is_local else "0.0.0.0"  # noqa: S104 - a host for others was named


@dataclass(frozen=True, kw_only=True)
class BrokerPlan:
    """Where a broker is and who may use it.

    Parameters
    ----------
    host : str, default="localhost"
        The name by which parties reach it. On ``localhost`` nobody on another machine can connect.
    port : int, default=4222
    servers : tuple of str, default=()
        Of a cluster: its three or five servers, as ``HOST`` or ``HOST:PORT``, instead of ``host``.
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
    servers: tuple[str, ...] = ()
    exchange: str = "exchange"
    owners: tuple[str, ...] = ()
    learners: tuple[str, ...] = ()
    days: int = 365
    largest_store: int = 10 * 10**9

    def __post_init__(self) -> None:
        for name, least, most in (("days", 1, 3650), ("largest_store", 1 << 20, 1 << 60)):
            if not least <= getattr(self, name) <= most:
                raise InputError(f"Expected {name} from {least} to {most}, got {getattr(self, name)}.")
        self._check_servers()
        Link(servers=("nats://localhost",), exchange=self.exchange)
        names = [party.common_name for party in self.parties]
        datasets = [name for party in self.parties for name in party.datasets or (party.common_name,)]
        if len(set(names)) < len(names) or len(set(datasets)) < len(datasets):
            raise InputError("Expected each owner, each data set and each learner once.")

    def _check_servers(self) -> None:
        servers = self.all_servers
        if self.servers and (len(servers) not in (3, 5) or len(set(servers)) < len(servers)):
            raise InputError("Expected three or five different servers in a cluster.")
        if self.servers and max(server.route_port for server in servers) > _HIGHEST_PORT:
            raise InputError(f"Expected ports of at most {_HIGHEST_PORT - _ROUTES_ABOVE} in a cluster.")

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
        """Where parties connect to."""
        return [server.url for server in self.all_servers]

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
        with section.blaming(
            "host", "port", "servers", "exchange", "owners", "learners", "days", "largest_store"
        ):
            plan = cls(
                host=section.string("host"),
                port=section.whole("port"),
                servers=tuple(map(str, section.array("servers", []))),
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
        names = ("host", "port", "servers", "exchange", "owners", "learners", "days", "largest_store")
        return "".join(f"{name} = {json.dumps(getattr(self, name))}\n" for name in names)


__all__ = ["ADMINISTRATOR", "BrokerPlan", "Server"]
