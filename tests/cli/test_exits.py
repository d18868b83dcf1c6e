"""Exit codes mean something, errors are one line, and nothing private is in them."""

import subprocess
import sys

import pytest

from privada import exceptions
from privada.cli import exits
from privada.cli.exits import Exit, code_of


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("InputError", 2),
        ("SchemaError", 2),
        ("StudyError", 2),
        ("RelationError", 2),
        ("BudgetError", 3),
        ("PolicyError", 3),
        ("AnswerError", 3),
        ("ApprovalPending", 4),
        ("Waiting", 4),
        ("LedgerError", 5),
        ("TamperError", 5),
        ("WireError", 5),
        ("PrivadaError", 1),
    ],
)
def test_codes(kind, code):
    assert code_of(getattr(exceptions, kind)("text")) == code


def test_every_error_has_a_code():
    kinds = [
        kind
        for kind in vars(exceptions).values()
        if isinstance(kind, type) and issubclass(kind, exceptions.PrivadaError)
    ]
    silent = {kind.__name__ for kind in kinds if code_of(kind("text")) is Exit.UNEXPECTED}
    assert silent == {"PrivadaError"}


def test_the_table_in_the_docstring_is_the_enumeration():
    said = [int(line[0]) for line in exits.__doc__.splitlines() if line[:1].isdigit()]
    assert said == list(Exit)


def test_usage_errors_end_with_2(cli):
    assert "No such option" in cli("demo", "--wrong", expect=2).stderr
    assert "No such command" in cli("deom", expect=2).stderr
    assert "--folder" in cli("ask", "cells", "study.toml", expect=2).stderr


def test_an_unexpected_error_shows_its_place_but_not_its_message(cli, home, monkeypatch):
    def fail(*_, **__):
        raise ValueError("the row of Jane Doe: 0.123")

    monkeypatch.setattr("privada.studies.outcome.run_study", fail)
    quiet = cli("run", home / "study.toml", expect=1)
    assert "unexpected ValueError in test_exits.py" in quiet.stderr
    assert "Jane" not in quiet.output
    assert "--traceback" in quiet.stderr
    assert "Jane" in cli("--traceback", "run", home / "study.toml", expect=1).stderr


def test_warnings_and_notes_are_single_lines(cli, home, edit, new_ledger):
    new_ledger()
    edit("clinic/owner.toml", "epsilon = 4.0", "epsilon = 40.0\ndelta = 0.01\naccounting = 'gaussian'")
    edit("clinic/owner.toml", "[[schema.columns]]", "[schema]\nsize = 1200\n[[schema.columns]]")
    cli("owner", "open-budget", home / "clinic/owner.toml")
    said = cli("run", home / "study.toml").stderr.splitlines()
    assert any(line.startswith("warning: delta = 0.01 is above") for line in said)
    assert any(line.startswith("note: The budget") for line in said)
    assert len(said) == 2


def test_a_real_process_keeps_the_contract(tmp_path):
    def call(*words):
        return subprocess.run(
            [sys.executable, "-m", "privada.cli", *words],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
        )

    done = call("run", "nowhere.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: STUDY: there is no file nowhere.toml.\n"
    (tmp_path / "bad.release").write_bytes(b"junk")
    forged = call("release", "show", "bad.release")
    assert forged.returncode == 5
    assert len(forged.stderr.splitlines()) == 1
