"""``kill -9`` at any instant loses at most an unanswered, already paid charge."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from privada import Ledger, OwnerKey, Release

TOML = """
[data]
name = "patients"
path = "rows.csv"
[privacy]
relation = "add/remove"
epsilon = 1000.0
[schema]
columns = [{ name = "x", low = 0, high = 1 }]
[ledger]
url = "ledger.sqlite"
key = "owner.key"
"""
TRIALS = 200


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked owners; this system cannot fork")
def test_two_hundred_kills_never_yield_a_release_without_its_charge(tmp_path):
    (tmp_path / "owner.toml").write_text(TOML)
    (tmp_path / "rows.csv").write_text("x\n0.1\n0.9\n")
    key = OwnerKey.generate()
    key.save(tmp_path / "owner.key")
    Ledger.open(tmp_path / "ledger.sqlite", key).close()
    worker = Path(__file__).with_name("kill_worker.py")
    done = subprocess.run(
        [sys.executable, str(worker), str(tmp_path), str(TRIALS)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == TRIALS, "every kill must hit an owner at work"

    releases = [Release.load(path) for path in (tmp_path / "exchange" / "releases").rglob("*.release")]
    asked = list((tmp_path / "exchange" / "questions").rglob("*.question"))
    with Ledger.open(tmp_path / "ledger.sqlite", key) as ledger:
        ledger.verify([release.receipt for release in releases])
        charged = {line.question for line in ledger.lines("patients")}
    assert len(releases) >= 20, "the owners must get to answer"
    assert {release.question for release in releases} <= charged
    assert len(asked) >= len(releases)
    assert not list((tmp_path / "exchange").rglob("*.txt")), "no question was refused"
