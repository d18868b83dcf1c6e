"""The contract of a ledger in memory, on SQLite and on PostgreSQL: budgets, charges, answers, decisions."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import dp_accounting
import pytest
import sqlalchemy
from hypothesis import given, settings
from hypothesis import strategies as st

from privada.exceptions import AnswerError, BudgetError, InputError, LedgerError, PolicyError, TamperError
from privada.privacy import ZCDP, ApproxDP, Asker, Guarantee, Ledger, OwnerKey, Price, PureDP, Receipt
from privada.privacy.ledger import chain
from privada.privacy.ledger import ledger as module
from privada.privacy.ledger.storage import FAILED, KEPT, MOST_TRIES, OWED
from tests.privacy.ledger.cases import BUDGET, QUESTION, gaussian, grains, laplace


def test_a_charge_is_written_and_signed(opened: Ledger, key: OwnerKey) -> None:
    receipt = opened.charge("patients", gaussian(), question=QUESTION, purpose="a mean")
    receipt.verify(key.public)
    assert (receipt.dataset, receipt.index, receipt.kind, receipt.question) == (
        "patients",
        1,
        "charge",
        QUESTION,
    )
    assert receipt.price is not None
    assert Price.from_dict(dict(receipt.price)) == gaussian()
    zero, line = opened.lines("patients")
    assert (zero.kind, zero.cost, line.purpose, line.cost) == ("budget", 0, "a mean", round(0.125e15))
    assert line.previous == zero.digest
    assert line.digest == receipt.digest == receipt.head
    assert line.price == gaussian()
    assert opened.spent("patients") == BUDGET, "the sum of ρ so far is no guarantee of its own"
    assert opened.remaining("patients").share == 0.75
    with pytest.raises(FrozenInstanceError):
        line.cost = 0  # type: ignore[misc]


def test_a_budget_is_used_up_exactly(opened: Ledger) -> None:
    for _ in range(4):
        opened.charge("patients", gaussian(), question=QUESTION)
    assert opened.spent("patients") == BUDGET
    assert opened.remaining("patients").share == 0
    assert opened.remaining("patients").largest is None
    with pytest.raises(BudgetError):
        opened.charge("patients", gaussian(1e6), question=QUESTION)


def test_a_refusal_says_everything_and_writes_nothing(opened: Ledger) -> None:
    opened.charge("patients", gaussian(), question=QUESTION)
    before = opened.export()
    with pytest.raises(BudgetError) as refused:
        opened.charge("patients", gaussian(times=4), question=QUESTION)
    said = str(refused.value)
    for part in ("ρ = 0.125 (zCDP), add/remove one row, 4 times,", "100 %", "75 % is left", "'patients'"):
        assert part in said
    assert said.endswith("Nothing was charged.")
    assert opened.export() == before


def test_data_sets_have_chains_of_their_own(opened: Ledger) -> None:
    opened.open_budget("others", PureDP(epsilon=1, relation="replace-one"))
    opened.charge("others", laplace(0.25, relation="replace-one"), question=QUESTION)
    assert opened.datasets() == ("others", "patients")
    assert opened.spent("patients") is None
    assert opened.spent("others") == PureDP(epsilon=0.25, relation="replace-one")
    assert opened.budget("others").name == "pure"
    assert set(opened.verify().heads) == {"others", "patients"}


def test_a_question_is_charged_once(opened: Ledger) -> None:
    first, paid = opened.charge_once("patients", gaussian(), question=QUESTION)
    before = grains(opened)
    again, same = opened.charge_once("patients", gaussian(), question=QUESTION)
    assert (grains(opened), same) == (before, paid)
    assert (first.position, first.tries, again.tries) == (again.position, 1, 2)
    opened.charge_once("patients", gaussian(), question="cd" * 32)
    assert grains(opened) == 2 * before


def test_a_note_costs_nothing(opened: Ledger, key: OwnerKey) -> None:
    receipt = opened.note("patients", kind="disclosure", text="ten rows to the curator", question=QUESTION)
    receipt.verify(key.public)
    assert (receipt.kind, receipt.price) == ("disclosure", None)
    *_, line = opened.lines("patients")
    assert line.detail == {"text": "ten rows to the curator", "guarantee": "not differentially private"}
    assert opened.spent("patients") is None
    assert opened.verify([receipt]).lines == 2
    for kind in ("budget", "charge", "Two words", ""):
        with pytest.raises(InputError, match="Expected kind"):
            opened.note("patients", kind=kind, text="x")
    with pytest.raises(InputError, match="Expected text"):
        opened.note("patients", text=" ")


def test_an_absent_budget_is_named(opened: Ledger) -> None:
    calls: list[Callable[[], object]] = [
        lambda: opened.charge("nobody", gaussian(), question=QUESTION),
        lambda: opened.price("nobody", gaussian()),
        lambda: opened.note("nobody", text="x"),
        lambda: opened.spent("nobody"),
        lambda: opened.remaining("nobody"),
        lambda: opened.budget("nobody"),
        lambda: opened.lines("nobody"),
        lambda: opened.export("nobody"),
    ]
    for call in calls:
        with pytest.raises(BudgetError, match="budget of 'nobody' is absent"):
            call()
    assert opened.datasets() == ("patients",)


def test_a_budget_is_opened_once(ledger: Ledger) -> None:
    budget = ApproxDP(epsilon=1, delta=1e-5, relation="add/remove")
    first = ledger.open_budget("patients", budget)
    assert ledger.open_budget("patients", budget) == first
    assert ledger.open_budget("patients", budget, accounting="renyi") == first
    for other, accounting in ((replace(budget, epsilon=2), None), (BUDGET, None), (budget, "gaussian")):
        with pytest.raises(LedgerError, match=r"budget of 'patients' is \(ε = 1, .* cannot become"):
            ledger.open_budget("patients", other, accounting=accounting)
    assert ledger.verify().lines == 1


@pytest.mark.parametrize("name", ["", "   ", "a\0b", "\ud800", "x" * 201, 3, None])
def test_a_data_set_has_a_name(ledger: Ledger, name: Any) -> None:
    with pytest.raises(InputError, match="Expected dataset"):
        ledger.open_budget(name, BUDGET)


def test_bad_input_is_named_before_a_charge(opened: Ledger) -> None:
    before = opened.export()
    for question in ("", "abc", "AB" * 32, "xy" * 32, 3):
        with pytest.raises(InputError, match="Expected question"):
            opened.charge("patients", gaussian(), question=question)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="Expected purpose"):
        opened.charge("patients", gaussian(), question=QUESTION, purpose="x" * 1001)
    with pytest.raises(InputError, match="Expected budget"):
        opened.open_budget("others", 1.0)  # type: ignore[arg-type]
    endless = Price(event=dp_accounting.GaussianDpEvent(math.inf), guarantee=gaussian().guarantee)
    with pytest.raises(InputError, match="no plain JSON form"):
        opened.charge("patients", endless, question=QUESTION)
    for event in (dp_accounting.GaussianDpEvent(math.nan), dp_accounting.LaplaceDpEvent(-1.0)):
        with pytest.raises(InputError, match="Expected the numbers of an event to be >= 0"):
            opened.charge("patients", Price(event=event, guarantee=BUDGET), question=QUESTION)
    assert opened.export() == before


def test_a_ledger_is_found_again(place: str, key: OwnerKey) -> None:
    with Ledger.open(place, key) as ledger:
        ledger.open_budget("patients", BUDGET)
        receipt = ledger.charge("patients", gaussian(), question=QUESTION)
        assert key.public[:12] in repr(ledger)
    with Ledger.open(place, key) as ledger:
        assert ledger.verify([receipt]).lines == 2
        assert ledger.key == key
    with pytest.raises(LedgerError, match="is closed"):
        ledger.charge("patients", gaussian(), question=QUESTION)


def test_looking_at_a_ledger_does_not_import_dp_accounting(sqlite_place: str, key_file: Path) -> None:
    """It takes longer to import than a hundred charges take."""
    code = """if True:
        import sys
        from privada.privacy import ApproxDP, Ledger, OwnerKey
        with Ledger.open(sys.argv[1], OwnerKey.load(sys.argv[2])) as ledger:
            ledger.open_budget("patients", ApproxDP(epsilon=1, delta=1e-5, relation="add/remove"))
            ledger.note("patients", text="rows to a curator")
            ledger.spent("patients"), ledger.remaining("patients"), ledger.export()
        assert "dp_accounting" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code, sqlite_place, str(key_file)], check=True)


def test_the_key_must_be_the_ledgers(place: str, key: OwnerKey) -> None:
    Ledger.open(place, key).close()
    with pytest.raises(LedgerError, match="The key is not this ledger's"):
        Ledger.open(place, OwnerKey.generate())
    with pytest.raises(LedgerError, match="needs its owner's key"):
        Ledger.open(place, None)  # type: ignore[arg-type]


def test_a_ledger_is_not_pickled(ledger: Ledger) -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(ledger)


STEP = st.tuples(
    st.sampled_from(["charge", "price", "note"]),
    st.sampled_from([1.0, 2.0, 3.3, 7.7, 20.0]),
    st.integers(min_value=1, max_value=4),
)


BUDGETS = st.sampled_from(
    [
        (ZCDP(rho=0.7, relation="add/remove"), "zcdp"),
        (ApproxDP(epsilon=3, delta=1e-6, relation="add/remove"), "renyi"),
        (ApproxDP(epsilon=3, delta=1e-6, relation="add/remove"), "gaussian"),
    ]
)


@settings(max_examples=60)
@given(kept=BUDGETS, steps=st.lists(STEP, max_size=12))
def test_the_laws_of_a_ledger(
    key: OwnerKey, kept: tuple[Guarantee, str], steps: list[tuple[str, float, int]]
) -> None:
    """Sums never fall, quotes and refusals change nothing, replaying and splitting give the same sum."""
    with Ledger.open(":memory:", key) as ledger, Ledger.open(":memory:", key) as replay:
        ledger.open_budget("patients", *kept)
        for what, sigma, times in steps:
            before, head = grains(ledger), ledger.verify().heads
            quote = ledger.price("patients", gaussian(sigma, times=times))
            assert ledger.verify().heads == head
            if what == "charge":
                try:
                    ledger.charge("patients", gaussian(sigma, times=times), question=QUESTION)
                    assert quote.affordable
                    assert ledger.spent("patients") == quote.after
                    assert grains(ledger) > before
                except BudgetError:
                    assert not quote.affordable
                    assert ledger.verify().heads == head
            elif what == "note":
                ledger.note("patients", text="rows to a curator")
                assert grains(ledger) == before
        assert grains(ledger) <= ledger.budget("patients").capacity
        replay.open_budget("patients", *kept)
        for line in ledger.lines("patients"):
            if line.price:
                for _ in range(line.price.times):
                    replay.charge("patients", replace(line.price, times=1), question=QUESTION)
        assert replay.spent("patients") == ledger.spent("patients")
        assert grains(replay) == grains(ledger)


PRICE = Price(event=dp_accounting.GaussianDpEvent(5.0), guarantee=ZCDP(rho=0.02, relation="add/remove"))


def owe(ledger, question=QUESTION):
    return ledger.charge_once("patients", PRICE, question=question)[0]


def test_what_is_kept_is_found_by_another_process(durable_opened, place, key):
    durable_opened.keep(owe(durable_opened), b"release")
    with Ledger.open(place, key) as other:
        assert other.debt("patients", QUESTION).state == KEPT
        assert other.kept("patients", QUESTION) == b"release"
        assert other.kept("patients", "cd" * 32) is None


def test_the_first_release_stays(opened):
    debt = owe(opened)
    assert opened.keep(debt, b"first") == b"first"
    assert opened.keep(debt, b"second") == b"first"
    assert opened.kept("patients", QUESTION) == b"first"


def test_what_failed_on_the_rows_has_failed_for_good(opened):
    debt = owe(opened)
    opened.fail(debt)
    assert owe(opened).state == FAILED
    with pytest.raises(AnswerError):
        opened.keep(debt, b"late")
    assert opened.kept("patients", QUESTION) is None


def test_an_answer_that_ends_its_process_each_time_is_given_up(opened):
    states = [owe(opened).state for _ in range(MOST_TRIES + 2)]
    assert states == [OWED] * MOST_TRIES + [FAILED] * 2
    assert len([line for line in opened.lines("patients") if line.kind == "charge"]) == 1


def test_a_release_that_cannot_be_kept_costs_no_try(opened, monkeypatch):
    debt = owe(opened)
    with opened._storage.reading() as transaction:
        tables_of_storage = type(transaction)
    change = tables_of_storage.change

    def fail_to_keep(tables, debt, *, release=None, **more):
        if release is not None:
            raise LedgerError("the disk is full")
        return change(tables, debt, **more)

    monkeypatch.setattr(tables_of_storage, "change", fail_to_keep)
    with pytest.raises(LedgerError, match="full"):
        opened.keep(debt, b"release")
    monkeypatch.undo()
    again = owe(opened)
    assert (again.state, again.tries) == (OWED, debt.tries)
    opened.keep(again, b"release")


def test_a_debt_without_its_line_is_found_when_the_ledger_is_opened(durable_opened, place, key):
    owe(durable_opened)
    durable_opened.close()
    engine = sqlalchemy.create_engine(
        place if "://" in place else f"sqlite:///{place}", poolclass=sqlalchemy.pool.NullPool
    )
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE answers SET position = 7")
    with pytest.raises(TamperError, match="Line 7 of 'patients', which paid"):
        Ledger.open(place, key)


def test_a_disk_without_room_is_known_before_a_charge(tmp_path, key, monkeypatch):
    from collections import namedtuple

    usage = namedtuple("usage", "total used free")
    with Ledger.open(tmp_path / "ledger.sqlite", key) as ledger:
        ledger.check_room(1000)
        monkeypatch.setattr("shutil.disk_usage", lambda _: usage(10**9, 10**9 - 2_000_000, 2_000_000))
        ledger.check_room(1000)
        with pytest.raises(LedgerError, match="Nothing was charged"):
            ledger.check_room(1_000_000)


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
