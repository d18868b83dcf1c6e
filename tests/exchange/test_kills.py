"""``kill -9`` of owner, learner and broker at any instant: nothing unpaid, nothing paid twice, all go on."""

import os

import pytest

from benchmarks.kills import COUNTS, kill_parties, kill_writers

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")


def test_killed_parties_go_on_and_pay_once(tmp_path):
    pytest.importorskip("nats")
    counts = kill_parties(tmp_path, 6, seed=1)
    assert counts["kills"] >= 3
    assert {name: counts[name] for name in COUNTS} == dict.fromkeys(COUNTS, 0)


def test_killed_writers_leave_nothing_hidden(tmp_path):
    counts = kill_writers(tmp_path, 6, seed=1)
    assert counts["kills"] >= 2
    assert {name: counts[name] for name in (*COUNTS, "hidden_files_left")} == dict.fromkeys(
        (*COUNTS, "hidden_files_left"), 0
    )
