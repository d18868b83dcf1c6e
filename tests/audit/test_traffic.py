"""What a reader of the exchange can tell apart: sound protocols pass, each kind of difference is named."""

import os
from itertools import count

import pytest

from privada.audit import audit_traffic
from privada.exceptions import InputError

ROWS, NEIGHBOUR = [3, 1, 4, 1, 5, 9], [3, 1, 4, 2, 5, 9]


def test_a_padded_and_sealed_message_passes():
    """Random bytes of one length; a chance of 8 equal bytes in both worlds is below 2^-100."""
    found = audit_traffic(lambda _: [("to-curator/rows", os.urandom(540))], ROWS, NEIGHBOUR)
    assert found.passed, str(found)
    assert found.messages == 1


def test_what_changes_from_run_to_run_in_either_world_is_no_difference():
    turn = count()
    found = audit_traffic(lambda _: [(f"at/{(now := next(turn))}", b"x" * (now // 2))], ROWS, NEIGHBOUR)
    assert found.passed, str(found)


@pytest.mark.parametrize(
    ("run", "difference"),
    [
        (lambda rows: [("a", b"")] * len(set(rows)), "number of messages"),
        (lambda rows: [("a", os.urandom(len(set(rows))))], "length of message 0"),
        (
            lambda rows: [("a", os.urandom(9)), ("a", os.urandom(8) + bytes([len(set(rows))]))],
            "content of message 1",
        ),
        (lambda rows: [(f"{len(set(rows))}", b"")], "place of message 0"),
    ],
    ids=["number", "length", "content", "place"],
)
def test_each_kind_of_difference_is_named(run, difference):
    found = audit_traffic(run, ROWS, NEIGHBOUR)
    assert difference in found.differences
    assert difference in str(found)


def test_lengths_are_compared_whatever_their_order_is():
    def run(rows):
        files = [("a", os.urandom(len(set(rows)))), ("a", os.urandom(100))]
        return files if os.urandom(1)[0] % 2 else files[::-1]

    assert "lengths of messages" in audit_traffic(run, ROWS, NEIGHBOUR).differences


def test_one_run_shows_nothing():
    with pytest.raises(InputError, match="runs"):
        audit_traffic(lambda _: [], ROWS, NEIGHBOUR, runs=1)
