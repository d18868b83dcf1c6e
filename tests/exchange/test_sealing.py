"""Sealed rows open with the curator's key, for the question that they answer, and not otherwise."""

from dataclasses import replace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from privada.exceptions import InputError, WireError
from privada.exchange import sealing
from privada.exchange.sealing import (
    is_sealed,
    public_reply_key,
    seal,
    seal_question,
    secret_salt,
    unseal,
    unseal_question,
)
from privada.privacy import Disclosure, Ledger, OwnerKey, PureDP
from privada.privacy.keys import LearnerKey, sealing_key

DIGEST = "ab" * 32


@pytest.fixture
def disclosure():
    with Ledger.open(":memory:", OwnerKey.generate()) as ledger:
        ledger.open_budget("rows", PureDP(epsilon=1, relation="add/remove"))
        receipt = ledger.note("rows", kind="disclosure", text="raw rows", question=DIGEST)
    rows = {"X": np.array([[0.25, 1.5]]), "y": np.array([1])}
    return Disclosure(rows=rows, curator="carol", question=DIGEST, receipt=receipt, most_bytes=240)


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


def test_its_length_is_that_of_what_was_asked_for(disclosure):
    """Rows of any number, with and without labels of any digits, up to the ten that were asked for."""
    key, lengths = LearnerKey.generate(), set()
    for size in range(11):
        rows = {"X": np.full((size, 2), 0.1), "y": np.arange(size)}
        for index in (1, 10**9):
            receipt = replace(disclosure.receipt, index=index)
            sealed = seal(replace(disclosure, rows=rows, receipt=receipt), public=public_reply_key(key))
            lengths.add(len(sealed))
            opened = unseal(sealed, key=key, question=DIGEST)
            assert {name: value.tolist() for name, value in opened.rows.items()} == {
                name: value.tolist() for name, value in rows.items()
            }
    assert len(lengths) == 1
    longest = replace(disclosure.receipt, dataset="\N{GRINNING FACE}" * 200, index=10**15)
    widest = replace(
        disclosure, receipt=longest, curator="\N{GRINNING FACE}" * 100, rows={"X": np.zeros((10, 3))}
    )
    assert {len(seal(widest, public=public_reply_key(key)))} == lengths, "names of any length have room"
    many = replace(disclosure, rows={"X": np.zeros((2000, 2))})
    with pytest.raises(WireError, match="larger than its question says"):
        seal(many, public=public_reply_key(key))


def test_what_was_sealed_before_lengths_were_public_still_opens(disclosure):
    """The bytes that earlier versions wrote: the rows' file as it is, bound to the first form."""
    key, own = LearnerKey.generate(), X25519PrivateKey.generate()
    blob = sealing._encrypt(
        sealing._pack(disclosure),
        public=bytes.fromhex(public_reply_key(key)),
        own=own,
        bound_to=b"privada disclosure 1\n" + DIGEST.encode(),
    )
    assert np.array_equal(unseal(blob, key=key, question=DIGEST).rows["X"], disclosure.rows["X"])


def test_a_question_is_read_by_its_owner_alone():
    owner, learner = OwnerKey.generate(), LearnerKey.generate()
    sealed = seal_question(b"which row?" * 9, question=DIGEST, owner=owner.public, key=learner)
    assert sealed == seal_question(b"which row?" * 9, question=DIGEST, owner=owner.public, key=learner)
    assert is_sealed(sealed)
    assert b"which row?" not in sealed
    opened = unseal_question(sealed, question=DIGEST, learner=learner.public, key=owner)
    assert opened == b"which row?" * 9
    changed = bytearray(sealed)
    changed[-1] ^= 1
    stranger = LearnerKey.generate()
    for blob, question, who, key in (
        (sealed, DIGEST, learner.public, OwnerKey.generate()),
        (sealed, "cd" * 32, learner.public, owner),
        (sealed, DIGEST, stranger.public, owner),
        (bytes(changed), DIGEST, learner.public, owner),
        (sealed[:40], DIGEST, learner.public, owner),
        (sealed[:26], DIGEST, learner.public, owner),
    ):
        with pytest.raises(WireError, match="another key, or was changed"):
            unseal_question(blob, question=question, learner=who, key=key)


def test_questions_have_keys_and_salts_of_their_own():
    """Two questions share no key, and nobody but the learner can work out a salt."""
    first, second = OwnerKey.generate(), OwnerKey.generate()
    learner, other = LearnerKey.generate(), LearnerKey.generate()
    cases = [
        (DIGEST, first, learner),
        ("cd" * 32, first, learner),
        (DIGEST, second, learner),
        (DIGEST, first, other),
    ]
    beginnings = {
        seal_question(b"", question=question, owner=owner.public, key=key)[:58]
        for question, owner, key in cases
    }
    files = {
        seal_question(blob, question=DIGEST, owner=first.public, key=learner)[:58] for blob in (b"", b"x")
    }
    assert len(files) == 2, "a file that is written in another way has another key"
    salts = {secret_salt(question, owner=owner.public, key=key) for question, owner, key in cases}
    assert len(beginnings) == len(salts) == 4
    assert secret_salt(DIGEST, owner="east", key=learner) == secret_salt(DIGEST, owner="east", key=learner)


def test_an_owners_card_is_enough_to_seal_for_it():
    for _ in range(20):
        key = OwnerKey.generate()
        assert sealing_key(key.public) == key.opening_key().public_key().public_bytes_raw()
    # libsodium's test of crypto_sign_ed25519_pk_to_curve25519
    signing = "b5076a8474a832daee4dd5b4040983b6623b5f344aca57d4d6ee4baf3f259e6e"
    assert sealing_key(signing).hex() == "f1814f0e8ff1043d8a44d25babff3cedcae6c22c3edaa48f857ae70de2baae50"
    with pytest.raises(InputError, match="public key of 64"):
        sealing_key("ab")


@pytest.mark.parametrize("public", ["01" + "00" * 31, "00" * 32, "ec" + "ff" * 30 + "7f"])
def test_an_owners_key_that_protects_nothing_seals_nothing(public):
    """Points of small order give everybody the same secret."""
    with pytest.raises(WireError, match="public key"):
        seal_question(b"", question=DIGEST, owner=public, key=LearnerKey.generate())
