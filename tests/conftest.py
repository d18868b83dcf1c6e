import warnings

import pytest
from hypothesis import settings
from sklearn import config_context

from privada.exceptions import RehearsalWarning
from privada.parties.one_process import process_ledger
from privada.privacy import Rehearsal

settings.register_profile("suite", deadline=None)  # a busy machine is not a failure
settings.load_profile("suite")


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


@pytest.fixture(autouse=True)
def own_sklearn_settings():
    """Importing skada, as a page does, turns metadata routing on for the process: undone after each test."""
    with config_context():
        yield
