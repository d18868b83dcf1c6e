"""What every courier does, against real servers."""

import secrets
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from privada.exceptions import WireError
from privada.exchange.bucket import BucketCourier
from privada.exchange.courier import open_courier
from privada.exchange.folder import FolderCourier


@pytest.fixture
def place(request, tmp_path):
    """A function that opens one more courier to the same, empty place."""
    return request.getfixturevalue(f"{request.param}_place")


@pytest.fixture
def memory_place():
    name = secrets.token_hex(8)
    return lambda: open_courier(f"memory://{name}")


@pytest.fixture
def folder_place(tmp_path):
    return lambda: FolderCourier(tmp_path / "exchange")


@pytest.fixture
def store_place(tmp_path):
    pytest.importorskip("obstore")
    from obstore.store import LocalStore

    (tmp_path / "store").mkdir()
    return lambda: BucketCourier(LocalStore(tmp_path / "store"))


@pytest.fixture
def s3_place(s3_server):
    pytest.importorskip("obstore")
    name = secrets.token_hex(8)
    return lambda: open_courier(f"s3://exchange/{name}")


@pytest.fixture
def nats_place(nats_server):
    url = f"{nats_server.url}/{secrets.token_hex(8)}"
    with open_courier(url) as administrator:
        administrator.create_exchange()
    return lambda: open_courier(url)


@pytest.fixture
def registered_place(register_courier):
    """A courier of somebody else's package, which nothing but its entry point makes known."""
    register_courier("pigeon", "pigeon_post:PigeonCourier")
    name = secrets.token_hex(8)
    return lambda: open_courier(f"pigeon://{name}")


pytestmark = pytest.mark.parametrize(
    "place", ["memory", "folder", "store", "s3", "nats", "registered"], indirect=True
)


def test_what_is_put_can_be_read_by_others(place):
    with place() as one, place() as other:
        assert one.put("questions/clinic/0b5e", b"what?") is True
        assert other.get("questions/clinic/0b5e") == b"what?"
        assert other.get("questions/clinic/0b5f") is None
        assert other.get("nothing/here/0b5f") is None


def test_a_key_is_written_once(place):
    with place() as one, place() as other:
        assert one.put("releases/clinic/0b5e", b"first")
        assert other.put("releases/clinic/0b5e", b"second") is False
        assert one.put("releases/clinic/0b5e", b"first") is False
        assert one.get("releases/clinic/0b5e") == b"first"


def test_of_many_writers_one_wins(place):
    blobs = [f"writer {each}".encode() * 1000 for each in range(8)]
    with place() as shared:
        ready = threading.Barrier(len(blobs))

        def write(blob):
            ready.wait()
            return shared.put("releases/clinic/race", blob)

        with ThreadPoolExecutor(len(blobs)) as pool:
            won = list(pool.map(write, blobs))
        assert won.count(True) == 1
        assert shared.get("releases/clinic/race") == blobs[won.index(True)]


def test_empty_and_largest_items_are_carried(place):
    with place() as courier:
        whole = secrets.token_bytes(courier.largest)
        assert courier.put("a/empty", b"")
        assert courier.put("a/whole", whole)
        assert courier.get("a/empty") == b""
        assert courier.get("a/whole") == whole


def test_oversized_items_are_refused_both_ways(place):
    with place() as courier:
        with pytest.raises(WireError, match="at most"):
            courier.put("a/huge", bytes(courier.largest + 1))
        assert courier.get("a/huge") is None
        assert courier.put("a/small", b"12345")
        with pytest.raises(WireError, match="larger than 4|at most 4"):
            courier.get("a/small", largest=4)
        assert courier.get("a/small", largest=5) == b"12345"


BAD = [
    "",
    "/",
    "a//b",
    "../a",
    "a/..",
    "a/.hidden",
    "a/b.",
    "a b",
    "a/*",
    "a/>",
    "å",
    "a/" * 8 + "a",
    "a" * 129,
]


@pytest.mark.parametrize("key", BAD)
def test_bad_keys_are_refused(place, key):
    with place() as courier:
        with pytest.raises(WireError, match="Expected a key"):
            courier.put(key, b"")
        with pytest.raises(WireError, match="Expected a key"):
            courier.get(key)


@pytest.mark.parametrize("prefix", ["questions", "../", "a//", "/", "a/*/"])
def test_bad_prefixes_are_refused(place, prefix):
    with place() as courier:
        with pytest.raises(WireError, match="Expected a "):
            courier.keys(prefix)
        with pytest.raises(WireError, match="Expected a "):
            courier.wait(prefix, known=(), seconds=0)


def test_keys_are_listed_by_whole_segments(place):
    keys = ["q/clinic/a", "q/clinic/b.1", "q/clinic/deep/er/c", "q/clinic2/a", "r/clinic/a"]
    with place() as courier:
        assert courier.keys("") == []
        for key in reversed(keys):
            courier.put(key, b"x")
        assert courier.keys("q/clinic/") == keys[:3]
        assert courier.keys("q/") == keys[:4]
        assert courier.keys("") == keys
        assert courier.keys("q/nobody/") == []


def test_a_look_at_whether_it_can_be_written_to_leaves_nothing(place):
    with place() as courier:
        for _ in range(2):
            courier.check_writable("releases/clinic/")
        assert courier.keys("") == []
        courier.put("releases/clinic/probe", b"\n")  # as an earlier version left it
        courier.check_writable("releases/clinic/")


def test_stamps_show_what_is_there(place):
    with place() as courier, place() as other:
        courier.put("releases/clinic/a", b"first")
        courier.put("releases/clinic/parts/b", b"second")
        courier.put("releases/others/c", b"third")
        stamps = other.stamps("releases/clinic/")
        assert sorted(stamps) == ["releases/clinic/a", "releases/clinic/parts/b"]
        assert other.stamps("releases/clinic/") == stamps


def test_wait_returns_at_once_what_is_there(place):
    with place() as courier:
        courier.put("q/clinic/a", b"x")
        courier.put("q/clinic/b", b"x")
        assert courier.wait("q/clinic/", known={"q/clinic/a"}, seconds=20) == ["q/clinic/b"]
        assert courier.wait("q/clinic/", known=(), seconds=0) == ["q/clinic/a", "q/clinic/b"]


def test_wait_wakes_up_promptly(place):
    with place() as waiting, place() as writing:
        known = {"q/clinic/a"}
        writing.put("q/clinic/a", b"x")
        assert waiting.wait("q/clinic/", known=known, seconds=0.05) == []
        timer = threading.Timer(0.2, writing.put, ("q/clinic/b", b"x"))
        started = time.monotonic()
        timer.start()
        assert waiting.wait("q/clinic/", known=known, seconds=20) == ["q/clinic/b"]
        assert time.monotonic() - started < 3
        timer.join()


def test_wait_ends_after_its_time(place):
    with place() as courier:
        started = time.monotonic()
        assert courier.wait("q/clinic/", known=(), seconds=0.2) == []
        assert 0.15 < time.monotonic() - started < 3
