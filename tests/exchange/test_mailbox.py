"""Both sides of an exchange: once-only answers, planted items, keys, approvals, refusals."""

import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from privada import AskOwner, CellStatistics, Mailbox, NearestCells, Owner, Policy, Schema
from privada.exceptions import AnswerError, LedgerError, SourceError, Waiting, WireError
from privada.exchange import Sender, open_courier
from privada.exchange.envelope import Envelope
from privada.exchange.folder import FolderCourier
from privada.exchange.local import LocalCourier
from privada.exchange.posting import post
from privada.methods.cells import learn
from privada.privacy import Ledger, OwnerKey, PureDP
from privada.privacy.keys import LearnerKey

AR = "add/remove"


@pytest.fixture(params=["memory", "folder"])
def mailbox(request, tmp_path):
    courier = LocalCourier() if request.param == "memory" else FolderCourier(tmp_path / "exchange")
    return Mailbox(courier)


def question(epsilon=0.4, salt=""):
    cells = NearestCells(centers=np.array([[0.2], [0.8]]))
    return CellStatistics(tables=(cells,), guarantee=PureDP(epsilon=epsilon, relation=AR), salt=salt)


def make_owner(**more):
    return Owner(
        np.full((9, 1), 0.1),
        schema=Schema.of_numbers(bounds=(0, 1), width=1),
        dataset="clinic",
        budget=PureDP(epsilon=1, relation=AR),
        **more,
    )


def release_key(asked, number=""):
    return f"releases/clinic/{asked.digest}{number}.release"


def test_ask_answer_learn(mailbox):
    clinic = make_owner()
    with pytest.raises(Waiting, match="clinic"):
        mailbox.learn(learn("clinic", question()))
    assert [done.outcome for done in mailbox.answer("clinic", clinic)] == ["answered"]
    estimates = mailbox.learn(learn("clinic", question()))
    assert estimates.tables[0].counts.shape == (2,)


def test_a_question_asked_again_gets_the_same_release_without_a_new_charge(mailbox):
    clinic = make_owner()
    for _ in range(3):
        with pytest.raises(Waiting):
            mailbox.learn(learn("clinic", question()))
        assert len(mailbox.courier.keys("questions/clinic/")) == 1
    mailbox.answer("clinic", clinic)
    assert mailbox.answer("clinic", clinic) == []
    first = mailbox.learn(learn("clinic", question())).tables[0].counts
    assert np.array_equal(first, mailbox.learn(learn("clinic", question())).tables[0].counts)
    assert clinic.ledger.spent("clinic").epsilon == pytest.approx(0.4)


def test_two_learners_who_ask_the_same_share_one_charge_and_the_line_says_who_was_first(mailbox):
    clinic, asked = make_owner(), AskOwner("clinic", question())
    for name in ("alice", "bob"):
        sender = Sender(learner=name, key=LearnerKey.generate(), project="stroke", purpose="triage")
        Mailbox(mailbox.courier, sender=sender).ask(asked)
    done = mailbox.answer("clinic", clinic)
    assert [each.outcome for each in done] == ["answered", "answered"]
    (line,) = [line for line in clinic.ledger.lines("clinic") if line.kind == "charge"]
    assert line.asker.learner == done[0].learner
    assert line.asker.project == "stroke"


def test_planted_items_are_passed_over_and_the_rest_is_answered(mailbox, caplog):
    clinic, good = make_owner(), question()
    mailbox.ask(AskOwner("clinic", good))
    junk = f"questions/clinic/{'11' * 32}-{'22' * 16}.question"
    mailbox.courier.put(junk, b"junk")
    mailbox.courier.put(f"questions/clinic/{'33' * 32}-{'22' * 16}.question", stolen(mailbox))
    mailbox.courier.put("questions/clinic/anything", b"else")
    outcomes = {done.key: done.outcome for done in mailbox.answer("clinic", clinic)}
    assert sorted(outcomes.values()) == ["answered", "ignored", "ignored"]
    assert outcomes[junk] == "ignored"
    assert junk in caplog.text
    assert clinic.ledger.spent("clinic").epsilon == pytest.approx(0.4)
    assert not mailbox.courier.keys("refusals/clinic/")[1:], "nobody is told of what nobody signed"


def stolen(mailbox):
    """A true envelope under a key that is not its own."""
    (key,) = [key for key in mailbox.courier.keys("questions/clinic/") if "-22" not in key]
    return mailbox.courier.get(key)


@pytest.mark.parametrize("field", ["learner", "purpose", "owner", "question", "owner_key"])
def test_an_envelope_that_was_changed_is_passed_over(mailbox, field):
    import json

    import rfc8785

    clinic, alice = make_owner(), Sender(learner="alice", key=LearnerKey.generate(), purpose="triage")
    key = Mailbox(mailbox.courier, sender=alice).ask(AskOwner("clinic", question()))
    line, _, rest = mailbox.courier.get(key).partition(b"\n")
    told = json.loads(line)
    told["statement"][field] = "0" * 64
    forged = Mailbox(LocalCourier())
    changed = Envelope(**(told["statement"] | {"parts": (), "signature": told["signature"]}))
    name = f"questions/clinic/{changed.question}-{changed.identity}.question"
    forged.courier.put(name, rfc8785.dumps(told) + b"\n" + rest)
    assert [each.outcome for each in forged.answer("clinic", clinic)] == ["ignored"]
    assert clinic.ledger.spent("clinic") is None


def test_a_question_for_another_key_of_the_owner_is_refused(mailbox):
    pinned = Mailbox(mailbox.courier, keys={"clinic": OwnerKey.generate().public})
    pinned.ask(AskOwner("clinic", question()))
    (done,) = mailbox.answer("clinic", make_owner())
    assert done.outcome == "refused"
    assert "another key of clinic" in done.reason


def test_a_refusal_reaches_the_learner_who_asked_and_nobody_else(mailbox):
    alice = Mailbox(mailbox.courier, sender=Sender(learner="alice", key=LearnerKey.generate()))
    with pytest.raises(Waiting):
        alice.learn(learn("clinic", question()))
    alice.answer("clinic", make_owner(policy=Policy(methods=("transport",))))
    with pytest.raises(AnswerError, match="does not answer cells"):
        alice.learn(learn("clinic", question()))
    bob = Mailbox(mailbox.courier, sender=Sender(learner="bob", key=LearnerKey.generate()))
    with pytest.raises(Waiting):
        bob.learn(learn("clinic", question()))


def test_what_waits_for_a_person_stays(mailbox):
    clinic, asked = make_owner(policy=Policy(approval=True)), question()
    mailbox.ask(AskOwner("clinic", asked))
    assert mailbox.answer("clinic", clinic)[0].outcome == "waiting"
    assert mailbox.answer("clinic", clinic, approved={asked.digest})[0].outcome == "answered"


def test_an_approval_is_for_one_question_not_for_all_that_begin_alike(mailbox):
    clinic = make_owner(policy=Policy(approval=True))
    cheap, dear = question(0.01, salt="16330914"), question(1.0, salt="51931133")  # found in five minutes
    assert cheap.digest[:12] == dear.digest[:12]
    mailbox.ask(AskOwner("clinic", dear))
    for said in (cheap.digest, cheap.digest[:12]):
        assert mailbox.answer("clinic", clinic, approved=frozenset({said}))[0].outcome == "waiting"


def test_a_question_that_breaks_the_arithmetic_is_refused_and_the_rest_is_answered(mailbox, monkeypatch):
    clinic, good, bad = make_owner(), question(), question(epsilon=800.0)
    for asked in (good, bad):
        mailbox.ask(AskOwner("clinic", asked))
    outcomes = {done.digest: done.outcome for done in mailbox.answer("clinic", clinic)}
    assert outcomes == {good.digest: "answered", bad.digest: "refused"}
    mailbox.ask(AskOwner("clinic", question(salt="other")))
    monkeypatch.setattr(Owner, "answer_file", lambda *_, **__: 1 / 0)
    (done,) = mailbox.answer("clinic", clinic)
    assert (done.outcome, done.reason) == ("refused", "The owner cannot answer this question.")


def test_a_ledger_that_fails_is_told_to_the_owner_and_not_to_the_learner(mailbox, tmp_path):
    mailbox.ask(AskOwner("clinic", question()))
    ledger = Ledger.open(tmp_path / "ledger.sqlite", OwnerKey.generate())
    ledger.open_budget("clinic", PureDP(epsilon=1, relation=AR))
    clinic = make_owner(ledger=ledger)
    with sqlite3.connect(tmp_path / "ledger.sqlite") as connection:
        connection.execute("DROP TABLE lines")
    with pytest.raises(LedgerError):
        mailbox.answer("clinic", clinic)
    assert mailbox.courier.keys("refusals/clinic/") == []
    ledger.close()


def test_forged_releases_are_passed_over_and_the_true_one_is_found_behind_them(mailbox, caplog):
    clinic, asked = make_owner(), question()
    mailbox.ask(AskOwner("clinic", asked))
    other = Envelope(
        kind="release", owner="clinic", owner_key=OwnerKey.generate().public, question=asked.digest
    )
    mailbox.courier.put(release_key(asked), b"junk")
    mailbox.courier.put(release_key(asked, ".1"), other.to_bytes() + b"not signed")
    assert [done.outcome for done in mailbox.answer("clinic", clinic)] == ["answered"]
    assert mailbox.courier.get(release_key(asked, ".2")) is not None
    assert mailbox.learn(learn("clinic", asked)).tables[0].counts.shape == (2,)
    assert release_key(asked, ".1") in caplog.text
    assert mailbox.answer("clinic", clinic) == []


def test_a_release_of_another_key_is_not_believed(mailbox, caplog):
    clinic, thief, asked = make_owner(), make_owner(), question()
    pinned = Mailbox(mailbox.courier, keys={"clinic": clinic.public_key})
    with pytest.raises(Waiting):
        pinned.learn(learn("clinic", asked))
    told = Envelope(kind="release", owner="clinic", owner_key=thief.public_key, question=asked.digest)
    post(mailbox.courier, told, thief.answer(asked).to_bytes(), thief.ledger.key)
    with pytest.raises(Waiting):
        pinned.learn(learn("clinic", asked))
    assert "another key than that of clinic" in caplog.text
    mailbox.answer("clinic", clinic)
    estimates = pinned.learn(learn("clinic", asked))
    assert np.array_equal(estimates.release["counts"], clinic.answer(asked)["counts"])


def test_a_refusal_is_believed_if_the_owner_signed_it(mailbox):
    clinic, asked = make_owner(), question()
    pinned = Mailbox(mailbox.courier, keys={"clinic": clinic.public_key})
    key = pinned.ask(AskOwner("clinic", asked))
    whose = key.rpartition("-")[2].partition(".")[0]
    thief = OwnerKey.generate()
    forged = Envelope(
        kind="refusal",
        owner="clinic",
        owner_key=thief.public,
        question=asked.digest,
        asked=whose,
        reason="no",
    )
    post(mailbox.courier, forged, b"", thief)
    with pytest.raises(Waiting):
        pinned.learn(learn("clinic", asked))


def test_a_refusal_can_be_reconsidered(mailbox):
    asked = question()
    mailbox.ask(AskOwner("clinic", asked))
    key = OwnerKey.generate()
    strict, mild = (
        make_owner(policy=policy, ledger=ledger_of(key)) for policy in (Policy(methods=()), Policy())
    )
    assert mailbox.answer("clinic", strict)[0].outcome == "refused"
    assert mailbox.answer("clinic", mild) == []
    assert mailbox.for_owner("clinic", mild).refused() == {asked.digest}
    done = mailbox.answer("clinic", mild, reconsider=frozenset({asked.digest}))
    assert [each.outcome for each in done] == ["answered"]
    assert mailbox.for_owner("clinic", mild).refused() == frozenset()
    assert mailbox.learn(learn("clinic", asked)).tables[0].counts.shape == (2,)


def ledger_of(key):
    ledger = Ledger.open(":memory:", key)
    ledger.open_budget("clinic", PureDP(epsilon=1, relation=AR))
    return ledger


def test_a_release_that_was_lost_is_delivered_again_without_a_charge(tmp_path):
    mailbox, clinic, asked = Mailbox.open(tmp_path), make_owner(), question()
    mailbox.ask(AskOwner("clinic", asked))
    mailbox.answer("clinic", clinic)
    path = tmp_path / release_key(asked)
    first = path.read_bytes().partition(b"\n")[2]
    path.unlink()
    assert [done.outcome for done in mailbox.answer("clinic", clinic)] == ["answered"]
    assert path.read_bytes().partition(b"\n")[2] == first
    assert clinic.ledger.spent("clinic").epsilon == pytest.approx(0.4)


@pytest.mark.parametrize("obstacle", ["a file", "a link"])
@pytest.mark.parametrize("place", ["releases", "refusals"])
def test_a_folder_that_takes_no_release_is_known_before_the_charge(tmp_path, obstacle, place):
    mailbox, clinic = Mailbox.open(tmp_path / "exchange"), make_owner()
    mailbox.ask(AskOwner("clinic", question()))
    blocked = tmp_path / "exchange" / place / "clinic"
    blocked.parent.mkdir()
    if obstacle == "a file":
        blocked.write_text("in the way")
    else:
        (tmp_path / "elsewhere").mkdir()
        blocked.symlink_to(tmp_path / "elsewhere")
    for _ in range(3):
        with pytest.raises(WireError, match="Nothing was charged"):
            mailbox.answer("clinic", clinic)
    assert clinic.ledger.spent("clinic") is None
    assert obstacle == "a file" or not list((tmp_path / "elsewhere").iterdir())
    blocked.unlink()
    assert [done.outcome for done in mailbox.answer("clinic", clinic)] == ["answered"]


def test_a_release_that_cannot_be_written_is_charged_once_and_delivered_later(mailbox, monkeypatch):
    clinic, asked = make_owner(), question()
    mailbox.ask(AskOwner("clinic", asked))
    put = type(mailbox.courier).put

    def full(courier, key, blob):
        if key.endswith(".release"):
            raise WireError("No space left on device.")
        return put(courier, key, blob)

    monkeypatch.setattr(type(mailbox.courier), "put", full)
    for _ in range(5):
        (done,) = mailbox.answer("clinic", clinic)
        assert done.outcome == "undelivered"
        assert "Paid for and kept" in done.reason
    monkeypatch.undo()
    assert [done.outcome for done in mailbox.answer("clinic", clinic)] == ["answered"]
    assert mailbox.learn(learn("clinic", asked)).tables[0].counts.shape == (2,)
    assert clinic.ledger.spent("clinic").epsilon == pytest.approx(0.4)


def test_a_name_that_leads_elsewhere_is_no_owner(mailbox):
    for name in ("../etc", "", "a/b", "a b", "x" * 101):
        with pytest.raises(WireError, match="owner's name"):
            mailbox.ask(AskOwner(name, question()))


def test_an_exchange_is_opened_by_its_url(tmp_path):
    with Mailbox.open(f"file://{tmp_path}/exchange") as opened:
        opened.ask(AskOwner("clinic", question()))
    assert open_courier(tmp_path / "exchange").keys("questions/clinic/")


HOSTILE = """
import sys
import numpy as np
from privada import Mailbox, Owner, Policy, Schema
from privada.parties import Category
from privada.privacy import PureDP

started = []
sys.addaudithook(lambda event, details: started.append(details) if event == "subprocess.Popen" else None)
for policy in (Policy(methods=("cells",)), Policy(methods=("cells",), approval=True), Policy(approval=True)):
    clinic = Owner(
        np.zeros((4, 2)),
        y=[0, 1, 0, 1],
        schema=Schema.of_numbers(bounds=(0, 1), width=2, label=Category(name="y", values=(0, 1))),
        dataset="clinic",
        budget=PureDP(epsilon=1, relation="add/remove"),
        policy=policy,
    )
    (done,) = Mailbox.open(sys.argv[1]).answer("clinic", clinic)
    sys.stdout.write(f"{done.outcome} {clinic.ledger.spent('clinic')} ")
sys.stdout.write(f"{started} {'onnx' in sys.modules} {'onnxruntime' in sys.modules}")
"""


def test_nothing_of_a_graph_is_parsed_or_run_before_policy_and_approval(tmp_path):
    from sklearn.tree import DecisionTreeClassifier

    from privada.methods.hypotheses.onnx import of_model
    from privada.methods.marginals import OutcomeTables

    rng = np.random.default_rng(0)
    tree = DecisionTreeClassifier(max_depth=2).fit(rng.normal(size=(40, 2)), np.arange(40) % 2)
    asked = OutcomeTables(
        tables=(NearestCells(centers=np.eye(2)),),
        hypothesis=of_model(tree, mean=np.zeros(2), scale=np.ones(2)),
        guarantee=PureDP(epsilon=0.5, relation=AR),
    )
    Mailbox.open(tmp_path).ask(AskOwner("clinic", asked))
    done = subprocess.run([sys.executable, "-c", HOSTILE, str(tmp_path)], capture_output=True, text=True)
    assert done.stdout == "refused None refused None waiting None [] False False", done.stderr


def test_rows_that_changed_are_the_owners_affair(mailbox, tmp_path):
    """Nobody is refused for it, told of it, or charged; the question waits for the owner to load anew."""
    file = tmp_path / "rows.csv"
    terms = {"schema": Schema.of_numbers(bounds=(0, 1), width=1), "budget": PureDP(epsilon=1, relation=AR)}
    file.write_text("x0\n0.1\n")
    clinic = Owner(file, dataset="clinic", **terms)
    with pytest.raises(Waiting):
        mailbox.learn(learn("clinic", question()))
    file.write_text("x0\n0.1\n0.2\n")
    with pytest.raises(SourceError, match="load the owner again"):
        mailbox.answer("clinic", clinic)
    with pytest.raises(Waiting):
        mailbox.learn(learn("clinic", question()))
    assert clinic.ledger.spent("clinic") is None
    again = Owner(file, dataset="clinic", ledger=clinic.ledger, **terms)
    assert [done.outcome for done in mailbox.answer("clinic", again)] == ["answered"]
