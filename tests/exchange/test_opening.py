"""URLs of exchanges: which courier they open, and which are refused."""

import pytest

from privada import _extras
from privada.exceptions import InputError
from privada.exchange.couriers.bucket import BucketCourier
from privada.exchange.couriers.folder import FolderCourier
from privada.exchange.couriers.local import LocalCourier
from privada.exchange.opening import open_courier


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
        ("ftp://x/y", "memory://, file://"),
        ("http://x/y", "memory://, file://"),
        ("s3://key:secret@exchange/x", "would be logged"),
        ("https://user@example.org/x", "would be logged"),
        ("s3://exchange/x?aws_secret_access_key=1", "from the environment"),
        ("https://example.org/x", "cannot refuse to overwrite"),
        ("s3://", "opens no bucket"),
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
