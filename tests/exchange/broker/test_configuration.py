"""What servers are told: accounts of parties, and a cluster that really runs."""

import json
import socket
import ssl
import subprocess
from contextlib import contextmanager
from pathlib import PurePath

import pytest

from privada.exchange.broker.configuration import configure_server
from privada.exchange.broker.plan import BrokerPlan
from privada.exchange.broker.server import create_exchange, find_program, stop_server
from privada.exchange.broker.setup import set_up_broker
from privada.exchange.link import Link
from tests.exchange.conftest import free_port

PLAN = BrokerPlan(owners=("clinic",), learners=("alice",))


def test_every_party_has_an_account_that_reaches_its_own_part_only():
    text = configure_server(PLAN, PLAN.all_servers[0], home=PurePath())
    accounts = json.loads(text.split("\n", 1)[1])["accounts"]
    assert list(accounts) == ["EXCHANGE", "owner-clinic", "learner-alice"]
    assert [name for name, account in accounts.items() if "jetstream" in account] == ["EXCHANGE"]
    reached = {
        (name, each["service"]["subject"])
        for name, account in accounts.items()
        for each in account.get("imports", ())
        if "service" in each and not each["to"].startswith("privada-api.")
    }
    assert reached == {
        ("owner-clinic", "privada.exchange.releases.clinic.>"),
        ("owner-clinic", "privada.exchange.refusals.clinic.>"),
        ("learner-alice", "privada.exchange.questions.>"),
    }


def free_ports():
    """Three ports at which nobody listens, nor where the servers would look for each other."""
    ports = set()
    while len(ports) < 3:
        port = free_port()
        if port < 63_000 and free(port):
            ports.add(port)
    return sorted(ports)


def free(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port + 2000)) != 0


@contextmanager
def running(folder):
    """A server of a cluster, started as the page says: in its own folder."""
    with (folder / "log").open("wb") as log:
        command = [find_program(), "-c", "nats.conf"]
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield server
        finally:
            stop_server(server)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, broker):
    """The folder of a cluster of three, which runs, and its servers."""
    folder = tmp_path_factory.mktemp("cluster")
    servers = tuple(f"localhost:{port}" for port in free_ports())
    plan = BrokerPlan(servers=servers, owners=("clinic",), learners=("alice",))
    set_up_broker(folder, plan)
    places = [folder / "servers" / server.name for server in plan.all_servers]
    with running(places[0]) as one, running(places[1]) as two, running(places[2]) as three:
        create_exchange(folder / "parties/administrator/link.toml", replicas=3)
        yield folder, plan, [one, two, three]


def reaches_a_route(port, place):
    """Whether a server lets somebody with this certificate in as another server."""
    context = ssl.create_default_context(cafile=place / "ca.pem")
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(place / "certificate.pem", place / "key.pem")
    with socket.create_connection(("127.0.0.1", port), timeout=5) as plain:
        try:
            with context.wrap_socket(plain) as route:
                return route.recv(1) != b""  # with TLS 1.3 a refusal comes after the handshake
        except TimeoutError:
            return True
        except (ssl.SSLError, ConnectionError):
            return False


def test_a_partys_certificate_opens_no_route(cluster):
    folder, plan, _ = cluster
    port = plan.all_servers[0].route_port
    assert reaches_a_route(port, folder / "servers" / plan.all_servers[1].name / "routes")
    for party in ("learner-alice", "owner-clinic", "administrator"):
        assert not reaches_a_route(port, folder / "parties" / party)


def test_items_and_parties_survive_the_loss_of_a_server(cluster):
    folder, _, servers = cluster
    alice, clinic = (
        Link.read(folder / "parties" / name / "link.toml") for name in ("learner-alice", "owner-clinic")
    )
    with alice.open() as learner, clinic.open() as owner:
        assert learner.put("questions/clinic/a", b"x")
        assert owner.wait("questions/clinic/", known=(), seconds=10) == ["questions/clinic/a"]
        servers[0].kill()  # it is the first in every link, so both are connected to it
        servers[0].wait()
        assert learner.put("questions/clinic/b", b"y")
        assert learner.put("questions/clinic/a", b"z") is False
        fresh = owner.wait("questions/clinic/", known=["questions/clinic/a"], seconds=20)
        assert fresh == ["questions/clinic/b"]
        assert owner.get("questions/clinic/a") == b"x"
        assert owner.put("releases/clinic/a", b"r")
        assert learner.get("releases/clinic/a") == b"r"
