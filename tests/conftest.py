import warnings

import pytest

from privada.exceptions import RehearsalWarning
from privada.parties.one_process import process_ledger
from privada.privacy import Rehearsal


@pytest.fixture
def rehearsal():
    """Seeded noise: reproducible, and not private."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RehearsalWarning)
        return Rehearsal(20_260_101)


@pytest.fixture(autouse=True)
def new_process(monkeypatch):
    """A process that has used no rows: tests share generated ones."""
    monkeypatch.setattr(process_ledger, "THE_LEDGER", process_ledger.ProcessLedger())
