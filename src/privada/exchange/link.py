"""How a party reaches a NATS server: where it is, whom to trust, and which certificate to show.

The server's administrator gives each party a folder with a ``link.toml``::

    servers = ["tls://broker.example.org:4222"]
    exchange = "trial"
    ca = "ca.pem"
    certificate = "certificate.pem"
    key = "key.pem"
"""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, parse_qs, urlsplit

from privada import _files
from privada._text import quoted
from privada._toml import Section
from privada.exceptions import InputError
from privada.exchange.courier import is_segment

if TYPE_CHECKING:
    from privada.exchange.couriers.nats import NatsCourier

_FILES = ("ca", "certificate", "key")
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_LARGEST_CERTIFICATE = 1 << 16
DEFAULT_EXCHANGE = "exchange"
JETSTREAM_API = "$JS.API"


@dataclass(frozen=True, kw_only=True)
class Link:
    """A validated way to a server.

    Parameters
    ----------
    servers : tuple of str
        URLs of one server, or of those of a cluster: all ``tls://``, or ``nats://`` on this machine.
    exchange : str, default="exchange"
        Name of the exchange.
    ca, certificate, key : path, optional
        PEM files: the authority that is trusted, this party's certificate, and its key. All with
        ``tls://``, none without.
    api : str, default="$JS.API"
        Subject below which the server answers this party's requests to JetStream; a broker that gives
        each party an account of its own has another one.
    """

    servers: tuple[str, ...]
    exchange: str = DEFAULT_EXCHANGE
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    api: str = JETSTREAM_API

    def __post_init__(self) -> None:
        if not all(map(is_segment, self.api.removeprefix("$").split("."))):
            raise InputError(f"Expected api to be a subject such as {JETSTREAM_API}, got {quoted(self.api)}.")
        if not is_segment(self.exchange) or "." in self.exchange:
            raise InputError(
                f"Expected exchange to be letters, digits, - and _, got {quoted(self.exchange)}."
            )
        if not self.servers:
            raise InputError("Expected servers to hold at least one URL.")
        schemes = {self._check_server(server) for server in self.servers}
        named = {name for name in _FILES if getattr(self, name) is not None}
        if schemes != {"tls"} and named:
            raise InputError("Certificates are for tls:// servers; expected all servers to be such.")
        if "tls" in schemes and len(named) < len(_FILES):
            missing = ", ".join(name for name in _FILES if name not in named)
            raise InputError(f"A tls:// server needs ca, certificate and key; missing: {missing}.")

    @staticmethod
    def _check_server(url: str) -> str:
        parts = urlsplit(url)
        try:
            there = bool(parts.hostname) and parts.scheme in ("nats", "tls") and (parts.port or 4222) > 0
        except ValueError:
            there = False
        if not there or parts.path or parts.query or parts.fragment:
            raise InputError(f"Expected a server such as tls://broker.example.org:4222, got {quoted(url)}.")
        if "@" in parts.netloc:
            raise InputError("A URL with a user or password in it would be logged; give none.")
        if parts.scheme == "nats" and parts.hostname not in _LOOPBACK:
            raise InputError("Expected tls:// for a server on another machine; nats:// is not encrypted.")
        return parts.scheme

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Link:
        """Read a ``link.toml``; its files are beside it."""
        section, home = Section.read(path), Path(path).parent
        with section.blaming("servers", "exchange", "api", *_FILES):
            link = cls(
                servers=tuple(str(each) for each in section.array("servers")),
                exchange=section.string("exchange", DEFAULT_EXCHANGE),
                api=section.string("api", JETSTREAM_API),
                **{name: home / section.string(name) for name in _FILES if name in section},
            )
        section.done()
        return link

    @classmethod
    def from_url(cls, parts: SplitResult) -> Link:
        """Read a URL such as ``tls://one:4222,two:4222/trial?ca=ca.pem&certificate=me.pem&key=me.key``."""
        told = parse_qs(parts.query, keep_blank_values=True)
        if unknown := set(told) - {*_FILES, "api"}:
            raise InputError(f"Expected ca, certificate and key in the URL, got {quoted(min(unknown))}.")
        return cls(
            servers=tuple(f"{parts.scheme}://{host}" for host in parts.netloc.split(",")),
            exchange=parts.path.strip("/") or DEFAULT_EXCHANGE,
            api=told.get("api", [JETSTREAM_API])[-1],
            **{name: Path(told[name][-1]) for name in _FILES if name in told},
        )

    def open(self, *, patience: float = 20.0) -> NatsCourier:
        """Connect; a server that is away is waited for, here and later, for ``patience`` seconds."""
        from privada.exchange.couriers.connection import Connection
        from privada.exchange.couriers.nats import NatsCourier

        tls = self._tls_context()
        connection = Connection(self.servers, tls=tls, inbox=self._inbox(), patience=patience)
        return NatsCourier(connection, exchange=self.exchange, api=self.api)

    def _tls_context(self) -> ssl.SSLContext | None:
        if self.ca is None or self.certificate is None or self.key is None:
            return None
        for file in (self.ca, self.certificate, self.key):
            _files.plain_file(file, largest=_LARGEST_CERTIFICATE)
        try:
            context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=self.ca)
            context.load_cert_chain(self.certificate, self.key, password="")
        except (ssl.SSLError, OSError) as error:
            reason = getattr(error, "reason", None) or "they are not PEM files"
            raise InputError(f"The files of {self.certificate.name} cannot be used: {reason}.") from None
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return context

    def _inbox(self) -> str:
        """Where this party receives replies: below its certificate's name, where nobody else may listen."""
        if self.certificate is None:
            return "_INBOX"
        from cryptography import x509

        blob = _files.read_bytes(self.certificate, largest=_LARGEST_CERTIFICATE)
        names = x509.load_pem_x509_certificate(blob).subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        name = str(names[0].value) if names else ""
        return f"_INBOX.{name}" if is_segment(name) and "." not in name else "_INBOX"


__all__ = ["Link"]
