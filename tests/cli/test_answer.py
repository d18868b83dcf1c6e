"""An owner answers what is pending: whole digests, the right name, and nothing said of other files."""

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
    from privada.cli.studies.answer import _about
    from privada.exchange.answering import Answered
    from privada.parties.owner_file import OwnerFile

    asked = cli.json("ask", "cells", learner, "--folder", exchange, expect=4)
    (digest,) = asked["pending"]["clinic"]
    file = OwnerFile.read(home / "clinic/owner.toml")
    answering = Mailbox.open(exchange).for_owner("clinic", Owner.from_file(file))
    (waiting,) = answering.pending()
    assert waiting.digest == digest
    told = Answered(digest=digest, key=waiting.key, outcome="waiting")
    assert "guarantee" in _about(told, answering, file)
    assert _about(Answered(digest="0" * 64, key=waiting.key, outcome="waiting"), answering, file) == {}
    (exchange / waiting.key).unlink()
    assert _about(told, answering, file) == {}


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
