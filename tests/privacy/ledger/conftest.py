"""A ledger with a budget, and one with charges."""

from __future__ import annotations

import pytest

from privada.privacy import Ledger, Receipt
from tests.privacy.ledger.cases import BUDGET, QUESTION, gaussian


@pytest.fixture
def opened(ledger: Ledger) -> Ledger:
    ledger.open_budget("patients", BUDGET)
    return ledger


@pytest.fixture
def paid(opened: Ledger) -> tuple[Ledger, list[Receipt]]:
    return opened, [opened.charge("patients", gaussian(4), question=QUESTION) for _ in range(5)]
