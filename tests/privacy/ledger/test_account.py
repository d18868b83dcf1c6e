"""What a price costs, what is left, and what a budget refuses to count."""

from __future__ import annotations

import math
from dataclasses import replace

import dp_accounting
import pytest

from privada.exceptions import BudgetError, RelationError
from privada.privacy import ZCDP, ApproxDP, Guarantee, Ledger, OwnerKey, Price, PureDP, Unit
from privada.privacy.accounting.filters import open_filter
from privada.privacy.ledger.account import Account
from tests.privacy.ledger.cases import BUDGET, QUESTION, gaussian, grains, laplace


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
