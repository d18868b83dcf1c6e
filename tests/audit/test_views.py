"""Whose view differed: refusals, and what counts as a difference. Whole protocols are in ``rooms``."""

from dataclasses import replace

import numpy as np
import pytest

from privada.audit.views import Difference, RoundAudit, ViewAudit, _unlike, replay_views
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
    assert _unlike(MESSAGE, MESSAGE | change) == fields


def test_a_message_in_one_world_only_is_a_difference():
    assert _unlike(MESSAGE, None) == _unlike(None, MESSAGE) == ["shown"]


def test_an_audit_of_rounds_passes_within_what_was_paid_for_only():
    assert SOUND.passed
    for change in ({"moved": 1.001}, {"rank_shift": 3}, {"differences": (Difference("b", 0, "size"),)}):
        assert not replace(SOUND, **change).passed


def test_an_audit_of_views_passes_if_nobody_saw_a_difference():
    assert ViewAudit(differing=(), compared=3).passed
    assert not ViewAudit(differing=("b",), compared=3).passed
