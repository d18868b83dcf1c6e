import json

import pytest

from privada.exceptions import TamperError, WireError
from privada.privacy import OwnerKey
from privada.privacy.refusal import LARGEST_REFUSAL, Refusal

KEY = OwnerKey.generate()
REFUSAL = Refusal.signed(KEY, question="ab" * 32, reason="The budget does not allow it.")


def test_a_refusal_is_signed_and_read_back():
    assert Refusal.from_bytes(REFUSAL.to_bytes(), public=KEY.public) == REFUSAL


def test_another_key_or_text_is_refused():
    with pytest.raises(TamperError, match="another owner's key"):
        Refusal.from_bytes(REFUSAL.to_bytes(), public=OwnerKey.generate().public)
    for name, value in (("reason", "Ask Mallory instead."), ("question", "cd" * 32)):
        forged = json.loads(REFUSAL.to_bytes()) | {name: value}
        with pytest.raises(TamperError):
            Refusal.from_bytes(json.dumps(forged).encode(), public=KEY.public)


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"no json",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b"[" * 10_000,
        b" " * (LARGEST_REFUSAL + 1),
        b'{"privada": "refusal"}',
    ],
)
def test_what_is_no_refusal_is_an_error(blob):
    with pytest.raises(WireError, match="not a refusal"):
        Refusal.from_bytes(blob)


def test_a_reason_is_bounded_and_steers_no_terminal():
    made = Refusal.signed(KEY, question="ab" * 32, reason="\x1b[2Jgone\u202e" + "x" * 10_000)
    assert "\x1b" not in made.reason
    assert "\u202e" not in made.reason
    assert len(made.reason) < 1100
    assert len(made.to_bytes()) < LARGEST_REFUSAL
