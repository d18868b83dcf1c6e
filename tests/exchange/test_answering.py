"""The owner's side: who is refused before any row is opened, rows for curators, and what is said of whom."""

import io
from dataclasses import replace

import numpy as np
import pytest

from privada import AskOwner, CellStatistics, Mailbox, NearestCells, Owner, Policy, Schema
from privada.exceptions import AnswerError, InputError, Waiting, WireError
from privada.exchange import Sender
from privada.exchange.answering import read_asker
from privada.exchange.envelope import Envelope
from privada.exchange.local import LocalCourier
from privada.exchange.posting import describe, post
from privada.methods.summarization import EmbeddedRows, FourierEmbedding, RoundBids, RoundPoints, SummaryRows
from privada.parties.permissions import KnownLearner
from privada.privacy import Disclosure, PureDP
from privada.privacy.keys import LearnerKey

AR = "add/remove"
CAROL, BOB = LearnerKey.generate(), LearnerKey.generate()
LISTED = (
    KnownLearner(name="carol", key=CAROL.public),
    KnownLearner(name="bob", key=BOB.public, methods=("cells",)),
)
BUDGET = PureDP(epsilon=1, relation=AR)


def cells(salt=""):
    table = NearestCells(centers=np.array([[0.2, 0.2], [0.8, 0.8]]))
    return CellStatistics(tables=(table,), guarantee=PureDP(epsilon=0.1, relation=AR), salt=salt)


def rows():
    embedding = FourierEmbedding.of(width=2, n_features=8, gamma=0.5, random_state=0)
    return SummaryRows(embedding=embedding, target=np.zeros(8), size=3, guarantee=BUDGET)


def make_owner(**more):
    data = np.random.default_rng(0).uniform(size=(9, 2))
    return Owner(
        data, schema=Schema.of_numbers(bounds=(0, 1), width=2), dataset="rows", budget=BUDGET, **more
    )


def sent_by(courier, name="", key=None):
    return Mailbox(courier, sender=Sender(learner=name, key=key))


def disclosed(to="carol"):
    return (yield AskOwner("clinic", rows(), to=to))


@pytest.fixture
def courier():
    return LocalCourier()


def test_rows_are_sealed_for_the_curator_whom_policy_and_list_name(courier):
    clinic = make_owner(policy=Policy(curators=("carol",)), learners=LISTED)
    carol = sent_by(courier, "carol", CAROL)
    with pytest.raises(Waiting):
        carol.learn(disclosed())
    assert [done.outcome for done in carol.answer("clinic", clinic)] == ["answered"]
    given = carol.learn(disclosed())
    assert isinstance(given, Disclosure)
    assert np.array_equal(
        given.rows["X"], clinic.disclose(rows(), to="carol", asker=asker("carol", CAROL)).rows["X"]
    )
    (line, *_) = [line for line in clinic.ledger.lines("rows") if line.kind == "disclosure"]
    assert line.asker.learner == "carol"
    assert clinic.ledger.spent("rows") is None
    assert carol.answer("clinic", clinic) == []


def asker(name, key):
    return read_asker(
        Envelope(kind="question", owner="clinic", question="ab" * 32, learner=name, learner_key=key.public)
    )


@pytest.mark.parametrize(
    ("name", "key", "settings", "match"),
    [
        ("carol", CAROL, {"learners": LISTED}, "discloses no rows to 'carol'"),
        ("carol", CAROL, {"policy": Policy(curators=("carol",))}, r"lists under \[\[learners\]\]"),
        (
            "carol",
            LearnerKey.generate(),
            {"policy": Policy(curators=("carol",)), "learners": LISTED},
            "does not know 'carol'",
        ),
        ("carol", BOB, {"policy": Policy(curators=("carol",)), "learners": LISTED}, "bob|summarization"),
    ],
)
def test_anybody_else_gets_no_rows_and_no_row_is_opened(courier, monkeypatch, name, key, settings, match):
    clinic = make_owner(**settings)
    monkeypatch.setattr("privada.parties.owner.open_private", lambda _: pytest.fail("a row was opened"))
    curious = sent_by(courier, name, key)
    curious.ask(AskOwner("clinic", rows(), to=name))
    assert [done.outcome for done in curious.answer("clinic", clinic)] == ["refused"]
    with pytest.raises(AnswerError, match=match):
        curious.learn(disclosed(name))
    assert [line.kind for line in clinic.ledger.lines("rows") if line.kind == "disclosure"] == []


def test_rows_are_for_the_learner_who_asks(courier):
    with pytest.raises(InputError, match="curator 'carol'; your key is that of 'bob'"):
        sent_by(courier, "bob", BOB).learn(disclosed())
    with pytest.raises(InputError, match="encrypted for your key"):
        sent_by(courier).learn(disclosed())


@pytest.mark.parametrize("reply_key", ["", "00" * 32, "zz" * 32])
def test_a_reply_key_that_protects_nothing_is_refused_before_a_row_is_opened(courier, monkeypatch, reply_key):
    clinic = make_owner(policy=Policy(curators=("carol",)), learners=LISTED)
    monkeypatch.setattr("privada.parties.owner.open_private", lambda _: pytest.fail("a row was opened"))
    blob = rows().to_bytes()
    told = Envelope(
        kind="question",
        owner="clinic",
        question=rows().digest,
        learner="carol",
        learner_key=CAROL.public,
        reply_key=reply_key,
    )
    post(courier, told, blob, CAROL)
    (done,) = sent_by(courier).answer("clinic", clinic)
    assert done.outcome == "refused"
    assert [line.kind for line in clinic.ledger.lines("rows") if line.kind == "disclosure"] == []


def test_an_owner_that_lists_its_learners_answers_nobody_else(courier):
    clinic = make_owner(learners=LISTED)
    for number, (name, key) in enumerate([("", None), ("carol", LearnerKey.generate()), ("bob", BOB)]):
        sent_by(courier, name, key).ask(AskOwner("clinic", cells(f"{number}")))
    outcomes = {done.learner: done.outcome for done in sent_by(courier).answer("clinic", clinic)}
    assert outcomes == {"": "refused", "carol": "refused", "bob": "answered"}
    (line,) = [line for line in clinic.ledger.lines("rows") if line.kind == "charge"]
    assert line.asker.learner == "bob"


def test_a_question_that_says_it_is_too_large_is_refused_before_it_is_fetched(courier):
    clinic = make_owner(policy=Policy(largest_question=100))
    sent_by(courier).ask(AskOwner("clinic", cells()))
    (done,) = sent_by(courier).answer("clinic", clinic)
    assert done.outcome == "refused"
    assert "at most 100 are read" in done.reason


def test_parts_that_are_gone_refuse_the_question_and_charge_nothing(courier):
    clinic, blob = make_owner(), cells().to_bytes()
    told = Envelope(kind="question", owner="clinic", question=cells().digest)
    lost = describe(told, io.BytesIO(blob), 100)
    key = f"questions/clinic/{lost.question}-{lost.identity}.question"
    courier.put(key, replace(lost, place="questions/clinic/parts/none.0").sign(None).to_bytes())
    (done,) = sent_by(courier).answer("clinic", clinic)
    assert (done.outcome, clinic.ledger.spent("rows")) == ("refused", None)
    assert "is missing" in done.reason


def test_a_question_is_read_for_a_person_without_running_it(courier):
    key = sent_by(courier).ask(AskOwner("clinic", cells()))
    answering = sent_by(courier).for_owner("clinic", make_owner())
    assert answering.read_question(key, cells().digest) == cells()
    with pytest.raises(WireError, match="another question"):
        answering.read_question(key, "00" * 32)
    with pytest.raises(WireError, match="another question"):
        answering.read_question("questions/clinic/nothing", "00" * 32)
    with pytest.raises(WireError, match="does not exist any more"):
        answering.read_question(key.replace(cells().digest, "00" * 32), "00" * 32)


def test_two_curators_who_ask_the_same_each_get_rows_that_they_can_read(courier):
    dave = LearnerKey.generate()
    listed = (*LISTED, KnownLearner(name="dave", key=dave.public))
    clinic = make_owner(policy=Policy(curators=("carol", "dave")), learners=listed)
    both = {"carol": sent_by(courier, "carol", CAROL), "dave": sent_by(courier, "dave", dave)}
    for name, curator in both.items():
        curator.ask(AskOwner("clinic", rows(), to=name))
        curator.answer("clinic", clinic)
    given = [curator.learn(disclosed(name)) for name, curator in both.items()]
    assert [each.curator for each in given] == ["carol", "dave"]
    assert both["carol"].answer("clinic", clinic) == []


def points(salt=""):
    return RoundPoints(index=[4, 2**62], guarantee=BUDGET, salt=salt)


def test_a_question_about_an_owners_rows_that_was_not_sealed_is_refused(courier, monkeypatch):
    """An older learner sends it in the clear; an answer would let it do so again."""
    clinic = make_owner(policy=Policy(curators=("carol",)), learners=LISTED)
    monkeypatch.setattr("privada.parties.owner.open_private", lambda _: pytest.fail("a row was opened"))
    carol = sent_by(courier, "carol", CAROL)
    told = carol._asking.envelope(AskOwner("clinic", rows(), to="carol"), points().to_bytes())
    post(courier, replace(told, question=points().digest), points().to_bytes(), CAROL)
    (done,) = carol.answer("clinic", clinic)
    assert done.outcome == "refused"
    assert "travels sealed for the owner; this one did not" in done.reason


def test_a_sealed_question_is_answered_and_can_be_looked_at_by_its_owner(courier):
    clinic = make_owner(policy=Policy(curators=("carol",)), learners=LISTED)
    carol = Mailbox(courier, keys={"clinic": clinic.public_key}, sender=Sender(learner="carol", key=CAROL))
    key = carol.ask(AskOwner("clinic", points(), to="carol"))
    answering = carol.for_owner("clinic", clinic)
    (waiting,) = answering.pending()
    assert waiting.key == key
    assert answering.read_asked(waiting)[1].index.tolist() == [4, 2**62]
    assert answering.read_question(key, waiting.digest).index.tolist() == [4, 2**62]
    other = carol.for_owner("clinic", make_owner(policy=Policy(curators=("carol",)), learners=LISTED))
    with pytest.raises(WireError, match="sealed for another key"):
        other.read_asked(waiting)
    assert [done.outcome for done in answering.answer()] == ["answered"]
    assert carol.has_reply(AskOwner("clinic", points(), to="carol"))

    def learner():
        return (yield AskOwner("clinic", points(), to="carol"))

    assert carol.learn(learner()).rows["X"].shape == (1, 2), "the place that names no point has none"


def test_a_sealed_question_needs_the_owners_public_key(courier):
    with pytest.raises(InputError, match="with the card of that owner"):
        sent_by(courier, "carol", CAROL).ask(AskOwner("clinic", points(), to="carol"))
    with pytest.raises(InputError, match="encrypted for your key"):
        sent_by(courier).ask(AskOwner("clinic", points(), to="carol"))
    assert courier.keys("") == []


def test_rows_beyond_what_can_be_loaded_are_refused_before_any_is_opened(courier, monkeypatch):
    """What comes back has the length of what was asked for, so nobody may ask for more than a file holds."""
    clinic = make_owner(policy=Policy(curators=("carol",)), learners=LISTED)
    monkeypatch.setattr("privada.parties.owner.open_private", lambda _: pytest.fail("a row was opened"))
    embedding = FourierEmbedding.of(width=2, n_features=8, gamma=0.5, random_state=0)
    asked = EmbeddedRows(embedding=embedding, target=np.zeros(8), size=10_000_000, guarantee=BUDGET)
    carol = sent_by(courier, "carol", CAROL)
    carol.ask(AskOwner("clinic", asked, to="carol"))
    (done,) = carol.answer("clinic", clinic)
    assert done.outcome == "refused"
    assert "ask for fewer rows" in done.reason


def test_a_sealed_question_travels_in_parts_and_twice_as_the_same_item(courier):
    clinic = make_owner(policy=Policy(curators=("carol",)), learners=LISTED)
    embedding = FourierEmbedding.of(width=2, n_features=60_000, gamma=0.5, random_state=0)
    nothing = np.zeros(60_000)
    bids = RoundBids(
        embedding=embedding, target=nothing, broadcast=nothing, count=0, batch=2, sent=[], guarantee=BUDGET
    )
    for _ in range(2):  # a learner that starts again
        carol = Mailbox(
            courier, keys={"clinic": clinic.public_key}, sender=Sender(learner="carol", key=CAROL)
        )
        carol.ask(AskOwner("clinic", bids, to="carol"))
    assert len(courier.keys("questions/clinic/parts/")) == 2
    assert [done.outcome for done in carol.answer("clinic", clinic)] == ["answered"]
