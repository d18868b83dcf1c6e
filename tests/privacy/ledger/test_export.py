"""Dp-accounting alone comes to the sums of an export."""

from __future__ import annotations

import json
import math
from typing import Any

import dp_accounting
import pytest

from privada.privacy import ZCDP, ApproxDP, Guarantee, Ledger, OwnerKey, Price, PureDP
from tests.privacy.ledger.cases import QUESTION, gaussian


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
