"""Fixtures of all tests, and what pytest leaves out where the extra ``deep`` is not installed."""

import json
import warnings
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import settings
from sklearn import config_context

from privada.exceptions import RehearsalWarning
from privada.parties.one_process import process_ledger
from privada.privacy import Rehearsal

DEEP = [  # docstrings that need torch
    "src/privada/methods/reweighting/deep.py",
    "src/privada/methods/reweighting/questions/network.py",
]

collect_ignore = DEEP if find_spec("torch") is None else []

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


class Cli:
    """Call the command line in this process."""

    def __call__(self, *words: object, expect: int = 0) -> Any:
        """Run a command, whose exit code has to be the expected one."""
        from typer.testing import CliRunner

        from privada.cli import app

        result = CliRunner().invoke(app, [str(word) for word in words], prog_name="privada")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == expect, (result.exit_code, result.stdout, result.stderr)
        return result

    def json(self, *words: object, expect: int = 0) -> Any:
        """Run a command with ``--json`` and read what it prints."""
        return json.loads(self(*words, "--json", expect=expect).stdout)


@pytest.fixture
def cli():
    """The command line."""
    return Cli()
