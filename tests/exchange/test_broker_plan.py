"""What a broker can be: plans, and what a real server allows each party."""

import json
import socket
import ssl
import subprocess
from contextlib import contextmanager
from pathlib import PurePath

import pytest

from privada.exceptions import CourierError, InputError, StudyError
from privada.exchange.broker import create_exchange, find_program, set_up_broker, stop_server
from privada.exchange.broker_plan import BrokerPlan, Party, Server, configure_server, subjects_to_publish
from privada.exchange.nats import Link, subject_of
from tests.exchange.conftest import free_port

PLAN = BrokerPlan(owners=("clinic",), learners=("alice",))


def test_a_plan_is_read_back(tmp_path):
    set_up_broker(tmp_path, PLAN)
    assert BrokerPlan.read(tmp_path) == PLAN


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"port": 0}, "port from 1"),
        ({"days": 0}, "days from 1"),
        ({"host": ""}, "host to be a name"),
        ({"host": "a b"}, "host to be a name"),
        ({"host": "a/b"}, "host to be a name"),
        ({"servers": ("a", "b")}, "three or five"),
        ({"servers": ("a", "b", "b")}, "three or five different"),
        ({"servers": ("a", "b", "c:x")}, "HOST:PORT"),
        ({"servers": ("a", "b", "c:64000")}, "at most 63535"),
        ({"exchange": "a.b"}, "exchange to be letters"),
        ({"owners": ("a", "a")}, "each owner"),
        ({"owners": ("a=x,y", "b=y")}, "each data set"),
        ({"owners": ("a=",)}, "a name of letters"),
        ({"owners": ("a=x,>",)}, "a name of letters"),
        ({"owners": ("a.b",)}, "a name of letters"),
    ],
)
def test_other_plans_are_refused(wrong, said):
    with pytest.raises(InputError, match=said):
        BrokerPlan(**wrong)


def test_a_wrong_line_is_named(tmp_path):
    (tmp_path / "broker.toml").write_text(PLAN.to_toml().replace("4222", '"x"'))
    with pytest.raises(StudyError, match=r"broker.toml, line 2, port"):
        BrokerPlan.read(tmp_path)


def test_a_plan_of_one_server_that_was_written_before_there_were_clusters_is_read(tmp_path):
    lines = PLAN.to_toml().splitlines()
    (tmp_path / "broker.toml").write_text("\n".join(line for line in lines if "servers" not in line))
    assert BrokerPlan.read(tmp_path) == PLAN


@pytest.mark.parametrize(
    ("host", "address"), [("127.0.0.2", "127.0.0.1"), ("localhost", "127.0.0.1"), ("a.org", "0.0.0.0")]
)
def test_a_server_knows_whether_others_can_reach_it(host, address):
    assert Server(host, 4222).address == address


def test_a_question_goes_to_its_owner_and_the_release_back(party):
    clinic, alice = party("owner-clinic"), party("learner-alice")
    assert alice.put("questions/clinic/q1", b"what?")
    assert alice.put("questions/clinic/q1", b"what?") is False
    assert alice.get("questions/clinic/q1") == b"what?"
    assert clinic.wait("questions/clinic/", known=(), seconds=5) == ["questions/clinic/q1"]
    assert clinic.get("questions/clinic/q1") == b"what?"
    assert clinic.put("releases/clinic/q1", b"this")
    assert clinic.put("refusals/clinic/q2.1", b"no")
    assert clinic.keys("releases/clinic/") == ["releases/clinic/q1"]
    assert alice.wait("releases/", known=(), seconds=5) == ["releases/clinic/q1"]
    assert party("learner-bob").get("releases/clinic/q1") == b"this"
    assert alice.keys("refusals/clinic/") == ["refusals/clinic/q2.1"]


FORBIDDEN = {
    "owner-clinic": [
        lambda it: it.put("releases/lab/x", b""),
        lambda it: it.put("refusals/lab/x", b""),
        lambda it: it.put("questions/clinic/x", b""),
        lambda it: it.put("elsewhere/clinic/x", b""),
        lambda it: it.get("questions/lab/x"),
        lambda it: it.get("releases/lab/x"),
        lambda it: it.keys("questions/lab/"),
        lambda it: it.keys("questions/"),
        lambda it: it.keys(""),
        lambda it: it.wait("questions/", known=(), seconds=1),
        lambda it: it.create_exchange(),
    ],
    "learner-alice": [
        lambda it: it.put("releases/clinic/x", b""),
        lambda it: it.put("refusals/clinic/x", b""),
        lambda it: it.keys("questions/clinic/"),
        lambda it: it.keys(""),
        lambda it: it.create_exchange(),
    ],
    "administrator": [
        lambda it: it.put("questions/clinic/x", b""),
        lambda it: it.get("questions/clinic/x"),
        lambda it: it.keys(""),
    ],
}


@pytest.mark.parametrize(
    ("name", "action"), [(name, act) for name, acts in FORBIDDEN.items() for act in acts]
)
def test_a_foreign_subject_is_refused_at_once(party, name, action):
    with pytest.raises(CourierError, match="does not allow this party"):
        action(party(name))


API = [
    "STREAM.INFO.privada-exchange",
    "STREAM.LIST",
    "STREAM.NAMES",
    "STREAM.DELETE.privada-exchange",
    "STREAM.PURGE.privada-exchange",
    "STREAM.UPDATE.privada-exchange",
    "STREAM.MSG.GET.privada-exchange",
    "STREAM.MSG.DELETE.privada-exchange",
    "STREAM.SNAPSHOT.privada-exchange",
    "DIRECT.GET.privada-exchange",
    "CONSUMER.CREATE.privada-exchange",
    "CONSUMER.CREATE.privada-exchange.mine",
    "CONSUMER.LIST.privada-exchange",
    "CONSUMER.DELETE.privada-exchange.mine",
    "INFO",
]


@pytest.mark.parametrize("name", ["owner-clinic", "learner-alice"])
def test_the_rest_of_the_servers_interface_is_closed(party, name):
    courier = party(name)
    for subject in API:
        with pytest.raises(CourierError, match="does not allow this party"):
            courier._connection.request(f"$JS.API.{subject}", b"{}")


def consumer(courier, place, name="mine", **filters):
    """What the server says if somebody asks it to send what they may list to a place of their choice."""
    config = {"name": name, "deliver_subject": place, "ack_policy": "none", **filters}
    subject = f"privada-api.CONSUMER.CREATE.privada-exchange.{name}.privada.exchange.releases.>"
    request = json.dumps({"stream_name": "privada-exchange", "config": config}).encode()
    return json.loads(courier._connection.request(subject, request).data)


def test_permission_for_one_list_gives_no_other(party):
    alice = party("learner-alice")
    for filters in (
        {"filter_subject": "privada.exchange.questions.>"},
        {"filter_subject": "privada.exchange.>"},
        {"filter_subjects": ["privada.exchange.questions.>"]},
        {
            "filter_subject": "privada.exchange.releases.>",
            "filter_subjects": ["privada.exchange.questions.>"],
        },
    ):
        assert "error" in consumer(alice, "_INBOX.learner-alice.x", **filters)


def test_the_server_does_not_write_for_those_who_may_not(party):
    answer = consumer(
        party("learner-alice"),
        "privada.exchange.releases.lab.x",
        filter_subject="privada.exchange.releases.>",
    )
    assert "cycle" in answer["error"]["description"]


def test_replies_to_others_cannot_be_heard(party):
    alice, heard = party("learner-alice"), []
    for number, subject in enumerate(("_INBOX.owner-clinic.>", "_INBOX.>", ">", "privada.exchange.>"), 900):
        alice._connection._listeners[number] = (subject, heard.append)
        alice._connection._send_line(f"SUB {subject} {number}\r\n".encode())
    assert alice.get("releases/clinic/nothing") is None  # the server has seen what came before
    clinic = party("owner-clinic")
    clinic.put("releases/clinic/secretly", b"x")
    clinic.get("releases/clinic/secretly")
    assert alice.get("releases/clinic/secretly") == b"x"
    assert heard == []


@pytest.mark.parametrize("name", ["", "a.b", "a b", "*", ">", "a/b", "x" * 200])
def test_names_that_mean_more_to_a_server_are_refused(name):
    with pytest.raises(InputError, match="letters, digits"):
        Party("owner", name)


def test_no_permission_is_wider_than_a_partys_own_part():
    for party in (Party("owner", "clinic"), Party("learner", "alice")):
        for subject in subjects_to_publish(party, "trial"):
            assert not subject.startswith(("$JS.>", "$JS.API.>", ">"))
            assert "trial" in subject
    owner = subjects_to_publish(Party("owner", "clinic"), "trial")
    assert all(".clinic.>" in subject for subject in owner)


REPLIED = (
    ("privada.exchange.questions.lab.a-question", b"x"),
    ("privada-api.DIRECT.GET.privada-exchange.privada.exchange.releases.lab.none", b""),
    ("privada-api.CONSUMER.CREATE.privada-exchange.mine.privada.exchange.releases.>", b"{}"),
)


@pytest.mark.parametrize("number", range(len(REPLIED)))
def test_the_server_writes_no_reply_at_another_partys_key(party, number):
    """Where a reply is to go is the asker's choice: the server must not store it as somebody's item."""
    subject, data = REPLIED[number]
    alice, key = party("learner-alice"), f"releases/clinic/squatted-{number}"
    place = subject_of("exchange", key)
    alice._connection._send_line(f"PUB {subject} {place} {len(data)}\r\n".encode() + data + b"\r\n")
    alice.get("releases/clinic/nothing")  # the server has seen what came before
    clinic = party("owner-clinic")
    assert clinic.wait("releases/clinic/", known=_AllBut(key), seconds=0.5) == []
    assert clinic.put(key, b"the owner's")
    assert alice.get(key) == b"the owner's"


@pytest.mark.parametrize("verb", ["DELETE", "PURGE", "UPDATE", "INFO", "MSG.DELETE"])
def test_what_the_server_sends_is_no_request_of_its_own(party, verb):
    """A list that is sent to a part of the server's interface is not carried out there.

    Without payloads it would be a list of requests that such a part accepts.
    """
    alice, clinic = party("learner-alice"), party("owner-clinic")
    clinic.put(f"releases/clinic/before-{verb}", b"x")
    place, listed = f"$JS.API.STREAM.{verb}.privada-exchange", "privada.exchange.releases.>"
    for bare in (False, True):
        name = f"to-{verb.replace('.', '-')}-{bare}"
        made = consumer(alice, place, name=name, filter_subject=listed, headers_only=bare)
        assert "error" not in made  # the server takes it, but has nobody to send it to
    clinic.put(f"releases/clinic/after-{verb}", b"y")
    assert clinic.get(f"releases/clinic/before-{verb}") == b"x"
    assert clinic.get(f"releases/clinic/after-{verb}") == b"y"


class _AllBut:
    """Every key but one."""

    def __init__(self, wanted):
        self._wanted = wanted

    def __contains__(self, key):
        return key != self._wanted


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
