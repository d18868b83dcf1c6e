"""Running a broker: it starts, keeps what it has, and ends with its process."""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from privada.exceptions import CourierError, InputError
from privada.exchange.broker import server
from privada.exchange.broker.plan import BrokerPlan
from privada.exchange.broker.setup import set_up_broker
from privada.exchange.link import Link

SERVE = "import sys; from privada.cli import main; sys.exit(main())"


@pytest.fixture
def folder(tmp_path, broker):
    """The folder of another broker, which does not run."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    set_up_broker(tmp_path, BrokerPlan(port=port, owners=("clinic",), learners=("alice",)))
    return tmp_path


def is_open(folder):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", BrokerPlan.read(folder).port)) == 0


def closed(folder, seconds=10.0):
    until = time.monotonic() + seconds
    while is_open(folder) and time.monotonic() < until:
        time.sleep(0.05)
    return not is_open(folder)


def test_items_are_there_when_it_runs_again(folder):
    link = Link.read(folder / "parties/learner-alice/link.toml")
    with server.running_server(folder), link.open() as alice:
        assert alice.put("questions/clinic/a", b"x")
    assert closed(folder)
    with server.running_server(folder), link.open() as alice:
        assert alice.get("questions/clinic/a") == b"x"
        assert alice.put("questions/clinic/a", b"y") is False


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_server_ends_with_the_command(folder, sent):
    if sent == signal.SIGKILL and not sys.platform.startswith("linux"):
        pytest.skip("only Linux ends children of a killed process")
    command = [sys.executable, "-c", SERVE, "link", "serve", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    assert "Serving exchange at tls://localhost" in line
    assert "1 owners and 1 learners" in line
    os.kill(process.pid, sent)
    assert process.wait(timeout=20) == (-signal.SIGKILL if sent == signal.SIGKILL else 0)
    process.stdout.close()
    assert closed(folder)


def test_a_server_that_dies_is_an_error(folder):
    def kill(plan):
        pid = int(subprocess.check_output(["pgrep", "-P", str(os.getpid()), "-n", "nats-server"]))
        os.kill(pid, signal.SIGKILL)

    with pytest.raises(CourierError, match="ended by itself"):
        server.serve(folder, ready=kill)


def test_a_port_that_is_taken_is_named(folder, broker):
    plan = BrokerPlan.read(broker)
    (folder / "broker.toml").write_text(plan.to_toml())
    with pytest.raises(InputError, match=f"port {plan.port} already"), server.running_server(folder):
        pytest.fail("it started")


def test_a_configuration_that_is_wrong_or_missing_is_an_error(folder, capfd):
    (folder / "nats.conf").write_text("{nonsense")
    with pytest.raises(CourierError, match="ended at once"), server.running_server(folder):
        pytest.fail("it started")
    (folder / "nats.conf").unlink()
    with pytest.raises(InputError, match="privada broker init"), server.running_server(folder):
        pytest.fail("it started")


def test_a_missing_server_names_its_extra(monkeypatch):
    monkeypatch.setattr(server.shutil, "which", lambda *args, **kwargs: None)
    with pytest.raises(InputError, match=r"privada\[broker\]"):
        server.find_program()
