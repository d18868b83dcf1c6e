"""An authority of the broker's own, and the certificates that it issues."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from privada import _files
from privada.exceptions import InputError

_CLOCKS_DIFFER = timedelta(hours=1)
_AUTHORITY_DAYS = 3650
_LARGEST = 1 << 16
_CLIENT, _SERVER = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH


@dataclass(frozen=True)
class Authority:
    """Signs the certificates of one broker and of its parties.

    Its key stays with the administrator: whoever has it can be any party to the broker. Questions and
    releases are signed by keys of their own, which the authority knows nothing of.
    """

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def open(cls, folder: Path, *, name: str) -> Authority:
        """Read the authority in a folder, or make one there: ``ca.pem`` and ``ca.key``."""
        if not (folder / "ca.key").exists():
            cls._create(name).save(folder)
        try:
            certificate = x509.load_pem_x509_certificate(_read(folder / "ca.pem"))
            key = serialization.load_pem_private_key(_read(folder / "ca.key"), password=None)
        except ValueError:
            raise InputError(f"{folder.name} holds no authority that can be read.") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
            raise InputError(f"In {folder.name}, ca.key is not the key of ca.pem.")
        return cls(certificate, key)

    @classmethod
    def _create(cls, name: str) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        made = (
            _begin(name, name, key.public_key(), days=_AUTHORITY_DAYS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        return cls(made.sign(key, hashes.SHA256()), key)

    def save(self, folder: Path) -> None:
        """Write ``ca.pem`` and, for its owner alone to read, ``ca.key``."""
        write_secret(folder / "ca.key", _key_text(self.key))
        (folder / "ca.pem").write_bytes(self.text)

    @property
    def text(self) -> bytes:
        """The certificate, which is public, as PEM."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def issue_to_party(self, name: str, *, days: int) -> tuple[bytes, bytes]:
        """Certificate and key of a party, as PEM; the broker knows it by this name."""
        return self._issue(name, (_CLIENT,), (), days)

    def issue_to_server(self, hosts: Iterable[str], *, days: int) -> tuple[bytes, bytes]:
        """Certificate and key of a server at these addresses, as PEM."""
        return self._issue("server", (_SERVER,), hosts, days)

    def issue_to_route(self, hosts: Iterable[str], *, days: int) -> tuple[bytes, bytes]:
        """Certificate and key by which the servers of a cluster know each other, as PEM."""
        return self._issue("server", (_CLIENT, _SERVER), hosts, days)

    def _issue(
        self, name: str, usages: Iterable[x509.ObjectIdentifier], hosts: Iterable[str], days: int
    ) -> tuple[bytes, bytes]:
        key, issuer = ec.generate_private_key(ec.SECP256R1()), self.certificate
        above = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        made = (
            _begin(name, _common_name(issuer), key.public_key(), days=days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(above, critical=False)
        )
        if names := [_general_name(host) for host in hosts]:
            made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
        text = made.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        return text, _key_text(key)


def write_secret(path: Path, text: bytes) -> None:
    """Write a new file that only its owner can read."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(text)


def _begin(name: str, issuer: str, key: ec.EllipticCurvePublicKey, *, days: int) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .issuer_name(_named(issuer))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER)
        .not_valid_after(now + timedelta(days=days))
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _common_name(certificate: x509.Certificate) -> str:
    return str(certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_text(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _read(path: Path) -> bytes:
    return _files.read_bytes(path, largest=_LARGEST)


__all__ = ["Authority", "write_secret"]
