"""A key under a passphrase is nothing without it, and the words come from the environment or a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from privada.exceptions import InputError, LedgerError
from privada.privacy import OwnerKey
from privada.privacy.keys.passphrase import NEW_VARIABLE, VARIABLE, choose_passphrase

WORDS = "correct horse battery staple"


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (VARIABLE, NEW_VARIABLE):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def locked(key: OwnerKey, tmp_path: Path) -> Path:
    key.save(tmp_path / "key", passphrase=WORDS)
    return tmp_path / "key"


def test_a_locked_key_survives_its_file(key: OwnerKey, locked: Path) -> None:
    assert OwnerKey.load(locked, passphrase=WORDS) == key
    assert locked.stat().st_mode & 0o777 == 0o600
    assert b"ENCRYPTED" in locked.read_bytes()
    assert key._private.private_bytes_raw() not in locked.read_bytes()


def test_other_words_do_not_open_it(locked: Path) -> None:
    for words in ("", "correct horse battery stapl", "ü" * 500):
        with pytest.raises(LedgerError, match=r"The passphrase does not open the owner's key") as caught:
            OwnerKey.load(locked, passphrase=words)
        assert not words or words not in str(caught.value)


def test_a_damaged_locked_key_is_named(locked: Path) -> None:
    pem = locked.read_bytes()
    locked.write_bytes(pem[: len(pem) // 2])
    with pytest.raises(LedgerError, match="does not open"):
        OwnerKey.load(locked, passphrase=WORDS)


def test_the_environment_opens_it(key: OwnerKey, locked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, WORDS)
    assert OwnerKey.load(locked) == key


def test_a_key_without_passphrase_needs_none(
    key: OwnerKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key.save(tmp_path / "open")
    monkeypatch.setenv(VARIABLE, WORDS)
    assert OwnerKey.load(tmp_path / "open") == key


def test_without_environment_and_terminal_the_variable_is_named(locked: Path) -> None:
    asks = f"from privada.privacy import OwnerKey; OwnerKey.load({str(locked)!r})"
    done = subprocess.run(
        [sys.executable, "-c", asks], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "no terminal to ask for the passphrase of the key; set PRIVADA_KEY_PASSPHRASE" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_a_person_types_it_once(key: OwnerKey, locked: Path) -> None:
    import pty

    code = (
        "from privada.privacy import OwnerKey\n"
        f"assert OwnerKey.load({str(locked)!r}) == OwnerKey.load({str(locked)!r})\n"
        f"print(OwnerKey.load({str(locked)!r}).public)"
    )
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, [sys.executable, "-c", code])
    seen = b""
    while b"Passphrase of key: " not in seen:
        seen += os.read(terminal, 1000)
    os.write(terminal, WORDS.encode() + b"\n")
    try:
        while chunk := os.read(terminal, 1000):
            seen += chunk
    except OSError:  # the terminal ends with the child
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(terminal)
    assert key.public.encode() in seen
    assert seen.count(b"Passphrase of") == 1
    assert WORDS.encode() not in seen


@pytest.mark.parametrize("words", ["", "short", "x" * 1001, "é" * 501])
def test_a_passphrase_has_a_length(key: OwnerKey, tmp_path: Path, words: str) -> None:
    with pytest.raises(InputError, match="8 to 1000 bytes") as caught:
        key.save(tmp_path / "key", passphrase=words)
    assert not words or words not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_passphrase_is_changed_and_removed(key: OwnerKey, locked: Path) -> None:
    key.change_passphrase(locked, passphrase="another one")
    assert OwnerKey.load(locked, passphrase="another one") == key
    with pytest.raises(LedgerError):
        OwnerKey.load(locked, passphrase=WORDS)
    key.change_passphrase(locked, passphrase=None)
    assert OwnerKey.load(locked) == key
    assert locked.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in locked.parent.iterdir()] == ["key"]


def test_a_new_passphrase_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NEW_VARIABLE, WORDS)
    assert choose_passphrase() == WORDS
    monkeypatch.setenv(NEW_VARIABLE, "short")
    with pytest.raises(InputError, match="8 to 1000 bytes"):
        choose_passphrase()
