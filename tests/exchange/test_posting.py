"""Items are put once, found among planted ones, and sent in parts when they are large."""

import io
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from privada import AskOwner, CellStatistics, Mailbox, NearestCells
from privada.exceptions import PrivadaError, WireError
from privada.exchange import Sender
from privada.exchange.envelope import MOST_PARTS, Envelope
from privada.exchange.folder import FolderCourier
from privada.exchange.local import LocalCourier
from privada.exchange.posting import (
    MOST_PLACES,
    MOST_SUCCESSORS,
    describe,
    find_all,
    folder_of,
    key_of,
    load_question,
    parse_question_key,
    part_key,
    post,
    read_payload,
    receive,
    receive_bytes,
    send_parts,
    successors,
)
from privada.methods.summarization import RoundPoints
from privada.privacy import OwnerKey, PureDP
from privada.privacy.keys import LearnerKey

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
    found = next(find_all(courier, key, lambda item: item))
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

    assert next(find_all(courier, key, read)) == b"true"
    assert f"{key} is passed over: Not hers." in caplog.text
    assert [*find_all(courier, key, lambda found: found.rest)] == [b"forged", b"true"]
    assert list(find_all(courier, key_of("release", "clinic", "00" * 32), read)) == []


FOLDER = "releases/clinic"


def told(payload, part_size=10):
    return describe(
        Envelope(kind="release", owner="clinic", question="ab" * 32), io.BytesIO(payload), part_size
    )


def sent(courier, payload, part_size=10):
    return send_parts(courier, FOLDER, told(payload, part_size), io.BytesIO(payload))


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 100])
def test_what_is_sent_is_received(size):
    courier, payload = LocalCourier(), bytes(range(size))
    envelope = sent(courier, payload)
    assert envelope.size == size
    assert receive_bytes(courier, FOLDER, envelope, b"", largest=size) == payload


def test_a_payload_that_is_too_large_is_not_fetched():
    courier = LocalCourier()
    envelope = sent(courier, b"x" * 25)
    with pytest.raises(WireError, match="25 bytes; at most 24"):
        receive_bytes(courier, FOLDER, envelope, b"", largest=24)
    with pytest.raises(WireError, match=f"more than {MOST_PARTS} parts"):
        told(b"x" * (MOST_PARTS + 1), part_size=1)


def test_an_interrupted_sender_goes_on_where_it_was():
    courier = LocalCourier()
    first = sent(courier, b"x" * 25)
    assert sent(courier, b"x" * 25) == first
    assert len(courier.keys(f"{FOLDER}/")) == 3


def test_foreign_bytes_in_the_way_are_gone_around():
    courier = LocalCourier()
    for place in range(2):
        courier.put(f"{FOLDER}/parts/{told(b'x' * 25).sha256[:40]}.{place}.1", b"foreign" * place)
    envelope = sent(courier, b"x" * 25)
    assert envelope.place.endswith(".2")
    assert receive_bytes(courier, FOLDER, envelope, b"", largest=25) == b"x" * 25
    for place in range(MOST_PLACES):
        courier.put(f"{FOLDER}/parts/{told(b'y' * 25).sha256[:40]}.{place}.1", b"foreign")
    with pytest.raises(WireError, match="in the way"):
        sent(courier, b"y" * 25)


def test_parts_that_are_missing_changed_or_elsewhere_are_found(tmp_path):
    courier = FolderCourier(tmp_path)
    envelope = sent(courier, b"x" * 25)
    lied = replace(envelope, place="releases/other/parts/" + envelope.place.rpartition("/")[2])
    padded = replace(envelope, parts=(*envelope.parts, envelope.parts[0]))
    shortened = replace(envelope, size=5)
    for wrong, match in ((lied, "another folder"), (padded, "more parts"), (shortened, "more parts")):
        with pytest.raises(WireError, match=match):
            receive(courier, FOLDER, wrong, b"", io.BytesIO())
    part = tmp_path / part_key(envelope, 1)
    part.write_bytes(b"y" * 10)
    with pytest.raises(WireError, match="is not what the envelope says"):
        receive(courier, FOLDER, envelope, b"", io.BytesIO())
    part.write_bytes(b"y" * 11)
    with pytest.raises(WireError, match="larger than 10"):
        receive(courier, FOLDER, envelope, b"", io.BytesIO())
    part.unlink()
    with pytest.raises(WireError, match="is missing"):
        receive(courier, FOLDER, envelope, b"", io.BytesIO())


def test_an_inline_payload_is_checked_too():
    envelope = replace(told(b"abc"), parts=(), part_size=0)
    assert receive_bytes(LocalCourier(), FOLDER, envelope, b"abc", largest=3) == b"abc"
    with pytest.raises(WireError, match="not what its envelope says"):
        receive_bytes(LocalCourier(), FOLDER, envelope, b"abd", largest=3)


def test_memory_is_bounded_by_the_part_on_both_sides(tmp_path):
    """32 MB in parts of 1 MB: neither side holds more than three parts."""
    courier, part = FolderCourier(tmp_path / "exchange"), 1 << 20
    with (tmp_path / "payload").open("wb") as file:
        for number in range(32):
            file.write(bytes([number]) * part)
    bare = Envelope(kind="release", owner="clinic", question="ab" * 32)
    tracemalloc.start()
    try:
        with (tmp_path / "payload").open("rb") as file:
            envelope = send_parts(courier, FOLDER, describe(bare, file, part), file)
        with (tmp_path / "copy").open("wb") as copy:
            receive(courier, FOLDER, envelope, b"", copy)
        assert tracemalloc.get_traced_memory()[1] < 3.5 * part
    finally:
        tracemalloc.stop()
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "payload").read_bytes()


def question(cells):
    centers = np.linspace(0, 1, cells)[:, None]
    return CellStatistics(
        tables=(NearestCells(centers=centers),), guarantee=PureDP(epsilon=0.4, relation="add/remove")
    )


@pytest.mark.parametrize("cells", [2, 200_000])
def test_a_question_is_read_from_either_form(tmp_path, cells):
    asked = question(cells)
    assert load_question(asked.save(tmp_path / "saved.question")) == asked
    key = Mailbox.open(tmp_path / "exchange").ask(AskOwner("clinic", asked))
    assert load_question(tmp_path / "exchange" / key) == asked
    assert (tmp_path / "exchange/questions/clinic/parts").exists() == (cells > 2)


def test_a_changed_file_is_refused(tmp_path):
    key = Mailbox.open(tmp_path).ask(AskOwner("clinic", question(2)))
    blob = (tmp_path / key).read_bytes()
    (tmp_path / key).write_bytes(blob[:-1] + b"x")
    with pytest.raises(PrivadaError, match="not what its envelope says"):
        read_payload(tmp_path / key)


def test_a_sealed_question_says_who_can_read_it(tmp_path):
    curator, clinic = LearnerKey.generate(), OwnerKey.generate()
    sender = Sender(learner="curator", key=curator)
    asking = Mailbox.open(tmp_path, keys={"clinic": clinic.public}, sender=sender)
    points = RoundPoints(index=[1], guarantee=PureDP(epsilon=0.4, relation="replace-one"))
    key = asking.ask(AskOwner("clinic", points, to="curator"))
    with pytest.raises(WireError, match="is sealed: only the owner that it is for can read it"):
        load_question(tmp_path / key)
