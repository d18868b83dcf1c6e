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
    assert not list((tmp_path / "a").iterdir())
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
