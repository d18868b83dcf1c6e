from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from privada.exceptions import InputError, TamperError
from privada.privacy import OwnerKey, Receipt
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
