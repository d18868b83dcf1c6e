"""Keys and prefixes, waiting by listing, and URLs: which courier they open, and which are refused."""

import pytest

from privada import _extras
from privada.exceptions import InputError, WireError
from privada.exchange import courier as courier_module
from privada.exchange.bucket import BucketCourier
from privada.exchange.courier import (
    Courier,
    PollingCourier,
    check_key,
    check_prefix,
    check_size,
    is_segment,
    open_courier,
)
from privada.exchange.folder import FolderCourier
from privada.exchange.local import LocalCourier


def test_keys_and_prefixes_are_returned_as_they_are():
    assert check_key("a/b/c/d/e/f/g/h") == "a/b/c/d/e/f/g/h"
    assert check_prefix("") == ""
    assert check_prefix("releases/clinic/") == "releases/clinic/"


@pytest.mark.parametrize("name", ["", ".", "..", ".x", "x.", "a/b", "a\\b", "a\n", "é", "x" * 129])
def test_names_that_a_file_system_reads_more_into_are_no_segments(name):
    assert not is_segment(name)


def test_a_long_key_is_shown_in_part():
    with pytest.raises(WireError) as caught:
        check_key("x" * 10**6)
    assert len(str(caught.value)) < 1000


def test_an_item_that_is_too_large_is_named():
    check_size("a/b", 5, 5)
    with pytest.raises(WireError, match="a/b has 6 bytes; at most 5"):
        check_size("a/b", 6, 5)


def test_a_courier_closes_at_the_end_of_a_block():
    class Closing(Courier):
        closed = False

        def put(self, key, blob): ...

        def get(self, key, *, largest=None): ...

        def keys(self, prefix): ...

        def wait(self, prefix, *, known, seconds): ...

        def close(self):
            self.closed = True

    with Closing() as courier:
        assert not courier.closed
    assert courier.closed


class Slow(PollingCourier, LocalCourier):
    shortest_pause, longest_pause = 1.0, 4.0

    def __init__(self):
        PollingCourier.__init__(self)
        LocalCourier.__init__(self)


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self):
        self.now, self.pauses = 0.0, []

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.pauses.append(seconds)
        self.now += seconds


def test_pauses_grow_over_waits_and_are_short_again_after_news(monkeypatch):
    clock, courier = Clock(), Slow()
    monkeypatch.setattr(courier_module, "time", clock)
    assert courier.wait("a/", known=(), seconds=6) == []
    assert clock.pauses == [1, 1.5, 2.25, 1.25]
    assert courier.wait("a/", known=(), seconds=6) == []
    assert clock.pauses[4:] == [4, 2]
    courier.put("a/b", b"")
    assert courier.wait("a/", known=(), seconds=6) == ["a/b"]
    assert courier.wait("a/", known={"a/b"}, seconds=1) == []
    assert clock.pauses[6:] == [1]


def test_a_name_of_memory_is_one_place():
    one, same, other = map(open_courier, ("memory://one", "memory://one", "memory://other"))
    assert isinstance(one, LocalCourier)
    one.put("a/b", b"x")
    assert same.get("a/b") == b"x"
    assert other.get("a/b") is None


def test_a_path_is_a_folder(tmp_path):
    for url in (tmp_path, str(tmp_path), f"file://{tmp_path}", f"file://localhost{tmp_path}"):
        courier = open_courier(url)
        assert isinstance(courier, FolderCourier)
        assert courier.path == tmp_path
    assert open_courier("file:///with%20space").path.name == "with space"


@pytest.mark.parametrize(
    "url", ["s3://exchange/trial", "gs://exchange", "https://exchange.s3.amazonaws.com/trial"]
)
def test_a_store_is_a_bucket(url):
    pytest.importorskip("obstore")
    assert isinstance(open_courier(url), BucketCourier)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "path of a folder"),
        ("a\0b", "path of a folder"),
        ("memory://", "memory://NAME"),
        ("memory://a/b", "memory://NAME"),
        ("memory://../x", "memory://NAME"),
        ("file://elsewhere/x", "file:///PATH"),
        ("ftp://x/y", "file://, gs://, https://, memory://"),
        ("http://x/y", "file://, gs://, https://, memory://"),
        ("s3://key:secret@exchange/x", "would be logged"),
        ("https://user@example.org/x", "would be logged"),
        ("s3://exchange/x?aws_secret_access_key=1", "from the environment"),
        ("https://example.org/x", "cannot refuse to overwrite"),
        ("s3://", "opens no bucket"),
        ("s3://[x", "Expected a URL"),
    ],
)
def test_other_urls_are_refused_by_name(url, said):
    with pytest.raises(InputError, match=said) as caught:
        open_courier(url)
    assert "secret" not in str(caught.value)


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setattr(_extras, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"privada\[bucket\]"):
        open_courier("s3://exchange/x")


def test_a_package_of_your_own_brings_a_courier(register_courier):
    with pytest.raises(InputError, match=r"one of .*memory://.*, got 'pigeon'://"):
        open_courier("pigeon://loft")
    register_courier("pigeon", "pigeon_post:PigeonCourier")
    with open_courier("pigeon://loft") as courier:
        assert type(courier).__name__ == "PigeonCourier"
        assert courier.put("a/b", b"x")
    with open_courier("PIGEON://loft") as courier:
        assert courier.get("a/b") == b"x"
    with pytest.raises(InputError, match="would be logged"):
        open_courier("pigeon://user:secret@loft")
    with pytest.raises(InputError, match=r"one of .*pigeon://"):
        open_courier("dove://loft")


def test_two_packages_for_one_scheme_are_refused_whatever_their_order(register_courier):
    register_courier("s3", "pigeon_post:PigeonCourier")
    with pytest.raises(InputError, match="register s3://: pigeon_post:PigeonCourier, privada"):
        open_courier("s3://exchange/trial")


def test_an_entry_point_that_is_no_courier_is_named(register_courier):
    register_courier("pigeon", "pigeon_post:LOFTS")
    with pytest.raises(InputError, match="entry point pigeon"):
        open_courier("pigeon://loft")


def test_a_courier_without_urls_says_so(register_courier):
    register_courier("slow", f"{__name__}:Slow")
    with pytest.raises(InputError, match="Slow cannot be opened by a URL|Expected memory://NAME"):
        open_courier("slow://x/y")
