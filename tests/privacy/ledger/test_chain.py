"""Lines are sealed, and a new key takes over by the word of the old one, which is worthless afterwards."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import dp_accounting
import pytest

from privada.exceptions import InputError, LedgerError, TamperError
from privada.privacy import ZCDP, Asker, Ledger, OwnerKey, Price, Receipt
from privada.privacy.accounting.filters import open_filter
from privada.privacy.ledger.account import Account, read_account
from privada.privacy.ledger.chain import (
    HAND_OVER_FORMAT,
    KEY,
    HandOver,
    Line,
    check_digest,
    check_text,
    following,
    opening,
)
from privada.privacy.ledger.tables import Tables
from privada.privacy.wire import canonical
from tests.privacy.ledger.cases import BUDGET, QUESTION

OWNER_KEY = OwnerKey.generate()
ALICE = Asker("alice", "ab" * 32, project="p", purpose="because")


@pytest.fixture
def chain():
    first = opening("patients", Account.opened("patients", open_filter(BUDGET)), OWNER_KEY)
    return first, following(
        first,
        OWNER_KEY,
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
        line.check_seal(OWNER_KEY.public)
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
        replace(chain[1], **change).check_seal(OWNER_KEY.public)
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


LARGE_BUDGET = ZCDP(rho=4.0, relation="add/remove")
PRICE = Price(
    event=dp_accounting.GaussianDpEvent(noise_multiplier=2), guarantee=ZCDP(rho=0.125, relation="add/remove")
)
NAMES = ("patients", "visits")


def charge(ledger: Ledger, dataset: str = "patients", times: int = 1) -> list[Receipt]:
    return [ledger.charge(dataset, PRICE, question="ab" * 32) for _ in range(times)]


@pytest.fixture
def new() -> OwnerKey:
    return OwnerKey.generate()


@pytest.fixture
def receipts(place: str, key: OwnerKey) -> list[Receipt]:
    """Of a ledger of two data sets under the old key."""
    with Ledger.open(place, key) as ledger:
        opened = [ledger.open_budget(name, LARGE_BUDGET) for name in NAMES]
        return [*opened, *charge(ledger, times=2), *charge(ledger, "visits")]


def test_a_new_key_takes_over(place: str, key: OwnerKey, new: OwnerKey, receipts: list[Receipt]) -> None:
    with Ledger.open(place, key) as ledger:
        made = ledger.rotate(new)
        made.verify(old=key.public)
        assert made.new == new.public
        receipts += charge(ledger)  # the same object goes on with the new key
    with Ledger.open(place, new, create=False) as ledger:
        receipts += charge(ledger, "visits")
        receipts.append(ledger.open_budget("later", LARGE_BUDGET))
        assert [receipt.public == new.public for receipt in receipts] == [False] * 5 + [True] * 3
        found = ledger.verify(receipts)
        assert (found.lines, found.receipts) == (10, 8)
        assert ledger.hand_overs() == [made]
        assert [line.kind for line in ledger.lines("patients")] == [
            "budget",
            *["charge"] * 2,
            "key",
            "charge",
        ]
        assert ledger.remaining("patients").share == pytest.approx(1 - 3 * 0.125 / 4)
        for receipt in receipts:
            receipt.verify()
        assert ledger.open_budget("patients", LARGE_BUDGET) == receipts[0]  # by the key that signed it


def test_the_old_key_opens_it_no_more(
    place: str, key: OwnerKey, new: OwnerKey, receipts: list[Receipt]
) -> None:
    with Ledger.open(place, key) as ledger:
        ledger.rotate(new)
    with pytest.raises(LedgerError, match=f"not this ledger's any more: {new.public} took over"):
        Ledger.open(place, key)
    with pytest.raises(LedgerError, match="belongs to"):
        Ledger.open(place, OwnerKey.generate())


@pytest.mark.parametrize("later", [0, 1])
def test_a_process_that_still_has_the_old_key_is_stopped(
    place: str, key: OwnerKey, new: OwnerKey, receipts: list[Receipt], later: int
) -> None:
    with Ledger.open(place, key) as old:
        charge(old)
        with Ledger.open(place, key) as ledger:
            ledger.rotate(new)
            charge(ledger, times=later)
            for act in (
                lambda: charge(old),
                lambda: old.note("patients", text="x"),
                lambda: old.open_budget("another", LARGE_BUDGET),
                lambda: old.rotate(OwnerKey.generate()),
                old.verify,
            ):
                with pytest.raises(LedgerError, match="took over. Load that key"):
                    act()
            assert ledger.datasets() == NAMES
            ledger.verify(receipts)


def test_keys_follow_each_other(place: str, key: OwnerKey, new: OwnerKey, receipts: list[Receipt]) -> None:
    third = OwnerKey.generate()
    with Ledger.open(place, key) as ledger:
        ledger.rotate(new)
        receipts += [*charge(ledger), ledger.open_budget("later", LARGE_BUDGET)]
        ledger.rotate(third)
        receipts += [*charge(ledger), *charge(ledger, "later")]
        for known in (key, new, third):
            with pytest.raises(LedgerError, match="a key that was replaced never returns"):
                ledger.rotate(known)
    with Ledger.open(place, third) as ledger:
        assert ledger.verify(receipts).receipts == 9
        assert [made.new for made in ledger.hand_overs()] == [new.public, third.public]
        assert charge(ledger, "visits")
        ledger.verify()
    with pytest.raises(LedgerError, match=f"{third.public} took over"):
        Ledger.open(place, new)


def test_an_empty_ledger_changes_hands(place: str, key: OwnerKey, new: OwnerKey) -> None:
    with Ledger.open(place, key) as ledger:
        ledger.rotate(new)
    with Ledger.open(place, new) as ledger:
        ledger.open_budget("patients", LARGE_BUDGET)
        charge(ledger)
        assert ledger.verify().lines == 2


def test_a_backup_goes_along(
    place: str, key: OwnerKey, new: OwnerKey, receipts: list[Receipt], tmp_path: Path
) -> None:
    with Ledger.open(place, key) as ledger:
        ledger.backup(tmp_path / "before.sqlite")
        ledger.rotate(new)
        receipts += charge(ledger)
        ledger.backup(tmp_path / "after.sqlite")
    after = tmp_path / "after.sqlite"
    with Ledger.open(after, new, create=False) as copy:
        copy.verify(receipts)
    Ledger.restore(after, new, by="Ada", lost="nothing", receipts=receipts)
    with Ledger.open(after, new, create=False) as copy:
        charge(copy)
    with Ledger.open(tmp_path / "before.sqlite", key, create=False) as copy:
        with pytest.raises(TamperError, match="another owner|tail was cut off"):
            copy.verify(receipts)


def test_a_failed_hand_over_changes_nothing(
    place: str, key: OwnerKey, new: OwnerKey, receipts: list[Receipt], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise KeyboardInterrupt

    with Ledger.open(place, key) as ledger:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Tables, "add_hand_over", fail)
            ledger.rotate(new)
        assert ledger.key == key
        receipts += charge(ledger)
        assert ledger.verify(receipts).lines == 6
        ledger.rotate(new)
        ledger.verify(receipts)


def test_nobody_notes_a_hand_over(place: str, key: OwnerKey, receipts: list[Receipt]) -> None:
    with (
        Ledger.open(place, key) as ledger,
        pytest.raises(InputError, match="other than budget, charge, key"),
    ):
        ledger.note("patients", KEY, text="The key handed over.")


# What somebody can do with the old key and the ledger's file, after the hand-over


def tamper(place: str, statement: str, *values: Any) -> None:
    """Change the file behind the ledger's back; triggers can be dropped by whoever can write it."""
    with closing(sqlite3.connect(place)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in names:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement, values)
        connection.commit()


def put(place: str, line: Line) -> None:
    row = line.to_row()
    marks = ", ".join("?" * len(row))
    tamper(place, f"INSERT OR REPLACE INTO lines ({', '.join(row)}) VALUES ({marks})", *row.values())


@pytest.fixture
def handed(sqlite_place: str, key: OwnerKey, new: OwnerKey) -> tuple[str, list[Line]]:
    """A ledger whose last line is the hand-over."""
    with Ledger.open(sqlite_place, key) as ledger:
        ledger.open_budget("patients", LARGE_BUDGET)
        charge(ledger, times=2)
        ledger.rotate(new)
        Path(f"{sqlite_place}.heads").unlink()  # the thief takes the owner's own note away, which would tell
        return sqlite_place, list(ledger.lines("patients"))


def refused(place: str, new: OwnerKey, match: str) -> None:
    with Ledger.open(place, new) as ledger, pytest.raises(TamperError, match=match):
        ledger.verify()


def test_a_thief_appends(handed: tuple[str, list[Line]], key: OwnerKey, new: OwnerKey) -> None:
    place, lines = handed
    put(place, following(lines[-1], key, kind="disclosure", cost=0, detail={"text": "x"}))
    refused(place, new, "Line 4 of 'patients' was not signed by the owner")
    with Ledger.open(place, new) as ledger, pytest.raises(TamperError, match="Line 4"):
        charge(ledger)


def test_a_thief_writes_history_anew(handed: tuple[str, list[Line]], key: OwnerKey, new: OwnerKey) -> None:
    """Fewer charges, then the genuine hand-over again, resealed for its new place."""
    place, lines = handed
    tamper(place, "DELETE FROM lines WHERE position > 1")
    stolen = following(lines[1], key, kind=KEY, cost=0, detail=dict(lines[3].detail))
    put(place, stolen)
    refused(place, new, "Line 2 of 'patients' is no hand-over that both keys signed for this place")
    with Ledger.open(place, new) as ledger, pytest.raises(TamperError, match="no hand-over"):
        charge(ledger)


def test_a_thief_lowers_the_sum(handed: tuple[str, list[Line]], key: OwnerKey, new: OwnerKey) -> None:
    place, lines = handed
    put(place, replace(lines[3], spent=0).sealed(key))
    refused(place, new, "wrong sum")
    with Ledger.open(place, new) as ledger, pytest.raises(TamperError, match="no hand-over"):
        charge(ledger)


def test_a_thief_cuts_the_hand_over_off(handed: tuple[str, list[Line]], key: OwnerKey, new: OwnerKey) -> None:
    place, _ = handed
    tamper(place, "DELETE FROM lines WHERE position = 3")
    refused(place, new, f"ends under {key.public}, a key that was replaced")
    with Ledger.open(place, new) as ledger, pytest.raises(TamperError):
        charge(ledger)


def test_a_thief_raises_the_budget(handed: tuple[str, list[Line]], key: OwnerKey, new: OwnerKey) -> None:
    place, lines = handed
    with Ledger.open(":memory:", key) as other:
        other.open_budget("patients", ZCDP(rho=400.0, relation="add/remove"))
        (richer,) = other.lines("patients")
    put(place, richer)
    with Ledger.open(place, new) as ledger, pytest.raises(TamperError, match="Line 0"):
        charge(ledger)
    refused(place, new, "does not follow")
    relinked = replace(lines[1], previous=richer.digest).sealed(key)
    for line in (relinked, second := replace(lines[2], previous=relinked.digest).sealed(key)):
        put(place, line)
    put(place, replace(lines[3], previous=second.digest).sealed(key))
    refused(place, new, "no hand-over that both keys signed")


def test_a_thief_opens_a_budget(handed: tuple[str, list[Line]], key: OwnerKey, new: OwnerKey) -> None:
    place, _ = handed
    with Ledger.open(":memory:", key) as other:
        other.open_budget("patients again", LARGE_BUDGET)
        (line,) = other.lines("patients again")
    tamper(place, "INSERT INTO datasets VALUES ('patients again')")
    put(place, line)
    refused(place, new, f"chain of 'patients again' ends under {key.public}, a key that was replaced")
    with Ledger.open(place, new) as ledger, pytest.raises(TamperError):
        ledger.charge("patients again", PRICE, question="ab" * 32)


def test_a_thief_takes_the_identity_back(
    handed: tuple[str, list[Line]], key: OwnerKey, new: OwnerKey
) -> None:
    place, _ = handed
    tamper(place, "DROP TABLE successors")
    with Ledger.open(place, key) as ledger:
        with pytest.raises(LedgerError, match=f"{new.public} took over"):
            charge(ledger)
    with pytest.raises(LedgerError, match="belongs to"):
        Ledger.open(place, new)


def test_a_thief_hands_over_to_himself(handed: tuple[str, list[Line]], key: OwnerKey, new: OwnerKey) -> None:
    """After the hand-over the old key's word leads nowhere."""
    place, _ = handed
    thief = OwnerKey.generate()
    made = canonical(HandOver.sign(key, thief).to_dict()).decode()
    tamper(place, "INSERT INTO successors VALUES (2, ?, ?)", thief.public, made)
    with pytest.raises(TamperError, match="hand-over is of another owner"):
        Ledger.open(place, thief)
    tamper(place, "DELETE FROM successors WHERE position = 2")
    tamper(place, "UPDATE successors SET owner = ?, statement = ?", thief.public, made)
    with Ledger.open(place, thief) as ledger, pytest.raises(LedgerError, match="took over"):
        charge(ledger)
    with pytest.raises(LedgerError, match="belongs to"):
        Ledger.open(place, new)


def test_forged_receipts_of_the_old_key(handed: tuple[str, list[Line]], key: OwnerKey, new: OwnerKey) -> None:
    place, lines = handed
    Ledger.restore(place, new, by="Ada", lost="nothing")
    with Ledger.open(place, new) as ledger:
        genuine = charge(ledger)[0]
        forged = following(lines[3], key, kind="disclosure", cost=0, detail={}).receipt(key.public)
        later = replace(following(lines[3], key, kind="disclosure", cost=0, detail={}), index=9)
        for receipt in (forged, later.sealed(key).receipt(key.public)):
            with pytest.raises(TamperError, match="is of another owner"):
                ledger.verify([genuine, receipt])
        with pytest.raises(TamperError, match="is of another owner"):
            ledger.verify([later.sealed(other := OwnerKey.generate()).receipt(other.public)])
        ledger.verify([genuine])


def test_the_table_of_keys_is_append_only(
    place: str, key: OwnerKey, new: OwnerKey, receipts: list[Receipt]
) -> None:
    from sqlalchemy import text
    from sqlalchemy.exc import DBAPIError

    with Ledger.open(place, key) as ledger:
        ledger.rotate(new)
        for statement in ("UPDATE successors SET owner = 'me'", "DELETE FROM successors"):
            with pytest.raises((LedgerError, DBAPIError), match="append-only"):
                with ledger._storage.writing() as tables:
                    tables.connection.execute(text(statement))


# The file for those who know the old key


def test_a_hand_over_survives_its_file(key: OwnerKey, new: OwnerKey, tmp_path: Path) -> None:
    made = HandOver.sign(key, new)
    loaded = HandOver.load(made.save(tmp_path / "handover.json"))
    assert loaded == made
    loaded.verify(old=key.public)
    with pytest.raises(TamperError, match="of another owner"):
        loaded.verify(old=new.public)


@pytest.mark.parametrize("name", ["old", "new", "time", "given", "accepted"])
def test_an_edited_hand_over_does_not_hold(key: OwnerKey, new: OwnerKey, name: str) -> None:
    other = HandOver.sign(OwnerKey.generate(), OwnerKey.generate())
    with pytest.raises(TamperError, match="signature does not hold"):
        replace(HandOver.sign(key, new), **{name: getattr(other, name)}).verify()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "[" * 50_000, "9" * 5000, json.dumps({"format": HAND_OVER_FORMAT, "old": 1})]
)
def test_a_file_that_is_no_hand_over(tmp_path: Path, text: str) -> None:
    (tmp_path / "handover.json").write_text(text)
    with pytest.raises(TamperError, match=r"^handover.json is not a hand-over of a key\.$"):
        HandOver.load(tmp_path / "handover.json")
