"""Every change of an allowance is a line: who, old, new, when; and the last line is what counts."""

from __future__ import annotations

import pytest

from privada.exceptions import BudgetError, InputError
from privada.privacy import ZCDP, Asker, Ledger, PureDP
from privada.privacy.accounting.filters import Allowance
from privada.privacy.guarantee import Guarantee
from privada.privacy.ledger.ledger import FILE
from tests.privacy.ledger.cases import gaussian

AR = "add/remove"
ALICE, RENEWED, BOB = Asker("alice", "aa" * 32), Asker("alice", "cc" * 32), Asker("bob", "bb" * 32)


def rho(value: float) -> ZCDP:
    return ZCDP(rho=value, relation=AR)


def declared(asker: Asker, most: Guarantee | None) -> Allowance:
    return Allowance.of(asker.learner, asker.key, most)


def allow(ledger: Ledger, asker: Asker, most: Guarantee | None, by: str = "dora") -> int:
    return ledger.allow("patients", learner=asker.learner, key=asker.key, most=most, by=by).index


def pay(ledger: Ledger, asker: Asker, allowance: Allowance, number: int) -> None:
    question = f"{number:064x}"  # costs rho = 0.125
    ledger.charge_once("patients", gaussian(), question=question, asker=asker, allowance=allowance)


def told(ledger: Ledger) -> list[tuple[str, object, object]]:
    """Who changed what to what."""
    lines = (line for line in ledger.lines("patients") if line.kind == "allowance")
    return [(line.approver, _rho(line.detail["old"]), _rho(line.detail["new"])) for line in lines]


def _rho(plain: dict[str, float] | None) -> float | None:
    return None if plain is None else plain["rho"]


def test_a_change_says_who_made_it_from_what_to_what_and_when(opened: Ledger) -> None:
    allow(opened, ALICE, rho(0.25))
    allow(opened, ALICE, rho(0.125), by="emil")
    allow(opened, ALICE, None)
    assert told(opened) == [("dora", None, 0.25), ("emil", 0.25, 0.125), ("dora", 0.125, None)]
    *_, last = opened.lines("patients")
    assert (last.cost, last.asker, last.time[:2]) == (0, ALICE, "20")
    assert opened.verify().lines == 4


def test_what_the_last_line_says_counts_whatever_the_caller_brings(opened: Ledger) -> None:
    stale = declared(ALICE, rho(0.5))
    allow(opened, ALICE, rho(0.125))
    pay(opened, ALICE, stale, 1)
    with pytest.raises(BudgetError, match="allowance of 'alice' does not"):
        pay(opened, ALICE, stale, 2)
    with pytest.raises(BudgetError, match="allowance of 'alice' does not"):
        opened.check_allowance("patients", gaussian(), stale)
    allow(opened, ALICE, rho(0.25))
    pay(opened, ALICE, stale, 2)
    assert opened.used("patients", stale).share == 0


def test_one_that_is_lowered_below_what_was_used_leaves_nothing(opened: Ledger) -> None:
    terms = declared(ALICE, rho(0.25))
    opened.declare("patients", terms)
    pay(opened, ALICE, terms, 1)
    allow(opened, ALICE, rho(0.0625))
    left = opened.used("patients", terms)
    assert (left.share, left.largest) == (0, None)
    with pytest.raises(BudgetError, match="of which 0 % is left"):
        pay(opened, ALICE, terms, 2)


def test_a_new_key_or_a_new_name_does_not_escape_a_change(opened: Ledger) -> None:
    allow(opened, ALICE, rho(0.125))
    for other in (RENEWED, Asker("mallory", ALICE.key)):
        assert (
            opened.allowed("patients", declared(other, rho(0.5))).filter == declared(ALICE, rho(0.125)).filter
        )
    assert opened.allowed("patients", declared(BOB, None)).filter is None


def test_the_same_again_writes_nothing(opened: Ledger) -> None:
    first = allow(opened, ALICE, rho(0.25))
    assert allow(opened, ALICE, rho(0.25), by="emil") == first
    for _ in range(2):
        opened.declare("patients", declared(BOB, rho(0.25)))
        opened.declare("patients", declared(Asker("carl", "dd" * 32), None))
    assert told(opened) == [("dora", None, 0.25), (FILE, None, 0.25)]


def test_a_file_that_is_read_again_undoes_no_decision_and_one_that_is_edited_counts(opened: Ledger) -> None:
    opened.declare("patients", declared(ALICE, rho(0.25)))
    allow(opened, ALICE, rho(0.125))
    opened.declare("patients", declared(ALICE, rho(0.25)))
    assert opened.allowed("patients", declared(ALICE, rho(0.25))).filter == declared(ALICE, rho(0.125)).filter
    opened.declare("patients", declared(ALICE, rho(0.5)))
    opened.declare("patients", declared(ALICE, None))
    assert told(opened) == [(FILE, None, 0.25), ("dora", 0.25, 0.125), (FILE, 0.125, 0.5), (FILE, 0.5, None)]


def test_a_file_that_is_read_for_the_first_time_raises_nothing_that_a_person_decided(opened: Ledger) -> None:
    allow(opened, ALICE, rho(0.125))
    for most in (rho(0.25), None):
        opened.declare("patients", declared(ALICE, most))
    assert told(opened) == [("dora", None, 0.125)]
    opened.declare("patients", declared(ALICE, rho(0.0625)))
    assert told(opened)[1:] == [(FILE, 0.125, 0.0625)]


def test_what_a_person_granted_to_one_learner_is_not_handed_on_with_its_key(opened: Ledger) -> None:
    for one in (ALICE, BOB):
        opened.declare("patients", declared(one, rho(0.125)))
    allow(opened, ALICE, rho(0.5))
    opened.declare("patients", declared(ALICE, rho(0.125)))
    assert told(opened)[-1] == ("dora", 0.125, 0.5)
    heir = declared(Asker("bob", ALICE.key), rho(0.125))
    opened.declare("patients", heir)
    assert opened.allowed("patients", heir).filter == heir.filter
    allow(opened, Asker("bob", ALICE.key), rho(0.25))
    opened.declare("patients", heir)
    assert told(opened)[-2:] == [(FILE, 0.5, 0.125), ("dora", 0.125, 0.25)]
    assert opened.verify().lines == 6


def test_more_than_the_budget_or_other_terms_are_refused_and_nothing_is_written(opened: Ledger) -> None:
    for wrong in (rho(0.75), PureDP(epsilon=0.1, relation=AR)):
        with pytest.raises(InputError, match="The allowance is"):
            allow(opened, ALICE, wrong)
    with pytest.raises(InputError, match="by"):
        allow(opened, ALICE, rho(0.1), by="")
    with pytest.raises(InputError, match="lower-case word other than"):
        opened.note("patients", kind="allowance", text="more for me")
    assert told(opened) == []
