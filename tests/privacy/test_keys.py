"""Keys are in files that only their users can read; passphrases come from the environment or a terminal."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from privada.exceptions import InputError, LedgerError, TamperError
from privada.privacy import Ledger, OwnerKey
from privada.privacy.keys import (
    NEW_VARIABLE,
    VARIABLE,
    LearnerKey,
    check_public_key,
    choose_passphrase,
    verify_signature,
)


def test_a_key_survives_its_file(key: OwnerKey, tmp_path: Path) -> None:
    key.save(tmp_path / "key")
    loaded = OwnerKey.load(tmp_path / "key")
    assert loaded == key
    assert hash(loaded) == hash(key)
    assert loaded.sign(b"x") == key.sign(b"x")
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600


def test_a_key_is_never_overwritten(key: OwnerKey, tmp_path: Path) -> None:
    key.save(tmp_path / "key")
    before = (tmp_path / "key").read_bytes()
    with pytest.raises(LedgerError, match="exists; a key is never overwritten"):
        OwnerKey.generate().save(tmp_path / "key")
    assert (tmp_path / "key").read_bytes() == before


def test_a_key_needs_a_folder(key: OwnerKey, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be written"):
        key.save(tmp_path / "absent" / "key")


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"key.*cannot be read: No such file"):
        OwnerKey.load(tmp_path / "key")


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_a_key_that_others_can_read_is_refused(key_file: Path) -> None:
    key_file.chmod(0o640)
    with pytest.raises(LedgerError, match="chmod 600"):
        OwnerKey.load(key_file)


def test_only_an_ed25519_key_is_a_key(tmp_path: Path) -> None:
    other = generate_private_key(SECP256R1())
    pem = other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for content in (pem, b"no key", b""):
        file = tmp_path / "key"
        file.write_bytes(content)
        file.chmod(0o600)
        with pytest.raises(LedgerError, match="does not hold an Ed25519 private key"):
            OwnerKey.load(file)


def test_the_private_half_never_shows(key: OwnerKey) -> None:
    private = key._private.private_bytes_raw().hex()
    assert private not in repr(key) + str(key)
    assert key.public in repr(key)
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            leave(key)


@pytest.mark.parametrize(
    ("public", "signature", "message"),
    [
        ("0" * 64, None, b"m"),
        ("zz", None, b"m"),
        (None, "00" * 64, b"m"),
        (None, "", b"m"),
        (None, None, b"n"),
    ],
)
def test_a_wrong_signature_is_found(
    key: OwnerKey, public: str | None, signature: str | None, message: bytes
) -> None:
    verify_signature(key.public, key.sign(b"m"), b"m")
    with pytest.raises(TamperError, match="signature does not fit"):
        verify_signature(public or key.public, key.sign(b"m") if signature is None else signature, message)


def test_a_learners_key_is_kept_by_the_same_rules_and_named_as_such(tmp_path: Path) -> None:
    key = LearnerKey.generate()
    key.save(tmp_path / "learner.key", passphrase="correct horse")
    assert LearnerKey.load(tmp_path / "learner.key", passphrase="correct horse") == key
    with pytest.raises(LedgerError, match=r"does not open the learner's key"):
        LearnerKey.load(tmp_path / "learner.key", passphrase="wrong horse")
    with pytest.raises(LedgerError, match=r"The learner's key .* cannot be read"):
        LearnerKey.load(tmp_path / "absent")


def test_a_learners_key_opens_no_ledger(tmp_path: Path) -> None:
    key = LearnerKey.generate()
    assert key != OwnerKey(key._private)
    assert repr(key) == f"LearnerKey(public={key.public!r})"
    with pytest.raises(LedgerError, match="needs its owner's key"):
        Ledger.open(tmp_path / "ledger.sqlite", key)  # type: ignore[arg-type]
    assert not (tmp_path / "ledger.sqlite").exists()


@pytest.mark.parametrize("bad", ["", "ab", "AB" * 32, "ab" * 33, "zz" * 32, None, 3, "ab" * 32 + "\n"])
def test_only_64_digits_are_a_public_key(bad: object) -> None:
    assert check_public_key(key="ab" * 32) == "ab" * 32
    with pytest.raises(InputError, match="Expected key to be a public key"):
        check_public_key(key=bad)


# Passphrases
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
    output = b""
    while b"Passphrase of key: " not in output:
        output += os.read(terminal, 1000)
    os.write(terminal, WORDS.encode() + b"\n")
    try:
        while chunk := os.read(terminal, 1000):
            output += chunk
    except OSError:  # the terminal ends with the child
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(terminal)
    assert key.public.encode() in output
    assert output.count(b"Passphrase of") == 1
    assert WORDS.encode() not in output


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
