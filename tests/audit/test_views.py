"""What owners see in many-party runs, and what a reader of an exchange sees."""

import os
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from privada.audit import audit_traffic
from privada.audit.views import Difference, RoundAudit, ViewAudit, compare_messages, replay_views
from privada.exceptions import InputError

MESSAGE = {"kind": "sums", "to": "curator", "size": 3, "vector": np.zeros(2), "digest": "aa"}
SOUND = RoundAudit(moved=1.0, allowed=1.0, rank_shift=2, rank_allowed=2, rounds=3)


class Named:
    def __init__(self, name):
        self.name = name


@pytest.mark.parametrize(
    ("first", "second", "changed"), [("ab", "ba", "a"), ("ab", "abc", "a"), ("ab", "ab", "c")]
)
def test_both_worlds_hold_the_same_parties_and_the_changed_one(first, second, changed):
    worlds = [[Named(name) for name in names] for names in (first, second)]
    with pytest.raises(InputError, match="the same parties in both worlds"):
        replay_views(lambda _: pytest.fail("the protocol ran"), *worlds, changed=changed)


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({}, []),
        ({"vector": np.array([0.0, -0.0])}, ["vector"]),
        ({"size": 3.0, "to": "b"}, ["to", "size"]),
        ({"kind": "bids", "size": 9}, ["kind"]),
        ({"more": 1}, ["more"]),
        ({"digest": "bb"}, ["digest"]),
    ],
    ids=str,
)
def test_messages_are_compared_field_by_field_to_the_last_bit(change, fields):
    assert compare_messages(MESSAGE, MESSAGE | change) == fields


def test_a_message_in_one_world_only_is_a_difference():
    assert compare_messages(MESSAGE, None) == compare_messages(None, MESSAGE) == ["shown"]


def test_an_audit_of_rounds_passes_within_what_was_paid_for_only():
    assert SOUND.passed
    for change in ({"moved": 1.001}, {"rank_shift": 3}, {"differences": (Difference("b", 0, "size"),)}):
        assert not replace(SOUND, **change).passed


def test_an_audit_of_views_passes_if_nobody_saw_a_difference():
    assert ViewAudit(differing=(), compared=3).passed
    assert not ViewAudit(differing=("b",), compared=3).passed


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
