"""``kill -9`` at any instant: nothing unpaid, nothing paid twice, nothing lost."""

import os

import pytest

from benchmarks.faults import ASKERS, EPSILON, PAID, crowd, kill_owners, set_up

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="kills forked owners; this system cannot fork"
)


def test_killed_owners_neither_lose_nor_repeat_a_charge(tmp_path):
    counts = kill_owners(set_up(tmp_path, "ledger.sqlite", budget=9000.0), 60)
    assert counts["kills"] >= 60
    assert counts["unpaid_releases"] == counts["extra_charges"] == counts["undelivered_after_restart"] == 0


def test_a_crowd_neither_overspends_nor_pays_twice(tmp_path):
    assert crowd(set_up(tmp_path, "ledger.sqlite", budget=PAID * EPSILON), ASKERS // 4) == 0
