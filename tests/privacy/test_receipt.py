from __future__ import annotations

import copy
import json
import os
import pickle
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from privada.exceptions import InputError, LedgerError, TamperError
from privada.privacy import OwnerKey, Receipt
from privada.privacy.receipt import verify_signature
from privada.privacy.wire import canonical


@pytest.fixture
def receipt(key: OwnerKey) -> Receipt:
    unsigned = Receipt(
        dataset="patients",
        index=3,
        kind="charge",
        digest="0f" * 32,
        head="0f" * 32,
        question="ab" * 32,
        price={"event": {"type": "GaussianDpEvent", "noise_multiplier": 2.0}, "times": 1},
        time="2026-01-01T00:00:00.000000+00:00",
        public=key.public,
        signature="",
    )
    return replace(unsigned, signature=key.sign(unsigned.message()))


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


def test_a_receipt_survives_json(receipt: Receipt, key: OwnerKey) -> None:
    back = Receipt.from_dict(json.loads(json.dumps(receipt.to_dict())))
    assert back == receipt
    assert hash(back) == hash(receipt)
    back.verify()
    back.verify(key.public)


def test_a_receipt_is_frozen(receipt: Receipt) -> None:
    with pytest.raises(FrozenInstanceError):
        receipt.index = 4  # type: ignore[misc]


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": "others"},
        {"index": 4},
        {"kind": "disclosure"},
        {"digest": "1f" * 32, "head": "1f" * 32},
        {"question": "cd" * 32},
        {"price": None},
        {"price": {"times": float("nan")}},
        {"time": "2027"},
        {"signature": "00"},
    ],
)
def test_a_changed_receipt_is_found(receipt: Receipt, change: dict[str, object]) -> None:
    with pytest.raises(TamperError, match=r"receipt of line \d of '\w+' was changed"):
        replace(receipt, **change).verify()


def test_a_receipt_has_one_owner_and_one_head(receipt: Receipt) -> None:
    with pytest.raises(TamperError, match="another owner"):
        receipt.verify(OwnerKey.generate().public)
    with pytest.raises(TamperError, match="a head that is not the line itself"):
        replace(receipt, head="1f" * 32).verify()


def test_a_malformed_receipt_is_named(receipt: Receipt) -> None:
    form = receipt.to_dict()
    for wrong in ({}, form | {"more": 1}, {k: v for k, v in form.items() if k != "head"}):
        with pytest.raises(InputError, match="A receipt has the fields"):
            Receipt.from_dict(wrong)
    for field, value in (("head", 3), ("index", "3"), ("index", True), ("price", "free")):
        with pytest.raises(InputError, match=f"Expected .*{field}"):
            Receipt.from_dict(form | {field: value})


def test_canonical_json_is_one_text() -> None:
    assert canonical({"b": np.int64(2), "a": np.float32(0.5)}) == canonical({"a": 0.5, "b": 2})
    assert canonical({"a": "é"}) == b'{"a":"\\u00e9"}'
    for wrong in (float("inf"), object(), b"bytes"):
        with pytest.raises(InputError, match="no plain JSON form"):
            canonical({"a": wrong})
