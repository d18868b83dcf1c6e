"""An owner answers: once, by name and digest, or as a process that is stopped by a signal."""

import json
import signal
import subprocess
import sys
import time
import urllib.request

import pytest


def test_a_person_approves(cli, home, edit, learner, exchange):
    edit("clinic/owner.toml", "approval = false", "approval = true")
    asked = cli.json("ask", "cells", learner, "--folder", exchange, expect=4)
    (digest,) = asked["pending"]["clinic"]
    answer = ("answer", home / "clinic/owner.toml", "--folder", exchange, "--name", "clinic")
    (row,) = cli.json(*answer, expect=4)["questions"]
    assert (row["outcome"], row["share"]) == ("waiting", pytest.approx(0.25))
    assert "all 64 digits" in cli(*answer, "--approve", digest[:12], expect=2).stderr
    shown = cli(*answer, "--approve", "0" * 64, expect=4).stdout
    assert "waiting" in shown
    assert digest in shown
    assert "answered" in cli(*answer, "--approve", digest).stdout


def test_nothing_is_said_of_an_item_that_was_changed_meanwhile(cli, home, learner, exchange):
    from privada import Mailbox, Owner
    from privada.cli.answer import describe_answer
    from privada.exchange.answering import Answered
    from privada.parties.owner_file import OwnerFile

    asked = cli.json("ask", "cells", learner, "--folder", exchange, expect=4)
    (digest,) = asked["pending"]["clinic"]
    file = OwnerFile.read(home / "clinic/owner.toml")
    answering = Mailbox.open(exchange).for_owner("clinic", Owner.from_file(file))
    (waiting,) = answering.pending()
    assert waiting.digest == digest
    told = Answered(digest=digest, key=waiting.key, outcome="waiting")
    assert "guarantee" in describe_answer(told, answering, file)
    other = Answered(digest="0" * 64, key=waiting.key, outcome="waiting")
    assert set(describe_answer(other, answering, file)) == {"digest", "outcome", "reason"}
    (exchange / waiting.key).unlink()
    assert set(describe_answer(told, answering, file)) == {"digest", "outcome", "reason"}


def test_a_name_that_nobody_asked_is_told_who_was(cli, home, learner, exchange):
    cli("ask", "cells", learner, "--folder", exchange, expect=4)
    wrong = cli("answer", home / "clinic/owner.toml", "--folder", exchange, expect=2)
    assert "Nobody asked 'patients'" in wrong.stderr
    assert "say --name, one of: clinic" in wrong.stderr


def test_only_what_was_refused_can_be_reconsidered(cli, home, edit, learner, exchange):
    edit("clinic/owner.toml", "largest_share = 0.25", "largest_share = 0.1")
    (digest,) = cli.json("ask", "cells", learner, "--folder", exchange, expect=4)["pending"]["clinic"]
    answer = ("answer", home / "clinic/owner.toml", "--folder", exchange, "--name", "clinic")
    assert f"clinic did not refuse {digest}" in cli(*answer, "--reconsider", digest, expect=2).stderr
    (refused,) = cli.json(*answer, expect=3)["questions"]
    assert (refused["digest"], refused["outcome"]) == (digest, "refused")
    assert "kind" not in refused
    edit("clinic/owner.toml", "largest_share = 0.1", "largest_share = 0.25")
    assert cli.json(*answer)["questions"] == []
    assert cli.json(*answer, "--reconsider", digest)["questions"][0]["outcome"] == "answered"


def test_nothing_pending_is_no_error(cli, home, exchange):
    exchange.mkdir()
    shown = cli("answer", home / "clinic/owner.toml", "--folder", exchange)
    assert shown.stdout == "Nothing is pending for patients.\n"


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
