"""The demo of a network, with one method: real processes, all stopped at the end."""

import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[2] / "examples" / "network" / "demo.py"


def demo(*words):
    command = [sys.executable, str(DEMO), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_one_method_over_a_broker(broker, tmp_path):
    done = demo("--out", tmp_path / "net", "--method", "cells")
    assert done.returncode == 0, done.stderr
    assert "Everything is stopped." in done.stdout
    assert "clinic serves clinic-cells." in done.stdout
    ledger = done.stdout.partition("Ledger of clinic-cells, held by clinic, by learner")[2]
    assert "alice" in ledger
    assert "25%" in ledger


def test_a_folder_of_something_else_stays(tmp_path):
    (tmp_path / "mine").mkdir()
    done = demo("--out", tmp_path / "mine")
    assert "not an earlier demo's" in done.stderr
    assert (tmp_path / "mine").exists()
