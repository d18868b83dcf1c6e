"""The contract of the ledger, on SQLite and on PostgreSQL; what only one of them has is tested beside it."""

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
from hypothesis import given, settings
from hypothesis import strategies as st

from privada.exceptions import BudgetError, InputError, LedgerError
from privada.privacy import ZCDP, ApproxDP, Guarantee, Ledger, OwnerKey, Price, PureDP
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
