"""Real servers for the couriers: each starts once, on a free port, and is stopped at the end."""

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

BESIDE_PYTHON = str(Path(sys.executable).parent)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_port(port, process, seconds=20.0):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert process.poll() is None, "the server ended at once"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    pytest.fail("the server did not start")


def stop(process):
    process.terminate()
    process.wait(timeout=10)


class NatsServer:
    """A NATS server with JetStream that can be killed and started again on its port, with its store."""

    def __init__(self, folder):
        self.program = shutil.which("nats-server", path=os.pathsep.join((BESIDE_PYTHON, os.environ["PATH"])))
        if self.program is None:
            pytest.skip("there is no nats-server")
        self.folder, self.port = folder, free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        store = str(self.folder / "store")
        command = [self.program, "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", store]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        await_port(self.port, self.process)

    def kill(self):
        self.process.kill()
        self.process.wait(timeout=10)


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory):
    """A server without encryption, for what needs none."""
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    yield server
    server.kill()


@pytest.fixture
def own_nats_server(tmp_path):
    """A server of the test's own, to be killed and started again."""
    server = NatsServer(tmp_path)
    yield server
    server.kill()


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory):
    """An S3 server with one bucket; the environment has its credentials."""
    pytest.importorskip("moto")
    boto3 = pytest.importorskip("boto3")
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    log = Path(tmp_path_factory.mktemp("s3") / "log")
    with log.open("wb") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=sink)
    names = {
        "AWS_ACCESS_KEY_ID": "tests",
        "AWS_SECRET_ACCESS_KEY": "tests-secret",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
    }
    try:
        await_port(port, process)
        client = boto3.client(
            "s3",
            endpoint_url=names["AWS_ENDPOINT"],
            region_name="us-east-1",
            aws_access_key_id="tests",
            aws_secret_access_key="tests-secret",
        )
        client.create_bucket(Bucket="exchange")
        with pytest.MonkeyPatch.context() as patch:
            for name, value in names.items():
                patch.setitem(os.environ, name, value)
            yield names["AWS_ENDPOINT"]
    finally:
        stop(process)


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    """The folder of a running broker with TLS, two owners and two learners."""
    from privada.exceptions import InputError
    from privada.exchange.broker import find_program, running_server, set_up_broker
    from privada.exchange.broker_plan import BrokerPlan

    try:
        find_program()
    except InputError:
        pytest.skip("there is no nats-server")
    folder = tmp_path_factory.mktemp("broker")
    plan = BrokerPlan(port=free_port(), owners=("clinic", "lab"), learners=("alice", "bob"))
    set_up_broker(folder, plan)
    with running_server(folder):
        yield folder


@pytest.fixture
def party(broker):
    """A function that opens a party's courier."""
    from privada.exchange.nats import Link

    opened = []

    def open_one(name):
        opened.append(Link.read(broker / "parties" / name / "link.toml").open(patience=5))
        return opened[-1]

    yield open_one
    for courier in opened:
        courier.close()


@pytest.fixture
def connect():
    """A function that opens a courier to a server."""
    from privada.exchange.nats import NatsCourier
    from privada.exchange.nats_client import Connection

    opened = []

    def open_one(server, *, patience=5.0, exchange="trial"):
        opened.append(NatsCourier(Connection([server.url], patience=patience), exchange=exchange))
        return opened[-1]

    yield open_one
    for courier in opened:
        courier.close()


@pytest.fixture
def courier(own_nats_server, connect):
    made = connect(own_nats_server)
    made.create_exchange()
    return made


@pytest.fixture
def register_courier(tmp_path, monkeypatch):
    """A function that installs a package with an entry point: a folder of its metadata on the path."""
    monkeypatch.syspath_prepend(Path(__file__).parent / "outside")

    def register(scheme, value, package="pigeon-post"):
        site = tmp_path / package
        metadata = site / f"{package.replace('-', '_')}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[privada.couriers]\n{scheme} = {value}\n")
        monkeypatch.syspath_prepend(site)

    return register
