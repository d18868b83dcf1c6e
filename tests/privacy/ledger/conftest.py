"""A ledger with a budget, and one with charges: on every storage, and on those that can be opened again."""

from __future__ import annotations

import pytest

from privada.privacy import Ledger, Receipt
from tests.privacy.ledger.cases import BUDGET, QUESTION, gaussian


def charge_five(ledger: Ledger) -> tuple[Ledger, list[Receipt]]:
    return ledger, [ledger.charge("patients", gaussian(4), question=QUESTION) for _ in range(5)]


@pytest.fixture
def opened(ledger: Ledger) -> Ledger:
    ledger.open_budget("patients", BUDGET)
    return ledger


@pytest.fixture
def paid(opened: Ledger) -> tuple[Ledger, list[Receipt]]:
    return charge_five(opened)


@pytest.fixture
def durable_opened(durable: Ledger) -> Ledger:
    durable.open_budget("patients", BUDGET)
    return durable


@pytest.fixture
def durable_paid(durable_opened: Ledger) -> tuple[Ledger, list[Receipt]]:
    return charge_five(durable_opened)
