"""What a price costs, what is left, and what a learner may take of a budget."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date
from pathlib import Path

import dp_accounting
import pytest

from privada.exceptions import BudgetError, InputError, PolicyError, RelationError
from privada.privacy import ZCDP, ApproxDP, Asker, Guarantee, Ledger, OwnerKey, Price, PureDP, Unit
from privada.privacy.accounting.filters import Allowance, open_filter
from privada.privacy.ledger import chain
from privada.privacy.ledger.account import Account, check_asker
from privada.privacy.ledger.ledger import FILE
from tests.privacy.ledger.cases import BUDGET, QUESTION, gaussian, grains, laplace, worker


def test_a_quote_charges_nothing(opened: Ledger) -> None:
    before = opened.export()
    quote = opened.price("patients", gaussian())
    assert (quote.share, quote.affordable, quote.remaining_share) == (0.25, True, 1.0)
    assert quote.after == BUDGET
    assert "would take 25 %" in str(quote)
    assert str(quote).endswith(
        f"affordable, then 75 % is left; whenever the asker stops, this holds: {BUDGET}."
    )
    assert opened.price("patients", gaussian(times=4)).after == BUDGET
    refused = opened.price("patients", gaussian(times=5))
    assert (refused.affordable, refused.after) == (False, None)
    assert str(refused).endswith("refused.")
    assert opened.export() == before


def test_k_charges_equal_one_charge_of_k(opened: Ledger) -> None:
    opened.open_budget("others", BUDGET)
    for _ in range(3):
        opened.charge("patients", gaussian(2.7), question=QUESTION)
    opened.charge("others", gaussian(2.7, times=3), question=QUESTION)
    assert grains(opened) == grains(opened, "others")


def test_what_a_filter_cannot_bound_is_refused(ledger: Ledger) -> None:
    ledger.open_budget("patients", PureDP(epsilon=1, relation="add/remove"))
    for ask in (ledger.price, lambda *call: ledger.charge(*call, question=QUESTION)):
        with pytest.raises(BudgetError, match=r"no pure bound\. Nothing was charged to 'patients'"):
            ask("patients", gaussian())


def test_a_running_sum_is_stated_where_it_is_a_guarantee(ledger: Ledger) -> None:
    ledger.open_budget("patients", PureDP(epsilon=1, relation="add/remove"))
    quote = ledger.price("patients", laplace(0.25))
    assert str(quote).endswith("affordable, then spent: ε = 0.25 (pure), add/remove one row.")
    budget = ApproxDP(epsilon=1, delta=1e-5, relation="add/remove")
    for accounting, stated in (("renyi", 0.523), ("gaussian", 1.0)):
        ledger.open_budget(accounting, budget, accounting)
        ledger.charge(accounting, gaussian(11.54), question=QUESTION)
        spent = ledger.spent(accounting)
        assert isinstance(spent, ApproxDP)
        assert spent.epsilon == pytest.approx(stated, abs=1e-3)


def test_a_question_without_noise_is_refused(ledger: Ledger) -> None:
    ledger.open_budget("patients", ApproxDP(epsilon=1, delta=1e-5, relation="replace-one"))
    response = dp_accounting.dp_event.RandomizedResponseDpEvent
    for event in (response(0.0, 4), response(1e-300, 4), dp_accounting.GaussianDpEvent(0.0)):
        price = Price(event=event, guarantee=PureDP(epsilon=700, relation="replace-one"))
        with pytest.raises(BudgetError, match="Nothing was charged"):
            ledger.charge("patients", price, question=QUESTION)


def test_a_price_is_converted_to_the_relation_of_the_budget(ledger: Ledger) -> None:
    ledger.open_budget("patients", replace(BUDGET, relation="replace-one"))
    receipt = ledger.charge("patients", gaussian(), question=QUESTION)
    assert ledger.spent("patients") == ZCDP(rho=0.5, relation="replace-one")
    assert receipt.price is not None
    assert receipt.price["guarantee"]["relation"] == "replace-one"
    assert receipt.price["event"]["noise_multiplier"] == 1.0
    ledger.verify([receipt])


def test_relations_and_units_are_never_mixed(opened: Ledger) -> None:
    with pytest.raises(RelationError, match="says nothing about add/remove"):
        opened.charge("patients", gaussian(relation="replace-one"), question=QUESTION)
    with pytest.raises(RelationError, match="budget protects one row"):
        opened.charge("patients", gaussian(unit=Unit(name="person", max_rows=2)), question=QUESTION)
    assert opened.spent("patients") is None


@pytest.mark.parametrize(
    ("budget", "accounting"),
    [
        (PureDP(epsilon=1.7, relation="add/remove"), None),
        (ZCDP(rho=0.3, relation="add/remove"), None),
        (ZCDP(rho=31.7, relation="add/remove"), None),
        (ApproxDP(epsilon=1, delta=1e-5, relation="add/remove"), "renyi"),
        (ApproxDP(epsilon=0.1, delta=1e-9, relation="add/remove"), "renyi"),
        (ApproxDP(epsilon=1, delta=1e-5, relation="add/remove"), "gaussian"),
        (ApproxDP(epsilon=8, delta=1e-2, relation="add/remove"), "gaussian"),
    ],
)
@pytest.mark.parametrize("part", [0.0, 0.37])
def test_the_largest_question_that_is_left_fits(
    key: OwnerKey, budget: Guarantee, accounting: str | None, part: float
) -> None:
    from privada.privacy.accounting import curves

    def ask(wanted: Guarantee) -> Price:
        if isinstance(wanted, PureDP):
            return laplace(wanted.epsilon)
        if isinstance(wanted, ZCDP):
            sigma = math.sqrt(1 / (2 * wanted.rho))
        else:
            assert isinstance(wanted, ApproxDP)
            sigma = curves.gaussian_sigma(epsilon=wanted.epsilon, delta=wanted.delta)
        return Price(event=dp_accounting.GaussianDpEvent(sigma), guarantee=wanted)

    with Ledger.open(":memory:", key) as ledger:
        ledger.open_budget("patients", budget, accounting)
        if part:
            first = ledger.remaining("patients").largest
            assert first is not None
            name = "rho" if isinstance(first, ZCDP) else "epsilon"
            half = replace(first, **{name: part * getattr(first, name)})
            ledger.charge("patients", ask(half), question=QUESTION)
        left = ledger.remaining("patients")
        assert left.largest is not None
        assert str(left.largest) in str(left)
        assert ledger.price("patients", ask(left.largest)).share == pytest.approx(left.share, rel=1e-6)
        ledger.charge("patients", ask(left.largest), question=QUESTION)
        if accounting == "gaussian" and not part:
            assert left.largest.epsilon == pytest.approx(budget.epsilon, rel=1e-12)  # type: ignore[attr-defined]


def test_the_order_is_fixed_when_the_budget_is_opened(
    place: str, key: OwnerKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version of an optimiser must not change what earlier charges cost."""
    with Ledger.open(place, key) as ledger:
        ledger.open_budget("patients", ApproxDP(epsilon=1, delta=1e-5, relation="add/remove"))
        ledger.charge("patients", gaussian(9), question=QUESTION)
        order = ledger.budget("patients").order  # type: ignore[attr-defined]
    monkeypatch.setattr("privada.privacy.accounting.curves.best_order", lambda **_: order + 1)
    with Ledger.open(place, key) as ledger:
        ledger.open_budget("patients", ApproxDP(epsilon=1, delta=1e-5, relation="add/remove"))
        ledger.charge("patients", gaussian(9), question=QUESTION)
        assert ledger.budget("patients").order == order  # type: ignore[attr-defined]
        _, first, second = ledger.lines("patients")
        assert first.cost == second.cost
        ledger.verify()


def test_a_quote_within_an_allowance_is_refused_by_it(opened: Ledger) -> None:
    account = Account.opened("patients", open_filter(ZCDP(rho=0.25, relation="add/remove")))
    quote = opened.price("patients", gaussian())
    fits, too_much = (
        account.quote_for("alice", [gaussian()], used=used) for used in (0, account.capacity // 4 * 3)
    )
    assert quote.within(None) == quote
    assert quote.within(fits) == replace(quote, allowance=fits)
    assert "and 50 % of the allowance of 'alice', of which 100 % is left: affordable" in str(
        quote.within(fits)
    )
    assert "50 % of the allowance" in quote.within(fits)._repr_html_()
    refused = quote.within(too_much)
    assert (refused.affordable, refused.after) == (False, None)
    assert "to ask for at most ρ = 0.06249 (zCDP)" in refused.advice  # rounded down
    assert "a larger allowance of 'alice'" in refused.advice
    said = str(refused.refusal())
    assert said.startswith("The allowance of 'alice' does not allow it: ")
    assert "would take 50 % of it, of which 25 % is left." in said
    assert said.endswith("Nothing was charged.")


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


ALICE, RENEWED, BOB = Asker("alice", "aa" * 32), Asker("alice", "cc" * 32), Asker("bob", "bb" * 32)


def rho(value: float) -> ZCDP:
    return ZCDP(rho=value, relation=AR)


def declared(asker: Asker, most: Guarantee | None) -> Allowance:
    return Allowance.of(asker.learner, asker.key, most)


def grant(ledger: Ledger, asker: Asker, most: Guarantee | None, by: str = "dora") -> int:
    return ledger.allow("patients", learner=asker.learner, key=asker.key, most=most, by=by).index


def told(ledger: Ledger) -> list[tuple[str, object, object]]:
    """Who changed what to what."""
    lines = (line for line in ledger.lines("patients") if line.kind == "allowance")
    return [(line.approver, _rho(line.detail["old"]), _rho(line.detail["new"])) for line in lines]


def _rho(plain: dict[str, float] | None) -> float | None:
    return None if plain is None else plain["rho"]


def test_a_change_says_who_made_it_from_what_to_what_and_when(opened: Ledger) -> None:
    grant(opened, ALICE, rho(0.25))
    grant(opened, ALICE, rho(0.125), by="emil")
    grant(opened, ALICE, None)
    assert told(opened) == [("dora", None, 0.25), ("emil", 0.25, 0.125), ("dora", 0.125, None)]
    *_, last = opened.lines("patients")
    assert (last.cost, last.asker, last.time[:2]) == (0, ALICE, "20")
    assert opened.verify().lines == 4


def test_what_the_last_line_says_counts_whatever_the_caller_brings(opened: Ledger) -> None:
    stale = declared(ALICE, rho(0.5))
    grant(opened, ALICE, rho(0.125))
    pay(opened, ALICE, stale, 1)
    with pytest.raises(BudgetError, match="allowance of 'alice' does not"):
        pay(opened, ALICE, stale, 2)
    with pytest.raises(BudgetError, match="allowance of 'alice' does not"):
        opened.check_allowance("patients", gaussian(), stale)
    grant(opened, ALICE, rho(0.25))
    pay(opened, ALICE, stale, 2)
    assert opened.used("patients", stale).share == 0


def test_one_that_is_lowered_below_what_was_used_leaves_nothing(opened: Ledger) -> None:
    terms = declared(ALICE, rho(0.25))
    opened.declare("patients", terms)
    pay(opened, ALICE, terms, 1)
    grant(opened, ALICE, rho(0.0625))
    left = opened.used("patients", terms)
    assert (left.share, left.largest) == (0, None)
    with pytest.raises(BudgetError, match="of which 0 % is left"):
        pay(opened, ALICE, terms, 2)


def test_a_new_key_or_a_new_name_does_not_escape_a_change(opened: Ledger) -> None:
    grant(opened, ALICE, rho(0.125))
    for other in (RENEWED, Asker("mallory", ALICE.key)):
        assert (
            opened.allowed("patients", declared(other, rho(0.5))).filter == declared(ALICE, rho(0.125)).filter
        )
    assert opened.allowed("patients", declared(BOB, None)).filter is None


def test_the_same_again_writes_nothing(opened: Ledger) -> None:
    first = grant(opened, ALICE, rho(0.25))
    assert grant(opened, ALICE, rho(0.25), by="emil") == first
    for _ in range(2):
        opened.declare("patients", declared(BOB, rho(0.25)))
        opened.declare("patients", declared(Asker("carl", "dd" * 32), None))
    assert told(opened) == [("dora", None, 0.25), (FILE, None, 0.25)]


def test_a_file_that_is_read_again_undoes_no_decision_and_one_that_is_edited_counts(opened: Ledger) -> None:
    opened.declare("patients", declared(ALICE, rho(0.25)))
    grant(opened, ALICE, rho(0.125))
    opened.declare("patients", declared(ALICE, rho(0.25)))
    assert opened.allowed("patients", declared(ALICE, rho(0.25))).filter == declared(ALICE, rho(0.125)).filter
    opened.declare("patients", declared(ALICE, rho(0.5)))
    opened.declare("patients", declared(ALICE, None))
    assert told(opened) == [(FILE, None, 0.25), ("dora", 0.25, 0.125), (FILE, 0.125, 0.5), (FILE, 0.5, None)]


def test_a_file_that_is_read_for_the_first_time_raises_nothing_that_a_person_decided(opened: Ledger) -> None:
    grant(opened, ALICE, rho(0.125))
    for most in (rho(0.25), None):
        opened.declare("patients", declared(ALICE, most))
    assert told(opened) == [("dora", None, 0.125)]
    opened.declare("patients", declared(ALICE, rho(0.0625)))
    assert told(opened)[1:] == [(FILE, 0.125, 0.0625)]


def test_what_a_person_granted_to_one_learner_is_not_handed_on_with_its_key(opened: Ledger) -> None:
    for one in (ALICE, BOB):
        opened.declare("patients", declared(one, rho(0.125)))
    grant(opened, ALICE, rho(0.5))
    opened.declare("patients", declared(ALICE, rho(0.125)))
    assert told(opened)[-1] == ("dora", 0.125, 0.5)
    heir = declared(Asker("bob", ALICE.key), rho(0.125))
    opened.declare("patients", heir)
    assert opened.allowed("patients", heir).filter == heir.filter
    grant(opened, Asker("bob", ALICE.key), rho(0.25))
    opened.declare("patients", heir)
    assert told(opened)[-2:] == [(FILE, 0.5, 0.125), ("dora", 0.125, 0.25)]
    assert opened.verify().lines == 6


def test_more_than_the_budget_or_other_terms_are_refused_and_nothing_is_written(opened: Ledger) -> None:
    for wrong in (rho(0.75), PureDP(epsilon=0.1, relation=AR)):
        with pytest.raises(InputError, match="The allowance is"):
            grant(opened, ALICE, wrong)
    with pytest.raises(InputError, match="by"):
        grant(opened, ALICE, rho(0.1), by="")
    with pytest.raises(InputError, match="lower-case word other than"):
        opened.note("patients", kind="allowance", text="more for me")
    assert told(opened) == []
