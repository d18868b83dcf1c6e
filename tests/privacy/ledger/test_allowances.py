"""Allowances: counted from the chain, decided in the transaction of the charge, never above the budget."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from privada.exceptions import BudgetError, InputError, PolicyError
from privada.privacy import ZCDP, ApproxDP, Asker, Ledger, OwnerKey
from privada.privacy.accounting.filters import Allowance
from privada.privacy.ledger import chain
from privada.privacy.ledger.account import check_asker
from tests.privacy.ledger.cases import QUESTION, gaussian, grains, worker

AR = "add/remove"
ALICE, BOB = Asker("alice", "aa" * 32), Asker("bob", "bb" * 32)


def allow(asker: Asker, rho: float | None = 0.25, **more: object) -> Allowance:
    most = None if rho is None else ZCDP(rho=rho, relation=AR)
    return Allowance.of(asker.learner, asker.key, most, **more)  # type: ignore[arg-type]


def pay(ledger: Ledger, asker: Asker, allowance: Allowance, number: int = 0) -> None:
    ledger.charge_once(
        "patients", gaussian(), question=f"{number:064x}", asker=asker, allowance=allowance
    )  # rho = 0.125


def kinds(ledger: Ledger) -> list[str]:
    return [line.kind for line in ledger.lines("patients")]


def test_each_learner_has_its_own_and_the_budget_ends_for_all(opened: Ledger) -> None:
    """Allowances of 0.25 and 0.375 overlap in a budget of 0.5."""
    alice, bob = allow(ALICE), allow(BOB, 0.375)
    pay(opened, ALICE, alice, 1)
    left = opened.used("patients", alice)
    assert left.share == 0.5
    assert str(left).startswith("50 % of the allowance of 'alice' in 'patients' is left: one question of ")
    assert opened.used("patients", bob).share == 1.0
    pay(opened, ALICE, alice, 2)
    with pytest.raises(BudgetError, match=r"allowance of 'alice' does not.* 50 % of it, of which 0 %"):
        pay(opened, ALICE, alice, 3)
    pay(opened, BOB, bob, 4)
    pay(opened, BOB, bob, 5)
    with pytest.raises(BudgetError, match="The budget does not allow it"):
        pay(opened, BOB, bob, 6)
    assert kinds(opened) == ["budget"] + ["charge"] * 4
    assert opened.verify().lines == 5


def test_four_processes_never_pass_an_allowance(place: str, key: OwnerKey, key_file: Path) -> None:
    with Ledger.open(place, key) as ledger:
        ledger.open_budget("patients", ZCDP(rho=1, relation=AR))
    said = worker("allowed", place, key_file, 4)  # 12 askings of a tenth
    assert sorted("receipt" in each for each in said) == [False] * 2 + [True] * 10
    with Ledger.open(place, key) as ledger:
        assert grains(ledger) == 10**13
        assert ledger.verify().lines == 11


def test_a_new_key_or_a_new_name_does_not_start_the_count_again(opened: Ledger) -> None:
    pay(opened, ALICE, allow(ALICE), 1)
    pay(opened, ALICE, allow(ALICE), 2)
    for renewed in (Asker("alice", "cc" * 32), Asker("carol", ALICE.key)):
        with pytest.raises(BudgetError, match="does not allow it"):
            pay(opened, renewed, allow(renewed), 3)


def test_a_changed_allowance_counts_from_the_beginning(opened: Ledger) -> None:
    """Each filter has an order of its own, so costs are computed anew from the recorded prices."""
    budget = ApproxDP(epsilon=4, delta=1e-6, relation=AR)
    opened.open_budget("others", budget)
    small = Allowance.of(*_who(), ApproxDP(epsilon=1, delta=1e-6, relation=AR))
    large = Allowance.of(*_who(), ApproxDP(epsilon=2, delta=1e-6, relation=AR))
    opened.charge("others", gaussian(20), question=QUESTION, asker=ALICE, allowance=small)
    shares = [opened.used("others", each).share for each in (small, large)]
    assert 0 < shares[0] < shares[1] < 1
    with pytest.raises(BudgetError, match="allowance of 'alice'"):
        opened.charge("others", gaussian(4), question=QUESTION, asker=ALICE, allowance=small)
    opened.charge("others", gaussian(4), question=QUESTION, asker=ALICE, allowance=large)


def _who() -> tuple[str, str]:
    return ALICE.learner, ALICE.key


def test_a_shared_answer_is_paid_once_and_counts_for_both(opened: Ledger) -> None:
    pay(opened, ALICE, allow(ALICE), 1)
    pay(opened, BOB, allow(BOB), 1)
    pay(opened, BOB, allow(BOB), 1)
    assert kinds(opened) == ["budget", "charge", "copy"]
    assert grains(opened) == 125 * 10**12
    assert opened.used("patients", allow(BOB)).share == 0.5
    assert opened.verify().lines == 3
    tight = allow(BOB, 0.2)
    pay(opened, ALICE, allow(ALICE), 2)
    with pytest.raises(BudgetError, match="allowance of 'bob'"):
        opened.share("patients", f"{2:064x}", asker=BOB, allowance=tight)
    opened.share("patients", f"{2:064x}", asker=BOB, allowance=None)
    assert kinds(opened) == ["budget", "charge", "copy", "charge"]
    with pytest.raises(InputError, match="was not charged"):
        opened.share("patients", f"{9:064x}", asker=BOB, allowance=allow(BOB))


def test_a_term_that_is_over_stays_over_when_the_clock_is_put_back(
    opened: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, open_ = allow(ALICE, expires=date(2026, 3, 1)), allow(BOB)
    monkeypatch.setattr(chain, "_now", lambda: "2026-03-01T12:00:00.000000+00:00")
    opened.open_budget("others", ZCDP(rho=1, relation=AR))
    for asker, allowance in ((ALICE, ended), (BOB, open_)):
        opened.charge_once("others", gaussian(), question=QUESTION, asker=asker, allowance=allowance)
    monkeypatch.setattr(chain, "_now", lambda: "2026-03-02T00:00:00.000000+00:00")
    opened.charge("others", gaussian(), question=QUESTION)
    for now in ("2026-03-02T00:00:00.000000+00:00", "2020-01-01T00:00:00.000000+00:00"):
        monkeypatch.setattr(chain, "_now", lambda now=now: now)
        opened.charge("others", gaussian(10), question=QUESTION)
        for question in (QUESTION, "cd" * 32):  # what it paid for itself, and something new
            with pytest.raises(PolicyError, match="may not ask any more"):
                opened.charge_once("others", gaussian(), question=question, asker=ALICE, allowance=ended)
    times = [line.time for line in opened.lines("others")]
    assert times == sorted(times)


def test_an_allowance_without_a_filter_is_a_term_only(opened: Ledger) -> None:
    free = allow(ALICE, None, expires=date(9999, 1, 1))
    for number in range(4):
        pay(opened, ALICE, free, number)
    assert opened.used("patients", free).share == 1.0


def test_an_allowance_is_the_askers_own(opened: Ledger) -> None:
    check_asker(None, None)
    check_asker(ALICE, allow(ALICE))
    for asker in (BOB, None):
        with pytest.raises(InputError, match="'alice', who does not ask"):
            opened.charge("patients", gaussian(), question=QUESTION, asker=asker, allowance=allow(ALICE))
    assert kinds(opened) == ["budget"]


def test_a_quote_for_a_learner_says_what_its_allowance_pays(opened: Ledger) -> None:
    """It counts the answers that the learner does not have, whoever paid for them, and writes nothing."""
    alice, bob = allow(ALICE), allow(BOB, None)
    pay(opened, ALICE, alice, 1)
    pay(opened, BOB, bob, 2)
    before = opened.export()
    prices = {f"{number:064x}": gaussian() for number in (1, 2, 3)}
    had, copied, new = ({digest: price} for digest, price in prices.items())
    found = [opened.price_for("patients", each, alice) for each in (had, copied, new, prices)]
    assert [each and (each.share, each.remaining_share, each.affordable) for each in found] == [
        (0.0, 0.5, True),
        (0.5, 0.5, True),
        (0.5, 0.5, True),
        (1.0, 0.5, False),
    ]
    assert found[0] is not None
    assert found[0].most == ZCDP(rho=0.25, relation=AR)
    assert opened.price_for("patients", prices, bob) is None
    assert opened.price_for("patients", prices, None) is None
    assert opened.export() == before


def test_a_quote_goes_by_the_allowance_in_force_also_if_it_is_overdrawn(opened: Ledger) -> None:
    alice = allow(ALICE, 0.5)
    pay(opened, ALICE, alice, 1)
    opened.allow("patients", learner="alice", key=ALICE.key, most=ZCDP(rho=0.0625, relation=AR), by="dora")
    had, new = (opened.price_for("patients", {f"{number:064x}": gaussian()}, alice) for number in (1, 2))
    assert had is not None
    assert new is not None
    assert (had.share, had.remaining_share, had.affordable) == (0.0, 0.0, True)
    assert (new.share, new.remaining_share, new.affordable) == (2.0, 0.0, False)
    assert new.advice == "What would do: a larger allowance of 'alice' from the owner."
