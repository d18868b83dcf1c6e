"""Items are put once, found among planted ones, and sent in parts when they are large."""

import pytest

from privada.exceptions import WireError
from privada.exchange.chunks import receive_bytes
from privada.exchange.couriers.local import LocalCourier
from privada.exchange.envelope import Envelope
from privada.exchange.posting import (
    MOST_SUCCESSORS,
    find,
    find_all,
    folder_of,
    key_of,
    parse_question_key,
    post,
    successors,
)
from privada.privacy import OwnerKey

CLINIC, DIGEST = OwnerKey.generate(), "ab" * 32


def release():
    return Envelope(kind="release", owner="clinic", owner_key=CLINIC.public, question=DIGEST)


def test_keys_say_kind_owner_question_and_who_asked():
    assert key_of("release", "clinic", DIGEST) == f"releases/clinic/{DIGEST}.release"
    assert key_of("disclosure", "clinic", DIGEST) == f"releases/clinic/{DIGEST}.release"
    assert key_of("failure", "clinic", DIGEST, "cd" * 16).startswith(f"refusals/clinic/{DIGEST}-cd")
    asked = key_of("question", "clinic", DIGEST, "cd" * 16)
    assert all(parse_question_key(key) == (DIGEST, "cd" * 16) for key in successors(asked))
    for other in (
        "questions/clinic/probe",
        f"questions/clinic/parts/{DIGEST}-{'cd' * 16}.question",
        asked[:-1],
    ):
        assert parse_question_key(other) is None


@pytest.mark.parametrize("size", [0, 100, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_small_payloads_travel_with_the_envelope_and_large_ones_in_parts(size):
    courier, payload = LocalCourier(), bytes(size)
    key = post(courier, release(), payload, CLINIC)
    assert post(courier, release(), payload, CLINIC) == key
    found = find(courier, key, lambda each: each)
    assert bool(found.envelope.parts) == (size >= 1 << 20)
    assert receive_bytes(
        courier, folder_of("release", "clinic"), found.envelope, found.rest, largest=size
    ) == (payload)


def test_an_item_goes_around_what_others_put_there_until_there_is_no_place_left():
    courier = LocalCourier()
    key = key_of("release", "clinic", DIGEST)
    courier.put(key, b"junk")
    assert post(courier, release(), b"mine", CLINIC) == key.replace(".release", ".1.release")
    for other in successors(key):
        courier.put(other, b"junk")
    with pytest.raises(WireError, match="in the way"):
        post(courier, release(), b"another", CLINIC)
    assert len(courier.keys("releases/clinic/")) == MOST_SUCCESSORS


def test_what_a_reader_rejects_is_passed_over(caplog):
    courier, thief = LocalCourier(), OwnerKey.generate()
    forged = Envelope(kind="release", owner="clinic", owner_key=thief.public, question=DIGEST)
    key = post(courier, forged, b"forged", thief)
    post(courier, release(), b"true", CLINIC)

    def read(found):
        if found.envelope.owner_key != CLINIC.public:
            raise WireError("Not hers.")
        return found.rest

    assert find(courier, key, read) == b"true"
    assert f"{key} is passed over: Not hers." in caplog.text
    assert [*find_all(courier, key, lambda found: found.rest)] == [b"forged", b"true"]
    assert find(courier, key_of("release", "clinic", "00" * 32), read) is None
