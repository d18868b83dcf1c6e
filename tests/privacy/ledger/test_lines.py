"""A line is sealed: no field of it can change without its digest and signature telling."""

from dataclasses import replace

import pytest

from privada.exceptions import InputError, TamperError
from privada.privacy import Asker, OwnerKey
from privada.privacy.accounting.filters import open_filter
from privada.privacy.ledger.account import Account, read_account
from privada.privacy.ledger.chain import Line, check_digest, check_text, following, opening
from tests.privacy.ledger.cases import BUDGET, QUESTION

KEY = OwnerKey.generate()
ALICE = Asker("alice", "ab" * 32, project="p", purpose="because")


@pytest.fixture
def chain():
    first = opening("patients", Account.opened("patients", open_filter(BUDGET)), KEY)
    return first, following(
        first,
        KEY,
        kind="charge",
        cost=7,
        detail={"a": 1},
        question=QUESTION,
        purpose="x",
        asker=ALICE,
        approver="Dr Who",
    )


def test_a_line_follows_its_head(chain):
    first, second = chain
    assert (second.index, second.spent, second.previous) == (1, first.spent + 7, first.digest)
    for line in chain:
        line.check_seal(KEY.public)
        assert Line.from_row(line.to_row()) == line


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": "others"},
        {"index": 2},
        {"kind": "note"},
        {"time": "2026-01-01T00:00:00.000000+00:00"},
        {"question": "cd" * 32},
        {"detail": {"a": 2}},
        {"cost": 6},
        {"spent": 8},
        {"previous": "00" * 32},
        {"purpose": "y"},
        {"asker": None},
        {"asker": replace(ALICE, learner="bob")},
        {"asker": replace(ALICE, key="cd" * 32)},
        {"asker": replace(ALICE, project="q")},
        {"asker": replace(ALICE, purpose="q")},
        {"approver": ""},
        {"signature": "00" * 64},
    ],
)
def test_every_field_is_sealed(chain, change):
    with pytest.raises(TamperError):
        replace(chain[1], **change).check_seal(KEY.public)
    with pytest.raises(TamperError):
        chain[1].check_seal(OwnerKey.generate().public)


def test_only_the_first_line_opens_a_budget(chain):
    first, second = chain
    assert read_account(first).same_budget(open_filter(BUDGET))
    with pytest.raises(TamperError, match="does not open a budget"):
        read_account(second)
    with pytest.raises(TamperError, match="no budget that can be read"):
        read_account(replace(first, detail={}))


def test_text_that_some_database_could_not_keep_is_refused():
    check_text(purpose="", longest=5, empty=True)
    check_digest(question=QUESTION)
    for bad in ("", " ", "123456", "a\0", "\ud800", 3):
        with pytest.raises(InputError, match="Expected purpose"):
            check_text(purpose=bad, longest=5)
    for bad in ("", "ab", QUESTION.upper(), QUESTION + "a", None):
        with pytest.raises(InputError, match="Expected question"):
            check_digest(question=bad)


def test_a_row_that_names_no_learner_was_edited(chain):
    row = chain[1].to_row() | {"learner_key": ""}
    with pytest.raises(TamperError, match="Line 1 of 'patients' was edited: it names no learner"):
        Line.from_row(row)
