"""A bucket: stores that fail, refuse or hold what nobody put there."""

import pytest

from privada.exceptions import CourierError, WireError
from privada.exchange.bucket import BucketCourier

obstore = pytest.importorskip("obstore")


def test_a_store_that_cannot_be_reached_is_one_named_error(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "planted-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "planted-secret")
    store = obstore.store.S3Store.from_url("s3://exchange/x", retry_config={"max_retries": 0})
    courier = BucketCourier(store)
    for action in (lambda: courier.put("a/b", b""), lambda: courier.get("a/b"), lambda: courier.keys("")):
        with pytest.raises(CourierError, match="Cannot (write|read|list)") as caught:
            action()
        assert "planted" not in str(caught.value)


def test_a_bucket_that_is_not_there_is_one_named_error(s3_server):
    courier = BucketCourier.from_url("s3://nobody-made-this/x")
    with pytest.raises(CourierError, match="Cannot write a/b"):
        courier.put("a/b", b"")


def test_what_nobody_could_have_put_is_not_listed(tmp_path):
    store = obstore.store.MemoryStore()
    for name in ("a/b", "a/b c", "a/.hidden", "a/" * 9 + "b"):
        obstore.put(store, name, b"x")
    assert BucketCourier(store).keys("a/") == ["a/b"]


def test_an_oversized_object_is_refused_by_its_size():
    store = obstore.store.MemoryStore()
    obstore.put(store, "a/huge", bytes(3 << 20))
    with pytest.raises(WireError, match="3145728 bytes; at most 1048576"):
        BucketCourier(store).get("a/huge")
