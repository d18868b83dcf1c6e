"""Sealed rows open with the curator's key, for the question that they answer, and not otherwise."""

import numpy as np
import pytest

from privada.exceptions import WireError
from privada.exchange.sealing import public_reply_key, seal, unseal
from privada.privacy import Disclosure, Ledger, OwnerKey, Pure
from privada.privacy.keys import LearnerKey

DIGEST = "ab" * 32


@pytest.fixture
def disclosure():
    with Ledger.open(":memory:", OwnerKey.generate()) as ledger:
        ledger.open_budget("rows", Pure(epsilon=1, relation="add/remove"))
        receipt = ledger.note("rows", kind="disclosure", text="raw rows", question=DIGEST)
    rows = {"X": np.array([[0.25, 1.5]]), "y": np.array([1])}
    return Disclosure(rows=rows, curator="carol", question=DIGEST, receipt=receipt)


def test_the_curator_reads_what_was_sealed_even_after_a_new_start(disclosure, tmp_path):
    key = LearnerKey.generate()
    key.save(tmp_path / "key")
    sealed = seal(disclosure, public=public_reply_key(key))
    opened = unseal(sealed, key=LearnerKey.load(tmp_path / "key"), question=DIGEST)
    assert (opened.curator, opened.question, opened.receipt) == ("carol", DIGEST, disclosure.receipt)
    for name, rows in disclosure.rows.items():
        assert np.array_equal(opened.rows[name], rows)
        assert opened.rows[name].dtype == rows.dtype


def test_nobody_else_reads_it_and_no_row_shows(disclosure):
    key = LearnerKey.generate()
    sealed = seal(disclosure, public=public_reply_key(key))
    assert np.float64(1.5).tobytes() not in sealed
    assert sealed != seal(disclosure, public=public_reply_key(key)), "each has a key of its own"
    flipped = bytearray(sealed)
    flipped[40] ^= 1
    for blob, opener, question in (
        (sealed, LearnerKey.generate(), DIGEST),
        (sealed, key, "cd" * 32),
        (bytes(flipped), key, DIGEST),
        (sealed[:31], key, DIGEST),
        (b"", key, DIGEST),
    ):
        with pytest.raises(WireError, match="another key, or was changed"):
            unseal(blob, key=opener, question=question)


@pytest.mark.parametrize("public", ["", "zz", "00" * 31, "00" * 32, "01" + "00" * 31])
def test_a_key_that_protects_nothing_is_refused(disclosure, public):
    with pytest.raises(WireError, match="X25519"):
        seal(disclosure, public=public)
