import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from privada import Ask, CellStatistics, Folder, Nearest, Owner, Policy, Schema
from privada.exceptions import AnswerError, LedgerError, TamperError, Waiting, WireError
from privada.methods.cells import learn
from privada.privacy import Ledger, OwnerKey, Pure, wire
from privada.privacy.refusal import Refusal

AR = "add/remove"


def question(epsilon=0.4, salt=""):
    cells = Nearest(centers=np.array([[0.2], [0.8]]))
    return CellStatistics(tables=(cells,), guarantee=Pure(epsilon=epsilon, relation=AR), salt=salt)


def house(**more):
    return Owner(
        np.full((9, 1), 0.1),
        schema=Schema.of_numbers(bounds=(0, 1), width=1),
        dataset="clinic",
        budget=Pure(epsilon=1, relation=AR),
        **more,
    )


def test_ask_answer_learn_through_files(tmp_path):
    folder, clinic = Folder(tmp_path), house()
    with pytest.raises(Waiting, match="clinic"):
        folder.learn(learn("clinic", question()))
    assert [done.outcome for done in folder.answer("clinic", clinic)] == ["answered"]
    estimates = folder.learn(learn("clinic", question()))
    assert estimates.tables[0].counts.shape == (2,)


def test_a_question_asked_again_gets_the_same_release_without_a_new_charge(tmp_path):
    folder, clinic = Folder(tmp_path), house()
    for _ in range(3):
        with pytest.raises(Waiting):
            folder.learn(learn("clinic", question()))
        assert len(list((tmp_path / "questions" / "clinic").iterdir())) == 1
    folder.answer("clinic", clinic)
    assert folder.answer("clinic", clinic) == []
    first = folder.learn(learn("clinic", question())).tables[0].counts
    second = folder.learn(learn("clinic", question())).tables[0].counts
    assert np.array_equal(first, second)
    assert clinic.ledger.spent("clinic").epsilon == pytest.approx(0.4)


def test_a_bad_file_is_refused_and_the_rest_is_answered(tmp_path):
    folder, clinic = Folder(tmp_path), house()
    good = question()
    good.save(folder.question_path("clinic", good.digest))
    renamed = question(salt="renamed")
    renamed.save(folder.question_path("clinic", "00" * 32))
    folder.question_path("clinic", "11" * 32).write_bytes(b"junk")
    outcomes = {done.digest: done.outcome for done in folder.answer("clinic", clinic)}
    assert outcomes == {good.digest: "answered", "00" * 32: "refused", "11" * 32: "refused"}
    assert clinic.ledger.spent("clinic").epsilon == pytest.approx(0.4)


def test_a_refusal_reaches_the_learner(tmp_path):
    folder = Folder(tmp_path)
    with pytest.raises(Waiting):
        folder.learn(learn("clinic", question()))
    folder.answer("clinic", house(policy=Policy(methods=("transport",))))
    with pytest.raises(AnswerError, match="does not answer cells"):
        folder.learn(learn("clinic", question()))


def test_what_waits_for_a_person_stays(tmp_path):
    folder, clinic = Folder(tmp_path), house(policy=Policy(approval=True))
    asked = question()
    asked.save(folder.question_path("clinic", asked.digest))
    assert folder.answer("clinic", clinic)[0].outcome == "waiting"
    done = folder.answer("clinic", clinic, approved=frozenset({asked.digest}))
    assert done[0].outcome == "answered"


def test_an_approval_is_for_one_question_not_for_all_that_begin_alike(tmp_path):
    folder, clinic = Folder(tmp_path), house(policy=Policy(approval=True))
    cheap, dear = question(0.01, salt="16330914"), question(1.0, salt="51931133")  # found in five minutes
    assert cheap.digest[:12] == dear.digest[:12]
    dear.save(folder.question_path("clinic", dear.digest))
    for said in (cheap.digest, cheap.digest[:12]):
        assert folder.answer("clinic", clinic, approved=frozenset({said}))[0].outcome == "waiting"


def test_a_question_that_breaks_the_arithmetic_is_refused_and_the_rest_is_answered(tmp_path, monkeypatch):
    folder, clinic = Folder(tmp_path), house()
    good, bad = question(), question(epsilon=800.0)
    for asked in (good, bad):
        asked.save(folder.question_path("clinic", asked.digest))
    outcomes = {done.digest: done.outcome for done in folder.answer("clinic", clinic)}
    assert outcomes == {good.digest: "answered", bad.digest: "refused"}
    other = question(salt="other")
    other.save(folder.question_path("clinic", other.digest))
    monkeypatch.setattr(Owner, "answer_file", lambda *_, **__: 1 / 0)
    (done,) = folder.answer("clinic", clinic)
    assert (done.outcome, done.reason) == ("refused", "The owner cannot answer this question.")


def test_a_refusal_is_never_written_under_a_name_that_the_learner_chose(tmp_path):
    folder, elsewhere = Folder(tmp_path / "exchange"), tmp_path / "owner"
    elsewhere.mkdir()
    folder.question_path("clinic", "notes").parent.mkdir(parents=True)
    folder.question_path("clinic", "notes").write_bytes(b"junk")
    folder.refusal_path("clinic", "notes").parent.parent.mkdir(parents=True)
    folder.refusal_path("clinic", "notes").parent.symlink_to(elsewhere)
    with pytest.raises(WireError, match="is a link or a file.*Nothing was charged"):
        folder.answer("clinic", house())
    folder.refusal_path("clinic", "notes").parent.unlink()
    assert [done.outcome for done in folder.answer("clinic", house())] == ["refused"]
    assert not list(elsewhere.iterdir())
    assert not list((tmp_path / "exchange").rglob("notes.*"))[1:], "nothing but the question has that name"


def test_a_ledger_that_fails_is_told_to_the_owner_and_not_to_the_learner(tmp_path):
    folder, asked = Folder(tmp_path / "exchange"), question()
    asked.save(folder.question_path("clinic", asked.digest))
    ledger = Ledger.open(tmp_path / "ledger.sqlite", OwnerKey.generate())
    ledger.open_budget("clinic", Pure(epsilon=1, relation=AR))
    clinic = house(ledger=ledger)
    with sqlite3.connect(tmp_path / "ledger.sqlite") as connection:
        connection.execute("DROP TABLE lines")
    with pytest.raises(LedgerError):
        folder.answer("clinic", clinic)
    assert not folder.refusal_path("clinic", asked.digest).exists()
    ledger.close()


def test_a_budget_never_grows_so_what_is_too_dear_is_refused(tmp_path):
    folder, dear = Folder(tmp_path), question(epsilon=5.0)
    dear.save(folder.question_path("clinic", dear.digest))
    assert folder.answer("clinic", house())[0].outcome == "refused"
    with pytest.raises(AnswerError, match="Nothing was charged"):
        folder.learn(learn("clinic", dear))


def test_forged_releases_and_names(tmp_path):
    folder, clinic = Folder(tmp_path), house()
    with pytest.raises(Waiting):
        folder.learn(learn("clinic", question()))
    folder.answer("clinic", clinic)
    path = folder.release_path("clinic", question().digest)
    blob = bytearray(path.read_bytes())
    blob[-3] ^= 1
    path.write_bytes(bytes(blob))
    with pytest.raises(WireError, match="not a valid release"):
        folder.learn(learn("clinic", question()))
    for name in ("../etc", "", "a/b", "a b"):
        with pytest.raises(WireError, match="owner's name"):
            folder.question_path(name, "0")


def test_all_questions_of_a_round_are_written_before_the_first_answer(tmp_path):
    def learner():
        both = yield [Ask("north", question()), Ask("south", question(salt="other"))]
        return [release.receipt.dataset for release in both]

    folder = Folder(tmp_path)
    with pytest.raises(Waiting, match="north"):
        folder.learn(learner())
    assert all(len(list(folder.pending(name))) == 1 for name in ("north", "south"))
    for name in ("north", "south"):
        folder.answer(name, house())
    assert folder.learn(learner()) == ["clinic", "clinic"]


def test_a_pinned_key_refuses_releases_of_another(tmp_path):
    clinic = house()
    with pytest.raises(Waiting):
        Folder(tmp_path).learn(learn("clinic", question()))
    Folder(tmp_path).answer("clinic", clinic)
    pinned = Folder(tmp_path, keys={"clinic": clinic.public_key})
    assert pinned.learn(learn("clinic", question())).tables[0].counts.shape == (2,)
    with pytest.raises(TamperError, match="another owner's key"):
        Folder(tmp_path, keys={"clinic": house().public_key}).learn(learn("clinic", question()))


def test_a_release_that_was_lost_is_delivered_again_without_a_charge(tmp_path):
    folder, clinic, asked = Folder(tmp_path), house(), question()
    asked.save(folder.question_path("clinic", asked.digest))
    folder.answer("clinic", clinic)
    first = folder.release_path("clinic", asked.digest).read_bytes()
    folder.release_path("clinic", asked.digest).unlink()
    assert [done.outcome for done in folder.answer("clinic", clinic)] == ["answered"]
    assert folder.release_path("clinic", asked.digest).read_bytes() == first
    assert clinic.ledger.spent("clinic").epsilon == pytest.approx(0.4)


@pytest.mark.parametrize("obstacle", ["a file", "a link"])
def test_a_folder_that_takes_no_release_is_known_before_the_charge(tmp_path, obstacle):
    folder, clinic, asked = Folder(tmp_path / "exchange"), house(), question()
    asked.save(folder.question_path("clinic", asked.digest))
    place = folder.release_path("clinic", asked.digest).parent
    place.parent.mkdir()
    if obstacle == "a file":
        place.write_text("in the way")
    else:
        (tmp_path / "elsewhere").mkdir()
        place.symlink_to(tmp_path / "elsewhere")
    for _ in range(3):
        with pytest.raises(WireError, match="Nothing was charged"):
            folder.answer("clinic", clinic)
    assert clinic.ledger.spent("clinic") is None
    place.unlink()
    assert [done.outcome for done in folder.answer("clinic", clinic)] == ["answered"]


def test_a_release_that_cannot_be_written_is_charged_once_and_delivered_later(tmp_path, monkeypatch):
    folder, clinic, asked = Folder(tmp_path), house(), question()
    asked.save(folder.question_path("clinic", asked.digest))

    def full(path, blob, **more):
        if path.suffix == ".release":
            raise OSError(28, "No space left on device")
        return write(path, blob, **more)

    write = wire.write
    monkeypatch.setattr("privada.privacy.wire.write", full)
    for _ in range(20):
        (done,) = folder.answer("clinic", clinic)
        assert done.outcome == "undelivered"
        assert "Paid for and kept" in done.reason
    monkeypatch.undo()
    assert clinic.ledger.spent("clinic").epsilon == pytest.approx(0.4)
    assert [done.outcome for done in folder.answer("clinic", clinic)] == ["answered"]
    assert folder.learn(learn("clinic", asked)).tables[0].counts.shape == (2,)
    assert clinic.ledger.spent("clinic").epsilon == pytest.approx(0.4)


def test_a_refusal_can_be_reconsidered(tmp_path):
    folder, asked = Folder(tmp_path), question()
    asked.save(folder.question_path("clinic", asked.digest))
    strict, mild = house(policy=Policy(methods=())), house()
    assert folder.answer("clinic", strict)[0].outcome == "refused"
    assert folder.answer("clinic", mild) == []
    assert folder.refused("clinic") == {asked.digest}
    done = folder.answer("clinic", mild, reconsider=frozenset({asked.digest}))
    assert [each.outcome for each in done] == ["answered"]
    assert folder.refused("clinic") == frozenset()
    assert folder.learn(learn("clinic", asked)).tables[0].counts.shape == (2,)


def test_a_refusal_is_believed_if_the_owner_signed_it(tmp_path):
    clinic, asked = house(), question()
    folder = Folder(tmp_path, keys={"clinic": clinic.public_key})
    place = folder.refusal_path("clinic", asked.digest)
    place.parent.mkdir(parents=True)
    for blob in (b"no", Refusal.signed(OwnerKey.generate(), question=asked.digest, reason="no").to_bytes()):
        place.write_bytes(blob)
        with pytest.raises((WireError, TamperError)):
            folder.learn(learn("clinic", asked))
    other = Refusal.signed(clinic.ledger.key, question="00" * 32, reason="no")
    place.write_bytes(other.to_bytes())
    with pytest.raises(WireError, match="another question"):
        folder.learn(learn("clinic", asked))


def test_a_refusal_that_never_ends_is_not_read(tmp_path):
    folder, asked = Folder(tmp_path), question()
    place = folder.refusal_path("clinic", asked.digest)
    place.parent.mkdir(parents=True)
    place.symlink_to("/dev/zero")
    with pytest.raises(WireError, match="not a plain file, but a device"):
        folder.learn(learn("clinic", asked))


HOSTILE = """
import sys
import numpy as np
from privada import Folder, Owner, Policy, Schema
from privada.parties import Category
from privada.privacy import Pure

started = []
sys.addaudithook(lambda event, details: started.append(details) if event == "subprocess.Popen" else None)
for policy in (Policy(methods=("cells",)), Policy(methods=("cells",), approval=True), Policy(approval=True)):
    clinic = Owner(
        np.zeros((4, 2)),
        y=[0, 1, 0, 1],
        schema=Schema.of_numbers(bounds=(0, 1), width=2, label=Category(name="y", values=(0, 1))),
        dataset="clinic",
        budget=Pure(epsilon=1, relation="add/remove"),
        policy=policy,
    )
    (done,) = Folder(sys.argv[1]).answer("clinic", clinic, reconsider=Folder(sys.argv[1]).refused("clinic"))
    sys.stdout.write(f"{done.outcome} {clinic.ledger.spent('clinic')} ")
sys.stdout.write(f"{started} {'onnx' in sys.modules} {'onnxruntime' in sys.modules}")
"""


def test_nothing_of_a_graph_is_parsed_or_run_before_policy_and_approval(tmp_path):
    from sklearn.tree import DecisionTreeClassifier

    from privada.methods.hypotheses.questions.onnx import of_model
    from privada.methods.marginals import OutcomeTables

    rng = np.random.default_rng(0)
    tree = DecisionTreeClassifier(max_depth=2).fit(rng.normal(size=(40, 2)), np.arange(40) % 2)
    asked = OutcomeTables(
        tables=(Nearest(centers=np.eye(2)),),
        hypothesis=of_model(tree, mean=np.zeros(2), scale=np.ones(2)),
        guarantee=Pure(epsilon=0.5, relation=AR),
    )
    asked.save(Folder(tmp_path).question_path("clinic", asked.digest))
    done = subprocess.run([sys.executable, "-c", HOSTILE, str(tmp_path)], capture_output=True, text=True)
    assert done.stdout == "refused None refused None waiting None [] False False", done.stderr
