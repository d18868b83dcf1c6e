"""Keys and prefixes: what can be one, whatever the courier."""

import pytest

from privada.exceptions import WireError
from privada.exchange.courier import Courier, check_key, check_prefix, check_size, is_segment


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
