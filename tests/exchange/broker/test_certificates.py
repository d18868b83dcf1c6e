"""Certificates on a real server: the wrong authority, an expired one, none at all, and no encryption."""

import socket
import ssl

import pytest

from privada.exceptions import CourierError, InputError
from privada.exchange.broker.certificates import Authority
from privada.exchange.link import Link
from privada.exchange.opening import open_courier


@pytest.fixture
def folder(broker, tmp_path):
    """A copy of a learner's folder, to be changed."""
    source = broker / "parties" / "learner-alice"
    for path in source.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def show(folder, pair):
    (folder / "certificate.pem").write_bytes(pair[0])
    (folder / "key.pem").write_bytes(pair[1])


def refused(folder, match="cannot be used"):
    with pytest.raises(CourierError, match=match):
        Link.read(folder / "link.toml").open(patience=1)


def test_a_copy_that_is_not_changed_is_let_in(folder):
    with open_courier(folder / "link.toml") as courier:
        assert courier.get("releases/clinic/nothing") is None


def test_a_new_certificate_of_a_known_party_is_let_in(folder, broker):
    show(folder, Authority.open(broker / "authority", name="").issue_to_party("learner-alice", days=1))
    test_a_copy_that_is_not_changed_is_let_in(folder)


def test_a_certificate_of_another_authority_is_refused(folder):
    (folder / "other").mkdir()
    show(folder, Authority.open(folder / "other", name="other").issue_to_party("learner-alice", days=1))
    refused(folder)


def test_a_server_of_another_authority_is_refused(folder):
    (folder / "other").mkdir()
    Authority.open(folder / "other", name="other")
    (folder / "ca.pem").write_bytes((folder / "other" / "ca.pem").read_bytes())
    refused(folder, "not trusted")


def test_an_expired_certificate_is_refused(folder, broker):
    show(folder, Authority.open(broker / "authority", name="").issue_to_party("learner-alice", days=-0.01))
    refused(folder)


def test_a_name_that_the_broker_does_not_know_is_refused(folder, broker):
    show(folder, Authority.open(broker / "authority", name="").issue_to_party("learner-eve", days=1))
    refused(folder, "uthorization")


def test_a_server_certificate_is_no_partys(folder, broker):
    server = broker / "server"
    show(folder, ((server / "certificate.pem").read_bytes(), (server / "key.pem").read_bytes()))
    refused(folder)


def test_an_address_that_the_server_was_not_certified_for_is_refused(folder):
    text = (folder / "link.toml").read_text().replace("tls://localhost", "tls://127.1")
    (folder / "link.toml").write_text(text)
    refused(folder, "not trusted: Hostname mismatch")


def test_a_plain_connection_is_refused(folder):
    port = Link.read(folder / "link.toml").servers[0].rpartition(":")[2]
    with pytest.raises(CourierError, match="cannot be used"):
        Link(servers=(f"nats://127.0.0.1:{port}",)).open(patience=1)


def test_a_party_cannot_be_talked_out_of_encryption(folder, nats_server):
    """A server, or somebody between, that offers none: nothing is sent to it."""
    text = (folder / "link.toml").read_text()
    port = Link.read(folder / "link.toml").servers[0].rpartition(":")[2]
    (folder / "link.toml").write_text(text.replace(port, str(nats_server.port)))
    refused(folder)


def test_without_a_certificate_nobody_is_let_in(broker):
    port = int(Link.read(broker / "parties/learner-alice/link.toml").servers[0].rpartition(":")[2])
    context = ssl.create_default_context(cafile=broker / "authority" / "ca.pem")
    with socket.create_connection(("127.0.0.1", port), timeout=5) as plain:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            with context.wrap_socket(plain, server_hostname="localhost") as secure:
                if not secure.recv(1):
                    raise ConnectionResetError


def test_keys_are_for_their_owner_alone(broker):
    keys = [*broker.rglob("*.key"), *broker.rglob("key.pem")]
    assert len(keys) == 7
    assert {path.stat().st_mode & 0o777 for path in keys} == {0o600}
    assert {path.parent.stat().st_mode & 0o777 for path in keys} == {0o700}


def test_an_authority_that_was_changed_is_refused(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        Authority.open(tmp_path / name, name=name)
    (tmp_path / "one" / "ca.pem").write_bytes((tmp_path / "two" / "ca.pem").read_bytes())
    with pytest.raises(InputError, match=r"ca.key is not the key"):
        Authority.open(tmp_path / "one", name="one")
    (tmp_path / "two" / "ca.key").write_text("nothing")
    with pytest.raises(InputError, match="no authority that can be read"):
        Authority.open(tmp_path / "two", name="two")
