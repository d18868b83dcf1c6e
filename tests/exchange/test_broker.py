"""A broker: its certificates on a real server, its folder, and running it."""

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time

import pytest

from privada.exceptions import CourierError, InputError
from privada.exchange.broker import Authority, find_program, running_server, serve, set_up_broker
from privada.exchange.broker_plan import BrokerPlan
from privada.exchange.courier import open_courier
from privada.exchange.nats import Link


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


PLAN = BrokerPlan(owners=("clinic",), learners=("alice",))


def configuration(folder):
    return json.loads((folder / "nats.conf").read_text().split("\n", 1)[1])


def users(folder):
    """All who may connect, of all accounts."""
    return [user for account in configuration(folder)["accounts"].values() for user in account["users"]]


def test_every_party_gets_a_link_that_can_be_read(tmp_path):
    made = set_up_broker(tmp_path, PLAN)
    assert [place.name for place in made] == ["administrator", "owner-clinic", "learner-alice"]
    for place in made:
        assert Link.read(place / "link.toml").servers == ("tls://localhost:4222",)


def test_a_second_time_certificates_stay_and_parties_are_added(tmp_path):
    set_up_broker(tmp_path, PLAN)
    before = {path: path.read_bytes() for path in (tmp_path / "parties").rglob("*.pem")}
    plan = BrokerPlan.read(tmp_path).with_parties(("clinic", "lab"), ("bob",))
    assert (plan.owners, plan.learners) == (("clinic", "lab"), ("alice", "bob"))
    set_up_broker(tmp_path, plan)
    assert {path: path.read_bytes() for path in before} == before
    assert [user["user"] for user in users(tmp_path)] == [
        "CN=administrator",
        "CN=owner-clinic",
        "CN=owner-lab",
        "CN=learner-alice",
        "CN=learner-bob",
    ]


def test_an_owner_may_have_several_data_sets(tmp_path):
    plan = BrokerPlan(owners=("clinic", "lab")).with_parties(("clinic=scans,visits",), ())
    assert plan.owners == ("clinic=scans,visits", "lab")
    set_up_broker(tmp_path, plan)
    assert BrokerPlan.read(tmp_path) == plan
    clinic = users(tmp_path)[1]
    allowed = clinic["permissions"]["publish"]["allow"]
    assert clinic["user"] == "CN=owner-clinic"
    assert "privada.exchange.releases.scans.>" in allowed
    assert "privada.exchange.releases.visits.>" in allowed
    assert not any(".clinic." in subject for subject in allowed)


def test_who_leaves_the_plan_may_not_connect_any_more(tmp_path):
    set_up_broker(tmp_path, PLAN)
    set_up_broker(tmp_path, BrokerPlan(owners=("clinic",)))
    assert "CN=learner-alice" not in [user["user"] for user in users(tmp_path)]


@pytest.mark.parametrize(
    ("host", "listens"),
    [("localhost", "127.0.0.1"), ("127.0.0.1", "127.0.0.1"), ("broker.example.org", "0.0.0.0")],
)
def test_only_a_host_for_others_is_open_to_others(tmp_path, host, listens):
    set_up_broker(tmp_path, BrokerPlan(host=host))
    assert configuration(tmp_path)["host"] == listens


CLUSTER = BrokerPlan(servers=("one.example.org", "two.example.org:5222", "10.0.0.3"), learners=("alice",))


def test_a_cluster_has_a_folder_for_each_server_and_links_that_know_them_all(tmp_path):
    made = set_up_broker(tmp_path, CLUSTER)
    assert BrokerPlan.read(tmp_path) == CLUSTER
    names = ["one.example.org-4222", "two.example.org-5222", "10.0.0.3-4222"]
    assert sorted(place.name for place in (tmp_path / "servers").iterdir()) == sorted(names)
    urls = ("tls://one.example.org:4222", "tls://two.example.org:5222", "tls://10.0.0.3:4222")
    assert [Link.read(place / "link.toml").servers for place in made] == [urls, urls]
    for name in names:
        conf = configuration(tmp_path / "servers" / name)
        assert conf["server_name"] == name
        used = [*conf["tls"].values(), *conf["cluster"]["tls"].values()]
        files = [tmp_path / "servers" / name / path for path in used if str(path).endswith(".pem")]
        assert len(files) == 6
        assert all(path.is_file() for path in files)
        assert not any(
            str(tmp_path) in str(path) for path in used
        )  # the folder works wherever it is copied to


def test_the_authority_of_parties_is_not_that_of_servers(tmp_path):
    set_up_broker(tmp_path, CLUSTER)
    for place in (tmp_path / "servers").iterdir():
        assert (place / "ca.pem").read_bytes() == (tmp_path / "authority/ca.pem").read_bytes()
        assert (place / "routes/ca.pem").read_bytes() == (tmp_path / "routes/ca.pem").read_bytes()
        assert (place / "ca.pem").read_bytes() != (place / "routes/ca.pem").read_bytes()


SERVE = "import sys; from privada.cli import main; sys.exit(main())"


@pytest.fixture
def other_folder(tmp_path, broker):
    """The other_folder of another broker, which does not run."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    set_up_broker(tmp_path, BrokerPlan(port=port, owners=("clinic",), learners=("alice",)))
    return tmp_path


def is_open(other_folder):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", BrokerPlan.read(other_folder).port)) == 0


def closed(other_folder, seconds=10.0):
    until = time.monotonic() + seconds
    while is_open(other_folder) and time.monotonic() < until:
        time.sleep(0.05)
    return not is_open(other_folder)


def test_items_are_there_when_it_runs_again(other_folder):
    link = Link.read(other_folder / "parties/learner-alice/link.toml")
    with running_server(other_folder), link.open() as alice:
        assert alice.put("questions/clinic/a", b"x")
    assert closed(other_folder)
    with running_server(other_folder), link.open() as alice:
        assert alice.get("questions/clinic/a") == b"x"
        assert alice.put("questions/clinic/a", b"y") is False


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_server_ends_with_the_command(other_folder, sent):
    if sent == signal.SIGKILL and not sys.platform.startswith("linux"):
        pytest.skip("only Linux ends children of a killed process")
    command = [sys.executable, "-c", SERVE, "broker", "serve", str(other_folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    assert "Serving exchange at tls://localhost" in line
    assert "1 owners and 1 learners" in line
    os.kill(process.pid, sent)
    assert process.wait(timeout=20) == (-signal.SIGKILL if sent == signal.SIGKILL else 0)
    process.stdout.close()
    assert closed(other_folder)


def test_a_server_that_dies_is_an_error(other_folder):
    def kill(plan):
        pid = int(subprocess.check_output(["pgrep", "-P", str(os.getpid()), "-n", "nats-server"]))
        os.kill(pid, signal.SIGKILL)

    with pytest.raises(CourierError, match="ended by itself"):
        serve(other_folder, ready=kill)


def test_a_port_that_is_taken_is_named(other_folder, broker):
    plan = BrokerPlan.read(broker)
    (other_folder / "broker.toml").write_text(plan.to_toml())
    with pytest.raises(InputError, match=f"port {plan.port} already"), running_server(other_folder):
        pytest.fail("it started")


def test_a_configuration_that_is_wrong_or_missing_is_an_error(other_folder, capfd):
    (other_folder / "nats.conf").write_text("{nonsense")
    with pytest.raises(CourierError, match="ended at once"), running_server(other_folder):
        pytest.fail("it started")
    (other_folder / "nats.conf").unlink()
    with pytest.raises(InputError, match="privada broker init"), running_server(other_folder):
        pytest.fail("it started")


def test_a_missing_server_names_its_extra(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *args, **kwargs: None)
    with pytest.raises(InputError, match=r"privada\[broker\]"):
        find_program()
