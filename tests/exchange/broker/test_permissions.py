"""What each party may do on a real server, and what it may not."""

import json

import pytest

from privada.exceptions import CourierError, InputError
from privada.exchange.broker.permissions import Party, subjects_to_publish
from privada.exchange.couriers.nats import subject_of


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
        alice._connection._hearers[number] = (subject, heard.append)
        alice._connection._tell(f"SUB {subject} {number}\r\n".encode())
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
    alice._connection._tell(f"PUB {subject} {place} {len(data)}\r\n".encode() + data + b"\r\n")
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
