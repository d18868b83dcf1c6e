"""The door: terms, decisions and recorded refusals, all before a row is opened."""

from dataclasses import replace

import numpy as np
import pytest

from privada import CellStatistics, NearestCells, Policy
from privada.exceptions import ApprovalPending, LedgerError, PolicyError
from privada.parties.permissions.admission import Admission
from privada.parties.permissions.known_learners import KnownLearner, KnownLearners, Terms
from privada.privacy import Asker, Ledger, OwnerKey, PureDP
from privada.privacy.accounting.filters import open_filter

BUDGET = PureDP(epsilon=1, relation="add/remove")
ALICE, QUESTION = Asker("alice", "aa" * 32), "cd" * 32


@pytest.fixture
def ledger():
    with Ledger.open(":memory:", OwnerKey.generate()) as made:
        made.open_budget("rows", BUDGET)
        yield made


@pytest.fixture
def admission(ledger):
    known = KnownLearner(name="alice", key=ALICE.key, approval=True)
    return Admission(ledger, "rows", KnownLearners([known], budget=open_filter(BUDGET)))


def test_a_refusal_is_recorded_and_a_wait_or_a_fault_is_not(ledger, admission):
    for error in (ApprovalPending("wait"), LedgerError("disk"), PolicyError("too much")):
        with pytest.raises(type(error)), admission.on_terms(QUESTION, "cells", ALICE, Policy()):
            raise error
    (line,) = list(ledger.lines("rows"))[1:]
    assert (line.kind, line.asker, line.detail["text"]) == ("refusal", ALICE, "too much")


def test_a_refusal_that_cannot_be_recorded_stands(ledger, admission, monkeypatch):
    def fail(*_, **__):
        raise LedgerError("the disk is full")

    monkeypatch.setattr(ledger, "refuse", fail)
    with pytest.raises(PolicyError, match="too much"), admission.on_terms(QUESTION, None, ALICE, Policy()):
        raise PolicyError("too much")


def test_who_approved_is_known(ledger, admission):
    with admission.on_terms(QUESTION, "cells", ALICE, Policy()) as terms:
        assert terms.policy.approval
        with pytest.raises(ApprovalPending, match=QUESTION[:12]):
            admission.wait_for_a_person(QUESTION, terms, approved=False)
        assert admission.wait_for_a_person(QUESTION, terms, approved=True) == ""
        ledger.approve("rows", QUESTION, by="Dr Who")
        assert admission.wait_for_a_person(QUESTION, terms, approved=False) == "Dr Who"
        ledger.reject("rows", QUESTION, by="Dr Else", reason="no", reconsider=True)
        with pytest.raises(PolicyError, match="Dr Else refused it: no"):
            admission.is_approved(QUESTION, terms, approved=True)


def test_without_a_list_nothing_is_shared_or_counted(ledger):
    admission = Admission(ledger, "rows", None)
    admission.share(QUESTION, Terms(policy=Policy(approval=True), asker=ALICE), approved=False)
    assert len(list(ledger.lines("rows"))) == 1


def test_a_quote_for_a_learner_is_within_its_allowance_and_leaves_no_trace(ledger):
    known = KnownLearner(
        name="alice", key=ALICE.key, methods=("cells",), allowance=PureDP(epsilon=0.5, relation="add/remove")
    )
    admission = Admission(ledger, "rows", KnownLearners([known], budget=open_filter(BUDGET)))
    tables = (NearestCells(centers=np.array([[0.2], [0.8]])),)
    question = CellStatistics(tables=tables, guarantee=PureDP(epsilon=0.25, relation="add/remove"))
    quote = ledger.price("rows", question.price)
    assert admission.price(quote, [question], None, Policy()) == quote
    assert Admission(ledger, "rows", None).price(quote, [question], ALICE, Policy()) == quote
    found = admission.price(quote, [question], Asker("somebody", ALICE.key), Policy())
    assert (found.allowance.learner, found.allowance.share, found.affordable) == ("alice", 0.5, True)
    with pytest.raises(PolicyError, match="does not know 'eve'"):
        admission.price(quote, [question], Asker("eve", "ee" * 32), Policy())
    other = Admission(
        ledger, "rows", KnownLearners([replace(known, methods=("marginals",))], budget=open_filter(BUDGET))
    )
    with pytest.raises(PolicyError, match="does not answer cells to 'alice'"):
        other.price(quote, [question], ALICE, Policy())
    assert [line.kind for line in ledger.lines("rows")] == ["budget"]
