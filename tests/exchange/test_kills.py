"""``kill -9`` of owner, learner and broker at any instant: nothing unpaid, nothing paid twice, all go on."""

import os

import pytest

from benchmarks.kills import COUNTS, kill_parties

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")


def test_killed_parties_go_on_and_pay_once(tmp_path):
    pytest.importorskip("nats")
    counts = kill_parties(tmp_path, 6, seed=1)
    assert counts["kills"] >= 3
    assert {name: counts[name] for name in COUNTS} == dict.fromkeys(COUNTS, 0)
