"""Decisions and refusals on the chain: once, by name, bounded, free of charge."""

from __future__ import annotations

import pytest

from privada.exceptions import InputError, PolicyError
from privada.privacy import Asker, Ledger, OwnerKey, Receipt
from privada.privacy.ledger import chain
from privada.privacy.ledger import ledger as module
from tests.privacy.ledger.cases import QUESTION, grains

ALICE, BOB = Asker("alice", "aa" * 32), Asker("bob", "bb" * 32)


def of_kind(ledger: Ledger, kind: str) -> list[chain.Line]:
    return [line for line in ledger.lines("patients") if line.kind == kind]


def test_a_decision_is_one_line_with_a_name(opened: Ledger) -> None:
    assert opened.decision("patients", QUESTION) is None
    first = opened.approve("patients", QUESTION, by="Dr Who")
    again = opened.approve("patients", QUESTION, by="Dr Else")
    assert first == again
    assert (first.kind, first.question, first.price) == ("approval", QUESTION, None)
    with pytest.raises(PolicyError, match=r"was approved by Dr Who on 20\d\d-.*; say reconsider"):
        opened.reject("patients", QUESTION, by="Dr Else", reason="too large")
    opened.reject("patients", QUESTION, by="Dr Else", reason="too large", reconsider=True)
    with pytest.raises(PolicyError, match="was refused by Dr Else"):
        opened.approve("patients", QUESTION, by="Dr Who")
    decision = opened.decision("patients", QUESTION)
    assert decision is not None
    assert (decision.kind, decision.approver, decision.detail["text"]) == ("refusal", "Dr Else", "too large")
    assert opened.verify([first]).lines == 3
    assert grains(opened) == 0


def test_a_decision_can_be_for_one_learner(opened: Ledger) -> None:
    opened.approve("patients", QUESTION, by="Dr Who", asker=ALICE)
    assert opened.decision("patients", QUESTION, asker=ALICE) is not None
    assert opened.decision("patients", QUESTION, asker=BOB) is None
    assert opened.decision("patients", QUESTION) is None
    opened.approve("patients", "cd" * 32, by="Dr Who")
    assert opened.decision("patients", "cd" * 32, asker=BOB) is not None


def test_a_decision_that_was_made_under_an_earlier_key_is_confirmed(opened: Ledger) -> None:
    first = opened.approve("patients", QUESTION, by="Dr Who")
    opened.rotate(OwnerKey.generate())
    assert opened.approve("patients", QUESTION, by="Dr Who") == first
    assert opened.verify([first])


@pytest.mark.parametrize(
    ("change", "named"),
    [({"by": ""}, "by"), ({"by": "a\nb"}, "by"), ({"by": "x" * 101}, "by"), ({"question": "ab"}, "question")],
)
def test_a_decision_needs_a_name_and_a_digest(opened: Ledger, change: dict[str, str], named: str) -> None:
    told = {"question": QUESTION, "by": "Dr Who"} | change
    with pytest.raises(InputError, match=f"Expected {named}"):
        opened.approve("patients", **told)
    with pytest.raises(InputError, match="Expected reason"):
        opened.reject("patients", QUESTION, by="Dr Who", reason="")


def test_a_known_learners_refusal_is_a_line_once(opened: Ledger) -> None:
    for _ in range(3):
        opened.refuse("patients", question=QUESTION, reason="too\x1b much", asker=ALICE)
    opened.refuse("patients", question=QUESTION, reason="another reason", asker=ALICE)
    refused = of_kind(opened, "refusal")
    assert [line.detail["text"] for line in refused] == ["too\\x1b much", "another reason"]
    assert {line.asker for line in refused} == {ALICE}
    assert {line.cost for line in refused} == {0}
    assert opened.unlisted("patients") == {}
    assert opened.verify().lines == 3


def test_nobody_fills_the_disk_by_being_refused(opened: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_REFUSALS", 3)
    monkeypatch.setattr(chain, "_now", lambda: "2099-03-01T12:00:00.000000+00:00")
    for number in range(5):
        opened.refuse("patients", question=f"{number:064x}", reason="no", asker=ALICE)
        opened.refuse("patients", question=f"{number:064x}", reason="who are you?")
    opened.refuse("patients", question=QUESTION, reason="no", asker=BOB)
    assert len(of_kind(opened, "refusal")) == 4
    assert opened.unlisted("patients") == {"2099-03-01": 7}
    monkeypatch.setattr(chain, "_now", lambda: "2099-03-02T12:00:00.000000+00:00")
    opened.refuse("patients", question="ef" * 32, reason="no", asker=ALICE)
    assert len(of_kind(opened, "refusal")) == 5


def test_the_counts_are_in_a_backup(opened: Ledger, key: OwnerKey, tmp_path) -> None:  # type: ignore[no-untyped-def]
    opened.refuse("patients", question=QUESTION, reason="who are you?")
    opened.backup(tmp_path / "copy.sqlite")
    with Ledger.open(tmp_path / "copy.sqlite", key) as copy:
        assert copy.unlisted("patients") == opened.unlisted("patients") != {}


@pytest.mark.parametrize("kind", ["approval", "refusal", "copy", "charge", "budget", "key", "Two words"])
def test_a_note_cannot_pass_for_something_else(paid: tuple[Ledger, list[Receipt]], kind: str) -> None:
    with pytest.raises(InputError, match="Expected kind"):
        paid[0].note("patients", kind, text="rows")
    receipt = paid[0].note("patients", text="rows", asker=ALICE)
    assert of_kind(paid[0], "disclosure")[0].asker == ALICE
    assert paid[0].verify([receipt])
