import json
import sqlite3
from contextlib import closing

import pytest


@pytest.fixture
def place(cli, home, edit):
    """Arguments that name a ledger of two charges."""
    for number in (0, 1):
        cli("run", home / "study.toml")
        edit("study.toml", f"again = {number}", f"again = {number + 1}")
    return home / "clinic/ledger.sqlite", "--key", home / "clinic/owner.key"


def change(ledger, statement):
    """What someone with the file, but without the key, can do."""
    with closing(sqlite3.connect(ledger)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement)
        connection.commit()


def test_show(cli, home, place):
    shown = cli.json("ledger", "show", *place, "--last", "1")["datasets"]["patients"]
    assert shown["left"] == pytest.approx(0.5)
    assert shown["spent"]["epsilon"] == pytest.approx(2)
    assert [line["index"] for line in shown["lines"]] == [2]
    text = cli("ledger", "show", home / "clinic/owner.toml").stdout
    assert "50%" in text
    assert "cells.statistics" in text


def test_verify_finds_an_edited_line(cli, place):
    assert cli.json("ledger", "verify", *place)["lines"] == 3
    change(place[0], "UPDATE lines SET cost = 1 WHERE position = 1")
    failed = cli("ledger", "verify", *place, expect=5)
    assert "Line 1" in failed.stderr
    assert failed.stdout == ""


def test_verify_finds_a_cut_tail_by_a_receipt(cli, home, place, tmp_path):
    head = cli.json("ledger", "verify", *place)["heads"]["patients"]
    exchange = tmp_path / "exchange"
    cli("ask", "cells", home / "study.toml", "--folder", exchange, expect=4)
    cli("answer", home / "clinic/owner.toml", "--folder", exchange, "--name", "clinic")
    receipt = tmp_path / "receipt.json"
    (release,) = (exchange / "releases/clinic").glob("*.release")
    receipt.write_text(json.dumps(cli.json("release", "show", release)["receipt"]))
    assert cli.json("ledger", "verify", *place, "--receipt", receipt, "--receipt", release)["receipts"] == 2
    for table in ("answers", "lines"):
        change(place[0], f"DELETE FROM {table} WHERE position = 3")
    assert (
        "Line 3 of 'patients' was written and is missing" in cli("ledger", "verify", *place, expect=5).stderr
    )
    place[0].with_name("ledger.sqlite.heads").unlink()  # without the owner's own note, receipts must tell
    assert cli.json("ledger", "verify", *place)["heads"]["patients"] == head
    for held in (receipt, release, exchange):
        assert "tail was cut off" in cli("ledger", "verify", *place, "--receipt", held, expect=5).stderr


def test_export_and_backup(cli, place, tmp_path):
    out, copy = tmp_path / "ledger.json", tmp_path / "copy.sqlite"
    exported = cli.json("ledger", "export", *place)
    cli("ledger", "export", *place, "--out", out)
    assert json.loads(out.read_text()) == exported
    cli("ledger", "backup", place[0], copy, *place[1:])
    assert cli.json("ledger", "export", copy, *place[1:]) == exported
    assert "not overwritten" in cli("ledger", "backup", place[0], copy, *place[1:], expect=2).stderr


def test_a_restored_ledger_is_continued_by_a_command(cli, home, edit, place, tmp_path):
    backup = tmp_path / "backup.sqlite"
    cli("ledger", "backup", place[0], backup, *place[1:])
    edit("study.toml", "again = 2", "again = 3")
    cli("run", home / "study.toml")
    place[0].write_bytes(backup.read_bytes())
    edit("study.toml", "again = 3", "again = 4")
    assert "Line 3 of 'patients' was written" in cli("run", home / "study.toml", expect=5).stderr
    assert "it is not true" in cli("ledger", "restore", *place, "--lost", "nothing", expect=5).stderr
    (done,) = cli.json("ledger", "restore", *place, "--by", "Ada")["restored"]
    assert done == {
        "dataset": "patients",
        "line": 4,
        "text": "Ada: lines up to 3 are lost and count as spent",
    }
    assert "Nothing is missing" in cli("ledger", "restore", *place).stdout
    assert cli.json("ledger", "show", *place)["datasets"]["patients"]["left"] == pytest.approx(0.25)
    cli("run", home / "study.toml")
    assert "nothing or everything" in cli("ledger", "restore", *place, "--lost", "some", expect=2).stderr


def test_looking_makes_no_ledger(cli, home, tmp_path):
    key = home / "clinic/owner.key"
    assert "there is no file" in cli("ledger", "show", tmp_path / "no.sqlite", "--key", key, expect=2).stderr
    assert not (tmp_path / "no.sqlite").exists()
    assert "--key FILE" in cli("ledger", "show", home / "clinic/ledger.sqlite", expect=2).stderr
    (tmp_path / "text.sqlite").write_text("not a database, but long enough to be taken for one")
    cli("ledger", "verify", tmp_path / "text.sqlite", "--key", key, expect=5)
    (tmp_path / "receipt.json").write_text("[]")
    bad = cli(
        "ledger", "verify", home / "clinic/owner.toml", "--receipt", tmp_path / "receipt.json", expect=5
    )
    assert "not a receipt" in bad.stderr


def test_an_empty_ledger_says_so(cli, home, new_ledger):
    new_ledger()
    assert "no budget was opened" in cli("ledger", "show", home / "clinic/owner.toml").stdout
