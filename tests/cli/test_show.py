"""Exit codes mean something; errors are one line; control characters of others never reach a terminal."""

import json
import re
import subprocess
import sys

import pytest

from privada import exceptions
from privada.cli import show
from privada.cli.show import Exit, code_of
from privada.exceptions import InputError
from privada.report.page import Page, Panel
from privada.report.tables import Table


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
    said = [int(line.strip()[0]) for line in Exit.__doc__.splitlines() if line.strip()[:1].isdigit()]
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
    assert "unexpected ValueError in test_show.py" in quiet.stderr
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


EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202egnp.\r[bold red]:warning:[/]"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def check(text):
    assert not OBEYED.search(text), OBEYED.search(text)
    assert "\\x1b[2J" in text
    assert "[bold red]:warning:[/]" in text.replace("\n", "")


@pytest.mark.parametrize("say", [show.error, show.note, show.raw])
def test_sentences_on_stderr(say, capsys):
    say(f"refused: {EVIL}")
    check(capsys.readouterr().err)


def test_sentences_and_tables(capsys, monkeypatch):
    table = Table(title=EVIL, columns=("what", EVIL), rows=(("a\nb", EVIL),), note=EVIL)
    for columns in ("300", "40"):
        monkeypatch.setenv("COLUMNS", columns)
        show.emit({}, (f"Head of {EVIL}\nerror: all is lost", table), as_json=False)
        shown = capsys.readouterr().out
        check(shown)
        assert not re.search("^error:", shown, re.MULTILINE)


def test_json_is_the_same_value_without_control_characters(capsys):
    plain = {EVIL: [EVIL, "\ud800", 1.0], "after": "\x7f\x85\u2028"}
    show.emit(plain, (), as_json=True)
    shown = capsys.readouterr().out
    assert not OBEYED.search(shown.removesuffix("\n"))
    assert json.loads(shown) == plain


def test_a_page_escapes(tmp_path):
    table = Table(title=EVIL, columns=(EVIL, "<b>"), rows=((EVIL, "<script>"),), note=EVIL)
    page = Page(title=f"<i>{EVIL}", lead=EVIL, panels=(Panel(title=EVIL, text=EVIL, tables=(table,)),))
    text = page.save(tmp_path / "page.html").read_text(encoding="utf-8")
    assert not OBEYED.search(text)
    assert "<script>" not in text
    assert "<b>" not in text.replace('<div class="score"><b>', "")
    assert "<i>" not in text


def in_toml(text):
    return json.dumps(text)


def test_names_of_a_study_and_its_owner(cli, home, edit):
    edit("study.toml", "title = ", f"title = {in_toml(EVIL)} # ")
    shown = cli("run", home / "study.toml")
    check(shown.stdout)
    plain = cli.json("run", home / "study.toml")
    assert plain["study"] == EVIL


def test_a_purpose_and_a_data_set_in_a_ledger(cli, tmp_path, monkeypatch):
    """A ledger of before such names were refused."""
    import dp_accounting

    from privada.privacy import ZCDP, Ledger, OwnerKey, Price
    from privada.privacy.ledger import ledger as module

    monkeypatch.setattr(module, "check_name", lambda **_: None)

    key, half = OwnerKey.generate(), ZCDP(rho=0.5, relation="add/remove")
    key.save(tmp_path / "key")
    name = "\x1b[31mpatients"
    price = Price(event=dp_accounting.GaussianDpEvent(noise_multiplier=2), guarantee=half)
    with Ledger.open(tmp_path / "ledger.sqlite", key) as ledger:
        ledger.open_budget(name, half)
        ledger.charge(name, price, question="ab" * 32, purpose=EVIL)
        ledger.note(name, text=EVIL)
    for verb in ("show", "verify", "export"):
        shown = cli("ledger", verb, tmp_path / "ledger.sqlite", "--key", tmp_path / "key").stdout
        assert not OBEYED.search(shown), verb
        assert "[31mpatients" in shown
    shown = cli("ledger", "show", tmp_path / "ledger.sqlite", "--key", tmp_path / "key").stdout
    assert "\\x1b[2J" in shown  # the purpose


def test_a_column_and_a_data_set(cli, tmp_path):
    data = tmp_path / "rows.csv"
    data.write_bytes(f'"{EVIL}",y\n1,2\n'.encode())
    result = cli("owner", "init", tmp_path / "clinic", "--data", data, "--label", "z", expect=2)
    check(result.stderr)
    error = cli("owner", "init", tmp_path / "clinic", "--data", data, "--name", EVIL, expect=2).stderr
    assert "no invisible character" in error
    assert not OBEYED.search(error)
    cli("owner", "init", tmp_path / "clinic", "--data", data, "--name", "patients")
    error = cli("owner", "schema", tmp_path / "clinic" / "owner.toml", expect=2).stderr
    assert not OBEYED.search(error)


def test_an_owner_file_that_quotes(cli, home, edit):
    edit("clinic/owner.toml", "[privacy]", f"[privacy]\nwrong = {in_toml(EVIL)}\nepsilom = 1")
    assert not OBEYED.search(cli("owner", "schema", home / "clinic" / "owner.toml", expect=2).stderr)
    (home / "clinic" / "owner.toml").write_text(f"[privacy]\nrelation = {in_toml(EVIL)}\n", encoding="utf-8")
    assert not OBEYED.search(cli("owner", "schema", home / "clinic" / "owner.toml", expect=2).stderr)


def test_a_printed_schema_reads_back(cli, home, edit, tmp_path):
    """What is written out in TOML is an escape of TOML's own."""
    from privada.parties.owner_file import Card, OwnerFile
    from privada.parties.schema import Category, Number, Schema

    card = OwnerFile.read(home / "clinic" / "owner.toml").card()
    schema = Schema(columns=(Number(name=EVIL, low=0, high=1), Category(name="c", values=(EVIL, "b"))))
    text = Card(schema=schema, relation=card.relation).to_toml()
    assert not OBEYED.search(text)
    (tmp_path / "schema.toml").write_text(text, encoding="utf-8")
    assert Card.read(tmp_path / "schema.toml").schema == schema


def test_a_long_error_is_cut(cli, home, edit):
    edit("study.toml", "[method]", f"[method]\n{'x' * 100_000} = 1")
    stderr = cli("run", home / "study.toml", expect=2).stderr
    assert len(stderr) < 1200
    with pytest.raises(InputError) as caught:
        raise InputError("x" * 100_000)
    assert len(str(caught.value)) == 1000
