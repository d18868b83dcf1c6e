"""Whatever is edited, cut off or rewritten is found; dp-accounting alone comes to the sums of an export."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import dp_accounting
import pytest

from privada.exceptions import LedgerError, RelationError, TamperError
from privada.privacy import ZCDP, ApproxDP, Asker, Guarantee, Ledger, OwnerKey, Price, PureDP, Receipt
from privada.privacy.accounting.events import VisiblySampledDpEvent
from privada.privacy.accounting.filters import open_filter
from privada.privacy.ledger.account import Account
from privada.privacy.ledger.chain import Line, following, opening
from privada.privacy.ledger.verify import verify
from privada.privacy.wire import canonical
from tests.privacy.ledger.cases import BUDGET, QUESTION, gaussian, insert, rewritten, tampering

ATTRIBUTE_BUDGET = ApproxDP(epsilon=40, delta=1e-4, relation="attribute")
GAUSSIAN = dp_accounting.GaussianDpEvent(2.0)
SECRET = dp_accounting.SelfComposedDpEvent(
    dp_accounting.SampledWithoutReplacementDpEvent(958, 128, GAUSSIAN), 8
)
VISIBLE = dp_accounting.SelfComposedDpEvent(VisiblySampledDpEvent(958, 128, GAUSSIAN), 8)
KEY = OwnerKey.generate()


def priced(event, relation):
    return Price(event=event, guarantee=replace(ATTRIBUTE_BUDGET, epsilon=4.0, relation=relation))


def chain(relation, *charges):
    """Lines with prices and the costs that were written for them."""
    account = Account.opened("patients", open_filter(replace(ATTRIBUTE_BUDGET, relation=relation)))
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
    keeps = open_filter(ATTRIBUTE_BUDGET)
    old, cost = priced(SECRET, "attribute"), keeps.recorded_cost(priced(SECRET, "attribute"))
    found = verified(chain("attribute", (old, cost)))
    assert found.affected == ("Line 1 of 'patients'",)
    assert str(found).endswith("in Line 1 of 'patients': more was lost than was charged.")
    assert keeps.cost(priced(VISIBLE, "attribute")) > 1.2 * cost
    with pytest.raises(RelationError, match="replace-one only"):
        keeps.cost(old)


def test_an_owner_does_not_go_on_with_a_sum_that_is_false():
    cost = open_filter(ATTRIBUTE_BUDGET).recorded_cost(priced(SECRET, "attribute"))
    with Ledger.open(":memory:", KEY) as ledger:
        for line in (lines := chain("attribute", (priced(SECRET, "attribute"), cost))):
            with ledger._storage.writing() as tables:
                (tables.begin if line is lines[0] else tables.append)(line)
        with pytest.raises(LedgerError, match="Line 1 of 'patients' was priced too low by version 0.1.0"):
            ledger.check_budget("patients", ATTRIBUTE_BUDGET)


def test_a_ledger_charges_no_secret_sample_at_attribute_level():
    with Ledger.open(":memory:", KEY) as ledger:
        ledger.open_budget("patients", ATTRIBUTE_BUDGET)
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
    cost = open_filter(replace(ATTRIBUTE_BUDGET, relation="replace-one")).cost(price)
    lines = chain("replace-one", (price, round(share * cost)))
    if holds:
        assert verified(lines).affected == ()
    else:
        with pytest.raises(TamperError, match=r"its price comes to|passes the budget"):
            verified(lines)


def test_other_costs_are_exact():
    price = priced(GAUSSIAN, "attribute")
    cost = open_filter(ATTRIBUTE_BUDGET).cost(price)
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


def test_verification_counts(paid: tuple[Ledger, list[Receipt]]) -> None:
    ledger, receipts = paid
    found = ledger.verify(receipts)
    assert (found.datasets, found.lines, found.receipts) == (1, 6, 5)
    assert found.heads == {"patients": receipts[-1].head}
    assert "data sets: 1, lines: 6, receipts: 5" in str(found)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE lines SET cost = 0, spent = 0 WHERE position = 3", "Line 3 of 'patients' was edited"),
        ("UPDATE lines SET question = 'cd' WHERE position = 2", "Line 2 of 'patients' was edited"),
        ("UPDATE lines SET time = '2020' WHERE position = 5", "Line 5 of 'patients' was edited"),
        ("UPDATE lines SET purpose = 'other' WHERE position = 1", "Line 1 of 'patients' was edited"),
        ("UPDATE lines SET detail = 'no json' WHERE position = 4", "Line 4 of 'patients' was edited"),
        (
            "UPDATE lines SET detail = replace(detail, '0.5', '0.9') WHERE position = 0",
            "Line 0 of 'patients' was edited",
        ),
        ("UPDATE lines SET signature = '00' WHERE position = 4", "Line 4 of 'patients' was not signed"),
        ("DELETE FROM lines WHERE position = 3", "Line 3 of 'patients' is missing"),
        ("DELETE FROM lines WHERE position = 0", "Line 0 of 'patients' is missing"),
        ("DELETE FROM lines", "lines of 'patients' are gone"),
    ],
)
def test_an_edit_is_found(
    durable_paid: tuple[Ledger, list[Receipt]], place: str, change: str, said: str
) -> None:
    with tampering(place) as connection:
        connection.exec_driver_sql(change)
    with pytest.raises(TamperError, match=said):
        durable_paid[0].verify()


def test_a_cut_tail_is_found_by_a_receipt(durable_paid: tuple[Ledger, list[Receipt]], place: str) -> None:
    ledger, receipts = durable_paid
    with tampering(place) as connection:
        connection.exec_driver_sql("DELETE FROM lines WHERE position > 3")
    assert ledger.verify(receipts[:3]).lines == 4
    with pytest.raises(TamperError, match="Line 5 of 'patients' has a receipt, but the chain ends at line 3"):
        ledger.verify(receipts)


def test_a_vanished_data_set_is_found_by_a_receipt(
    durable_paid: tuple[Ledger, list[Receipt]], place: str
) -> None:
    ledger, receipts = durable_paid
    with tampering(place) as connection:
        connection.exec_driver_sql("DELETE FROM lines")
        connection.exec_driver_sql("DELETE FROM datasets")
    assert ledger.verify().datasets == 0
    with pytest.raises(TamperError, match="'patients', of which the ledger knows nothing"):
        ledger.verify(receipts)


def cheaper(line: Line) -> Line:
    """Every charge for half the grains."""
    return replace(line, cost=line.cost // 2, spent=line.spent // 2)


def swapped(line: Line) -> Line:
    """Charges that are consistent, but not the ones that were made."""
    return replace(line, question="cd" * 32) if line.index else line


@pytest.mark.parametrize(
    ("own", "change", "said"),
    [
        (False, swapped, "Line 0 of 'patients' was not signed by the owner: the chain was rewritten"),
        (True, swapped, "Line 1 of 'patients' is not the one that its receipt was given for"),
        (True, cheaper, r"Line 1 of 'patients' cost \d+ grains; its price comes to \d+"),
        (
            True,
            lambda line: replace(line, spent=line.spent + line.index),
            "Line 1 of 'patients' has a wrong sum",
        ),
        (
            True,
            lambda line: replace(line, kind="budget"),
            "Line 1 of 'patients' opens the budget a second time",
        ),
        (True, lambda line: replace(line, kind="charge"), "Line 0 of 'patients' does not open a budget"),
        (True, lambda line: replace(line, detail={}), "Line 0 of 'patients' holds no budget"),
        (
            True,
            lambda line: replace(line, detail=line.detail if line.index == 0 else {"event": {"type": "os"}}),
            "Line 1 of 'patients' holds no price",
        ),
        (
            True,
            lambda line: (
                replace(line, detail=line.detail | {"capacity": 10**18}) if line.index == 0 else line
            ),
            "Line 0 of 'patients' states a capacity",
        ),
        (
            True,
            lambda line: (
                replace(
                    line,
                    detail=line.detail | {"budget": replace(BUDGET, rho=0.1).to_dict(), "capacity": 10**14},
                )
                if line.index == 0
                else line
            ),
            "Line 4 of 'patients' passes the budget",
        ),
    ],
)
def test_a_chain_that_was_written_anew_is_found(
    durable_paid: tuple[Ledger, list[Receipt]],
    place: str,
    key: OwnerKey,
    own: bool,
    change: Callable[[Line], Line],
    said: str,
) -> None:
    ledger, receipts = durable_paid
    chain = rewritten(list(ledger.lines("patients")), key if own else OwnerKey.generate(), change)
    with tampering(place) as connection:
        connection.exec_driver_sql("DELETE FROM lines")
        for line in chain:
            insert(connection, line)
    with pytest.raises(TamperError, match=said):
        ledger.verify(receipts if change is swapped else ())


def test_a_forged_or_foreign_receipt_is_found(paid: tuple[Ledger, list[Receipt]]) -> None:
    ledger, receipts = paid
    with pytest.raises(TamperError, match="was changed"):
        ledger.verify([replace(receipts[0], index=2)])
    with Ledger.open(":memory:", OwnerKey.generate()) as other:
        foreign = other.open_budget("patients", BUDGET)
    with pytest.raises(TamperError, match="another owner"):
        ledger.verify([foreign])


def test_a_broken_link_is_found(
    durable_paid: tuple[Ledger, list[Receipt]], place: str, key: OwnerKey
) -> None:
    ledger, _ = durable_paid
    lines = list(ledger.lines("patients"))
    with tampering(place) as connection:
        connection.exec_driver_sql("DELETE FROM lines WHERE position = 5")
        insert(connection, replace(lines[5], previous=lines[3].digest).sealed(key))
    with pytest.raises(TamperError, match="Line 5 of 'patients' does not follow from the line before it"):
        ledger.verify()


def test_nothing_is_charged_after_an_edited_line(
    durable_paid: tuple[Ledger, list[Receipt]], place: str
) -> None:
    ledger, _ = durable_paid
    with tampering(place) as connection:
        connection.exec_driver_sql("UPDATE lines SET cost = 0, spent = 0 WHERE position = 5")
    with pytest.raises(TamperError, match="Line 5 of 'patients' was edited"):
        ledger.charge("patients", gaussian(), question=QUESTION)
    assert len(list(ledger.lines("patients"))) == 6


def rebuilt(form: dict[str, Any]) -> dp_accounting.DpEvent:
    """An event from its JSON form, by class name."""
    fields = {name: value for name, value in form.items() if name != "type"}
    for name, value in fields.items():
        if isinstance(value, dict):
            fields[name] = rebuilt(value)
        elif isinstance(value, list):
            fields[name] = [rebuilt(part) for part in value]
    return getattr(dp_accounting.dp_event, form["type"])(**fields)


def divergence(line: dict[str, Any], recompute: dict[str, Any], orders: list[float]) -> float:
    relation = dp_accounting.NeighboringRelation[recompute["neighboring_relation"]]
    accountant = dp_accounting.rdp.RdpAccountant(orders, relation)
    accountant.compose(rebuilt(line["event"]), line["times"])
    return float(accountant._rdp[0])


def recomputed(form: dict[str, Any]) -> float:
    """What a data set has spent, from its export and dp-accounting."""
    recompute = form["recompute"]
    charges = [line for line in form["lines"] if line["kind"] == "charge"]
    if form["filter"] == "renyi":
        return math.fsum(divergence(line, recompute, recompute["orders"]) for line in charges)
    if form["filter"] == "zcdp":  # Gaussian, ZCDp and their compositions: divergence is order times rho
        return math.fsum(divergence(line, recompute, [2.0]) / 2 for line in charges)
    if form["filter"] == "gaussian":  # mu squared is twice rho
        return math.fsum(divergence(line, recompute, [2.0]) for line in charges)
    return math.fsum(
        line["times"] * line["epsilon"] if line["epsilon"] else divergence(line, recompute, [math.inf])
        for line in charges
    )


GAUSS = dp_accounting.GaussianDpEvent(3.3)


LAPLACE = dp_accounting.LaplaceDpEvent(7.1)


RHO = dp_accounting.ZCDpEvent(0.0123)


RESPONSE = dp_accounting.dp_event.RandomizedResponseDpEvent(0.8, 5)


NESTED = dp_accounting.ComposedDpEvent(
    [GAUSS, dp_accounting.SelfComposedDpEvent(dp_accounting.ComposedDpEvent([GAUSS, RHO]), 3)]
)


MIXED = dp_accounting.ComposedDpEvent([NESTED, RESPONSE, dp_accounting.SelfComposedDpEvent(LAPLACE, 4)])


@pytest.mark.parametrize(
    ("budget", "accounting", "events"),
    [
        (
            ApproxDP(epsilon=30, delta=1e-6, relation="replace-one"),
            "renyi",
            [GAUSS, LAPLACE, RHO, RESPONSE, MIXED],
        ),
        (ZCDP(rho=2, relation="replace-one"), "zcdp", [GAUSS, RHO, NESTED]),
        (
            ApproxDP(epsilon=30, delta=1e-6, relation="replace-one"),
            "gaussian",
            [
                GAUSS,
                dp_accounting.SelfComposedDpEvent(GAUSS, 3),
                dp_accounting.ComposedDpEvent([GAUSS, GAUSS]),
            ],
        ),
        (PureDP(epsilon=8, relation="replace-one"), "pure", [LAPLACE, RESPONSE]),
    ],
)
def test_an_outsider_recomputes_the_export(
    ledger: Ledger, budget: Guarantee, accounting: str, events: list[dp_accounting.DpEvent]
) -> None:
    ledger.open_budget("patients", budget, accounting)
    for times, event in enumerate(events, start=1):
        epsilon = 1 / event.noise_multiplier if event is LAPLACE else None
        price = Price(event=event, guarantee=budget, epsilon=epsilon, times=times)
        ledger.charge("patients", price, question=QUESTION)
    ledger.charge("patients", gaussian(9), question=QUESTION) if accounting != "pure" else None
    ledger.note("patients", text="rows to a curator")
    form = json.loads(json.dumps(ledger.export()))["datasets"]["patients"]
    assert recomputed(form) == pytest.approx(form["spent"] * form["grain"], rel=1e-9)
    assert form["spent"] == sum(line["cost"] for line in form["lines"])


def test_the_export_is_complete(opened: Ledger, key: OwnerKey) -> None:
    receipt = opened.charge("patients", gaussian(), question=QUESTION, purpose="a mean")
    opened.open_budget("others", ApproxDP(epsilon=1, delta=1e-5, relation="add/remove"))
    form = json.loads(json.dumps(opened.export()))
    assert (form["format"], form["owner"]) == ("privada-ledger/1", key.public)
    assert set(form["datasets"]) == {"others", "patients"}
    assert form["datasets"]["others"]["order"] == opened.budget("others").order  # type: ignore[attr-defined]
    patients = opened.export("patients")["datasets"]["patients"]
    assert patients == form["datasets"]["patients"]
    assert (patients["filter"], patients["order"], patients["capacity"]) == ("zcdp", None, 5 * 10**14)
    line = patients["lines"][1]
    assert line["event"] == {"type": "GaussianDpEvent", "noise_multiplier": 2.0}
    assert (line["times"], line["epsilon"], line["cost"]) == (1, None, 125 * 10**12)
    assert (line["hash"], line["signature"]) == (receipt.digest, receipt.signature)
    assert (line["question"], line["purpose"], line["index"]) == (QUESTION, "a mean", 1)
    assert "1 / (2 noise_multiplier**2)" in patients["recompute"]["sentence"]
