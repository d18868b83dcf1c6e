"""The passphrase of an owner's key: from the environment or a terminal, never from a file or an argument."""

import pytest

from privada.exceptions import LedgerError
from privada.privacy import OwnerKey

OLD, NEW = "correct horse", "battery staple"


@pytest.fixture
def say(monkeypatch):
    def set_both(old, new=None):
        for name, value in (("PRIVADA_KEY_PASSPHRASE", old), ("PRIVADA_NEW_KEY_PASSPHRASE", new)):
            monkeypatch.delenv(name, raising=False)
            if value is not None:
                monkeypatch.setenv(name, value)

    set_both(None)
    return set_both


def test_a_new_owner_with_a_passphrase(cli, tmp_path, say):
    assert (
        "set PRIVADA_KEY_PASSPHRASE" in cli("owner", "init", tmp_path / "a", "--passphrase", expect=5).stderr
    )
    assert not (tmp_path / "a").exists()
    say(OLD)
    made = cli.json("owner", "init", tmp_path / "a", "--passphrase")
    assert OwnerKey.load(tmp_path / "a" / "owner.key", passphrase=OLD).public == made["public_key"]


def test_a_passphrase_is_set_changed_and_removed(cli, home, say):
    owner, key = home / "clinic" / "owner.toml", home / "clinic" / "owner.key"
    before = OwnerKey.load(key)
    say(None, OLD)
    assert cli.json("owner", "key", "passphrase", owner)["protected"]
    assert OwnerKey.load(key, passphrase=OLD) == before
    assert "set PRIVADA_KEY_PASSPHRASE" in cli("owner", "schema", owner, expect=5).stderr
    assert "set PRIVADA_KEY_PASSPHRASE" in cli("run", home / "study.toml", expect=5).stderr
    say(OLD)
    assert cli.json("owner", "schema", owner)["public_key"] == before.public
    cli("run", home / "study.toml")
    say(OLD, NEW)
    cli("owner", "key", "passphrase", owner)
    with pytest.raises(LedgerError, match="does not open"):
        OwnerKey.load(key, passphrase=OLD)
    assert "does not open" in cli("owner", "key", "passphrase", owner, expect=5).stderr
    say(NEW)
    assert "set PRIVADA_NEW_KEY_PASSPHRASE" in cli("owner", "key", "passphrase", owner, expect=5).stderr
    cli("owner", "key", "passphrase", owner, "--remove")
    say(None)
    assert OwnerKey.load(key) == before


def test_words_are_not_shown(cli, home, say):
    say("wrong words", "short")
    result = cli("owner", "key", "passphrase", home / "clinic" / "owner.toml", expect=2)
    assert "8 to 1000 bytes" in result.stderr
    assert "short" not in result.stderr
    assert "wrong words" not in result.stderr


@pytest.fixture
def clinic(cli, home, say):
    """An owner who has answered."""
    cli("run", home / "study.toml")
    return home / "clinic"


def test_a_new_key_takes_over(cli, home, clinic):
    before = OwnerKey.load(clinic / "owner.key")
    made = cli.json("owner", "key", "rotate", clinic / "owner.toml")
    assert made["old"] == before.public
    assert OwnerKey.load(clinic / "owner.key").public == made["new"]
    assert OwnerKey.load(clinic / f"owner.key.{before.public[:12]}") == before
    assert not (clinic / "owner.key.new").exists()
    assert cli.json("owner", "schema", clinic / "owner.toml")["public_key"] == made["new"]
    told = clinic / f"handover-{made['new'][:12]}.json"
    assert cli.json("owner", "key", "check", told, "--public-key", before.public)["new"] == made["new"]
    assert "another owner" in cli("owner", "key", "check", told, "--public-key", made["new"], expect=5).stderr
    cli("run", home / "study.toml")
    assert cli.json("ledger", "verify", clinic / "owner.toml")["verified"]
    shown = cli.json("ledger", "show", clinic / "owner.toml")["datasets"]["patients"]["lines"]
    assert [line["kind"] for line in shown].count("key") == 1
    stale = ("--key", clinic / f"owner.key.{before.public[:12]}")
    assert "took over" in cli("ledger", "verify", clinic / "ledger.sqlite", *stale, expect=5).stderr


@pytest.mark.parametrize("stage", ["key", "ledger", "link"])
def test_an_interrupted_rotation_is_finished(cli, clinic, stage, monkeypatch):
    """Whatever was done before the interruption, the next run ends with one new key."""
    import os

    from privada.privacy import Ledger

    before = OwnerKey.load(clinic / "owner.key")
    new = OwnerKey.generate()
    new.save(clinic / "owner.key.new")
    if stage != "key":
        with Ledger.open(clinic / "ledger.sqlite", before, create=False) as ledger:
            ledger.rotate(new)
    if stage == "link":
        os.link(clinic / "owner.key", clinic / f"owner.key.{before.public[:12]}")
    made = cli.json("owner", "key", "rotate", clinic / "owner.toml")
    assert (made["old"], made["new"]) == (before.public, new.public)
    assert OwnerKey.load(clinic / "owner.key") == new
    cli("ledger", "verify", clinic / "owner.toml")


def test_the_old_key_is_kept_where_there_are_no_links(cli, clinic, monkeypatch):
    import os

    def none(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    made = cli.json("owner", "key", "rotate", clinic / "owner.toml")
    assert OwnerKey.load(clinic / f"owner.key.{made['old'][:12]}").public == made["old"]
    assert OwnerKey.load(clinic / "owner.key").public == made["new"]


def test_a_protected_key_is_followed_by_a_protected_one(cli, clinic, say):
    say(None, OLD)
    cli("owner", "key", "passphrase", clinic / "owner.toml")
    say(OLD)
    assert "NEW_KEY_PASSPHRASE" in cli("owner", "key", "rotate", clinic / "owner.toml", expect=5).stderr
    say(OLD, NEW)
    made = cli.json("owner", "key", "rotate", clinic / "owner.toml")
    assert OwnerKey.load(clinic / "owner.key", passphrase=NEW).public == made["new"]
    say(NEW)
    cli("ledger", "verify", clinic / "owner.toml")


def test_a_file_that_is_no_hand_over(cli, tmp_path):
    (tmp_path / "handover.json").write_text("{}")
    result = cli("owner", "key", "check", tmp_path / "handover.json", "--public-key", "00", expect=5)
    assert "is not a hand-over of a key" in result.stderr
