"""Memory of one process: what is different from the other couriers."""

import pytest

from privada.exceptions import WireError
from privada.exchange.local import LocalCourier


def test_without_a_name_a_courier_is_alone():
    one, other = LocalCourier(), LocalCourier()
    one.put("a/b", b"x")
    assert other.keys("") == []


def test_what_is_put_is_a_copy():
    courier, blob = LocalCourier(), bytearray(b"before")
    courier.put("a/b", blob)
    blob[:] = b"after!"
    assert courier.get("a/b") == b"before"


def test_a_key_is_no_folder_and_no_folder_is_a_key():
    courier = LocalCourier()
    courier.put("a/b/c", b"x")
    for key in ("a", "a/b", "a/b/c/d"):
        with pytest.raises(WireError, match="folder of others, or below"):
            courier.put(key, b"x")
    assert courier.keys("") == ["a/b/c"]
