"""A question that its learner signed never vanishes: what is wrong with it is said, in a signed refusal."""

import hashlib
import json
from dataclasses import replace

import pytest
import rfc8785

from privada import AskOwner, Mailbox
from privada.exceptions import AnswerError, InputError, StudyError
from privada.exchange import Sender
from privada.exchange.asking import Asking
from privada.exchange.envelope import LARGEST_MALFORMED, Envelope, MalformedQuestion
from privada.exchange.local import LocalCourier
from privada.exchange.posting import key_of
from privada.methods.cells import learn
from privada.privacy.keys import LearnerKey
from privada.studies.example import write_example
from privada.studies.study import Study
from tests.exchange.test_hostile import ALICE, make_owner, question, spent

TEXTS = {
    "a line end": "a model\nfor triage",
    "a tab": "a model\tfor triage",
    "a mark of direction": "a model \u202efor triage",
    "a line separator": "a\u2028b",
    "too much": "x" * 2001,
    "spaces": " for triage",
    "half a character": "a\ud800b",
}


def sign(fields, key=None):
    """The first line of a question with these fields, as a client that checks nothing writes it."""
    statement = rfc8785.dumps(fields)
    signature = (key or ALICE.key).sign(b"privada question envelope 1\n" + statement)
    outer = {"format": 1, "privada": "envelope", "signature": signature, "statement": fields}
    return rfc8785.dumps(outer) + b"\n"


def statement(**changes):
    """What Alice's checked question states, with changes; None leaves a field out."""
    envelope = Asking(LocalCourier(), keys={}, sender=ALICE).envelope(
        AskOwner("north", question()), question().to_bytes()
    )
    fields = json.loads(envelope.sign(ALICE.key).to_bytes())["statement"] | changes
    return {name: value for name, value in fields.items() if value is not None}


def put(courier, line, fields):
    """Put a question where its learner would look for the reply."""
    said = {
        name: value for name, value in fields.items() if name not in ("time", "place", "part_size", "parts")
    }
    identity = hashlib.sha256(rfc8785.dumps(said)).hexdigest()[:32]
    key = key_of("question", "north", question().digest, identity)
    assert courier.put(key, line + question().to_bytes())
    return identity


def refusal_of(courier, identity):
    item = courier.get(key_of("refusal", "north", question().digest, identity))
    return None if item is None else Envelope.split(item)[0]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("purpose", "a model\nfor triage"),
        ("purpose", "a model\tfor triage"),
        ("purpose", "a model \u202efor triage"),
        ("purpose", "x" * 1001),
        ("purpose", "x" * 400_000),
        ("purpose", 7),
        ("project", "line\nend"),
        ("project", "x" * 201),
        ("learner", "al\tice"),
        ("learner", "x" * 101),
        ("learner", "alice\ufeff"),
        ("learner", ["alice"]),
        ("reply_key", "\n"),
        ("reason", "a\nb"),
        ("asked", {"a": 1}),
        ("place", "\u2066"),
        ("time", 5),
        ("size", -1),
        ("size", 10**12),
        ("sha256", "x"),
        ("part_size", "1"),
        ("parts", ["x"]),
        ("owner_key", "\t"),
        ("purpose", None),
        ("size", None),
        ("colour", "red"),
    ],
)
def test_a_signed_question_with_a_bad_field_is_refused_by_name(field, value):
    courier, north = LocalCourier(), make_owner()
    fields = statement(**{field: value})
    identity = put(courier, sign(fields), fields)
    (done,) = Mailbox(courier).answer("north", north)
    assert (done.outcome, spent(north)) == ("refused", 0)
    refusal = refusal_of(courier, identity)
    assert (refusal.kind, refusal.owner_key, refusal.asked) == ("refusal", north.public_key, identity)
    assert field in refusal.reason
    assert Mailbox(courier).answer("north", north) == [], "the refusal stands"


def test_the_learner_reads_the_refusal_of_its_own_client_that_checks_nothing():
    courier, north = LocalCourier(), make_owner()
    sender = Sender(learner="alice", key=ALICE.key)
    object.__setattr__(sender, "purpose", "a model\nfor triage")
    alice = Mailbox(courier, sender=sender)
    alice.ask(AskOwner("north", question()))
    assert [done.outcome for done in alice.answer("north", north)] == ["refused"]
    with pytest.raises(AnswerError, match=r"purpose to be one line.*got 'a model\\nfor triage'"):
        alice.learn(learn("north", question()))


def test_what_is_signed_in_another_form_is_refused():
    courier, north = LocalCourier(), make_owner()
    fields = statement()
    loose = json.dumps(json.loads(sign(fields))).encode() + b"\n"
    identity = put(courier, loose, fields)
    assert [done.outcome for done in Mailbox(courier).answer("north", north)] == ["refused"]
    assert "canonical form" in refusal_of(courier, identity).reason


def test_what_nobody_signed_or_signed_elsewhere_is_passed_over():
    fields = statement(purpose="a\nb")
    mallory = LearnerKey.generate()
    elsewhere = statement(purpose="a\nb", owner="south")
    for line, at in (
        (sign(fields, key=mallory), fields),  # signed by another
        (sign(fields)[:-80] + b"\n", fields),
        (sign(elsewhere), elsewhere),  # to another owner
        (sign(fields), statement(purpose="c\nd")),  # at the key of another question
        (sign(statement(purpose="a\nb", kind="withdrawal")), fields),
        (sign(statement(purpose="a\nb", learner_key=None)), fields),
        (b"[" * 100_000 + b"\n", fields),
        (b'{"statement": 3}\n', fields),
    ):
        courier, north = LocalCourier(), make_owner()
        identity = put(courier, line, at)
        assert [done.outcome for done in Mailbox(courier).answer("north", north)] == ["ignored"]
        assert refusal_of(courier, identity) is None


def test_a_sound_question_is_not_malformed():
    line = sign(statement())
    assert MalformedQuestion.read(line + question().to_bytes()) is None
    assert MalformedQuestion.read(sign(statement(purpose="x" * LARGEST_MALFORMED))) is None, "not even read"


@pytest.mark.parametrize("field", ["purpose", "project"])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_asking_checks_every_text_first(field, text, tmp_path):
    with pytest.raises(InputError, match=f"Expected {field} to be ") as raised:
        Sender(**{field: text})
    assert len(str(raised.value)) < 300
    assert str(raised.value).isprintable()
    with pytest.raises(InputError, match=f"Expected {field} to be "):
        replace(ALICE, **{field: text})


def test_a_learners_name_is_checked_too():
    for name in ("", "a\nb", "x" * 101, "alice\u200b", " alice", "al\u2800ice"):
        with pytest.raises(InputError, match="Expected learner to "):
            Sender(learner=name, key=ALICE.key)
    Sender()


@pytest.mark.parametrize("field", ["purpose", "project"])
def test_a_study_names_the_line_of_a_text_that_owners_would_refuse(field, cli_home):
    study = cli_home / "study.toml"
    text = study.read_text(encoding="utf-8")
    study.write_text(text.replace("[study]", f'[study]\n{field} = "a\\nb"'), encoding="utf-8")
    with pytest.raises(StudyError, match=f"line [0-9]+, study.{field}: Expected {field} to be one line"):
        Study.read(study)


@pytest.fixture
def cli_home(tmp_path):
    write_example(tmp_path)
    return tmp_path
