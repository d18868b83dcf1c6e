"""Chains that earlier versions wrote: what still verifies, and what is named as priced too low."""

import json
from dataclasses import replace

import dp_accounting
import pytest

from privada.exceptions import LedgerError, RelationError, TamperError
from privada.privacy import ApproxDP, Asker, Ledger, OwnerKey, Price
from privada.privacy.accounting.events import VisiblySampledDpEvent
from privada.privacy.accounting.filters import open_filter
from privada.privacy.ledger.account import Account
from privada.privacy.ledger.chain import following, opening
from privada.privacy.ledger.verify import verify
from privada.privacy.wire import canonical

QUESTION = "ab" * 32
BUDGET = ApproxDP(epsilon=40, delta=1e-4, relation="attribute")
GAUSSIAN = dp_accounting.GaussianDpEvent(2.0)
SECRET = dp_accounting.SelfComposedDpEvent(
    dp_accounting.SampledWithoutReplacementDpEvent(958, 128, GAUSSIAN), 8
)
VISIBLE = dp_accounting.SelfComposedDpEvent(VisiblySampledDpEvent(958, 128, GAUSSIAN), 8)
KEY = OwnerKey.generate()


def priced(event, relation):
    return Price(event=event, guarantee=replace(BUDGET, epsilon=4.0, relation=relation))


def chain(relation, *charges):
    """Lines with prices and the costs that were written for them."""
    account = Account.opened("patients", open_filter(replace(BUDGET, relation=relation)))
    lines = [opening("patients", account, KEY)]
    for price, cost in charges:
        detail = json.loads(canonical(price.to_dict()))
        lines.append(
            following(lines[-1], KEY, kind="charge", cost=cost, detail=detail, question=QUESTION, purpose="")
        )
    return lines


def verified(lines):
    return verify({"patients": lines}, [lines[-1].receipt(KEY.public)], public=KEY.public)


def test_a_secret_sample_charged_at_attribute_level_is_named():
    keeps = open_filter(BUDGET)
    old, cost = priced(SECRET, "attribute"), keeps.recorded_cost(priced(SECRET, "attribute"))
    found = verified(chain("attribute", (old, cost)))
    assert found.affected == ("Line 1 of 'patients'",)
    assert str(found).endswith("in Line 1 of 'patients': more was lost than was charged.")
    assert keeps.cost(priced(VISIBLE, "attribute")) > 1.2 * cost
    with pytest.raises(RelationError, match="replace-one only"):
        keeps.cost(old)


def test_an_owner_does_not_go_on_with_a_sum_that_is_false():
    cost = open_filter(BUDGET).recorded_cost(priced(SECRET, "attribute"))
    with Ledger.open(":memory:", KEY) as ledger:
        for line in (lines := chain("attribute", (priced(SECRET, "attribute"), cost))):
            with ledger._storage.writing() as tables:
                (tables.begin if line is lines[0] else tables.append)(line)
        with pytest.raises(LedgerError, match="Line 1 of 'patients' was priced too low by version 0.1.0"):
            ledger.check_budget("patients", BUDGET)


def test_a_ledger_charges_no_secret_sample_at_attribute_level():
    with Ledger.open(":memory:", KEY) as ledger:
        ledger.open_budget("patients", BUDGET)
        for refused in (ledger.price, lambda name, price: ledger.charge(name, price, question=QUESTION)):
            with pytest.raises(RelationError, match="replace-one only"):
                refused("patients", priced(SECRET, "attribute"))
        ledger.charge("patients", priced(VISIBLE, "attribute"), question=QUESTION)
        ledger.charge("patients", priced(SECRET, "replace-one"), question=QUESTION)
        assert ledger.verify().affected == ()


@pytest.mark.parametrize(("share", "holds"), [(1.0, True), (1.3, True), (0.99, False), (50.0, False)])
def test_samples_that_were_bounded_less_tightly_verify(share, holds):
    """Between the cost of the sample and the cost without sampling; nothing below, nothing above."""
    price = priced(SECRET, "replace-one")
    cost = open_filter(replace(BUDGET, relation="replace-one")).cost(price)
    lines = chain("replace-one", (price, round(share * cost)))
    if holds:
        assert verified(lines).affected == ()
    else:
        with pytest.raises(TamperError, match=r"its price comes to|passes the budget"):
            verified(lines)


def test_other_costs_are_exact():
    price = priced(GAUSSIAN, "attribute")
    cost = open_filter(BUDGET).cost(price)
    assert str(verified(chain("attribute", (price, cost)))).endswith("signatures hold.")
    for wrong in (cost - cost // 10**6, cost + cost // 10**6):
        with pytest.raises(TamperError, match="its price comes to"):
            verified(chain("attribute", (price, wrong)))


@pytest.mark.parametrize(
    ("learner", "key", "old", "holds"),
    [
        ("alice", "aa" * 32, {"rho": 1}, True),
        ("alice", "cc" * 32, {"rho": 1}, True),
        ("carol", "aa" * 32, {"rho": 1}, True),
        ("bob", "bb" * 32, None, True),
        ("alice", "aa" * 32, None, False),
        ("alice", "aa" * 32, {"rho": 2}, False),
        ("bob", "bb" * 32, {"rho": 1}, False),
    ],
)
def test_an_allowance_changes_from_what_the_line_before_granted(learner, key, old, holds):
    """Also one whose owner signed it."""
    lines = chain("add/remove")
    for asker, was, new in (
        (Asker("alice", "aa" * 32), None, {"rho": 1}),
        (Asker(learner, key), old, {"rho": 3}),
    ):
        detail = {"text": "", "old": was, "new": new}
        lines.append(following(lines[-1], KEY, kind="allowance", cost=0, detail=detail, asker=asker))
    if holds:
        assert verified(lines).lines == 3
    else:
        with pytest.raises(TamperError, match="Line 2 of 'patients' changes an allowance that its learner"):
            verified(lines)
