"""An owner's process and a learner's, through a folder: served, restarted, stopped by a signal."""

import json
import signal
import subprocess
import sys
import time
import urllib.request

import pytest


def start(home, exchange, *more):
    command = [sys.executable, "-m", "privada.cli", "owner", "serve", f"clinic={home}/clinic/owner.toml"]
    return subprocess.Popen(
        [*command, "--exchange", str(exchange), *more],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def stop(process):
    process.send_signal(signal.SIGTERM)
    out, log = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, ""), log
    return [json.loads(line) for line in log.splitlines()]


@pytest.mark.skipif(sys.platform == "win32", reason="stops by a signal")
def test_a_study_is_answered_elsewhere_and_a_restart_charges_nothing(cli, home, learner, exchange):
    process = start(home, exchange, "--metrics-port", "0")
    try:
        line = json.loads(process.stderr.readline())
        assert line["event"] == "publishing metrics"
        first = cli.json("run", learner, "--exchange", exchange, "--patience", 60)
        with urllib.request.urlopen(f"http://127.0.0.1:{line['port']}/health", timeout=5) as reply:
            assert json.load(reply)["status"] == "ok"
    finally:
        lines = stop(process)
    (done,) = [line for line in lines if line["event"] == "question"]
    assert (done["owner"], done["outcome"]) == ("clinic", "answered")
    assert done["question"] == first["releases"][0]["question"]
    assert lines[-1]["event"] == "stopped"
    again = start(home, exchange)
    assert cli.json("run", learner, "--exchange", exchange)["result"] == first["result"]
    assert json.loads(again.stderr.readline())["event"] == "serving"
    time.sleep(0.5)
    assert not [line for line in stop(again) if line["event"] == "question"]
    assert len(cli.json("ledger", "show", home / "clinic/owner.toml")["datasets"]["patients"]["lines"]) == 2


def test_mistakes_are_named_before_anything_runs(cli, home, exchange):
    owner = home / "clinic/owner.toml"
    assert "there is no file" in cli("owner", "serve", "x.toml", "--exchange", exchange, expect=2).stderr
    twice = cli("owner", "serve", owner, owner, "--exchange", exchange, expect=2)
    assert "a name of its own" in twice.stderr
    assert "memory://" in cli("owner", "serve", owner, "--exchange", "ftp://x", expect=2).stderr
    assert "owner's name" in cli("owner", "serve", f"a b={owner}", "--exchange", exchange, expect=5).stderr


def test_the_consoles_file_is_found_beside_the_owners_and_its_mistakes_are_named(cli, home, exchange):
    owner, settings = home / "clinic/owner.toml", home / "clinic/console.toml"
    serve = ("owner", "serve", f"clinic={owner}", "--exchange", exchange, "--console", "--console-port", 0)
    assert "there is no file" in cli(*serve, "--console-settings", settings, expect=2).stderr
    settings.write_text('[oidc]\nissuer = "http://login.example.org"\n')
    assert "console.toml, line" in cli(*serve, expect=2).stderr
