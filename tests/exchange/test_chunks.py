"""Large payloads in parts: memory for one part, foreign bytes in the way, broken and missing parts."""

import io
import tracemalloc
from dataclasses import replace

import pytest

from privada.exceptions import WireError
from privada.exchange.chunks import MOST_PLACES, describe, part_key, receive, receive_bytes, send_parts
from privada.exchange.couriers.folder import FolderCourier
from privada.exchange.couriers.local import LocalCourier
from privada.exchange.envelope import MOST_PARTS, Envelope

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
