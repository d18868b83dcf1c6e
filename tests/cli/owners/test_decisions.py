"""What a person decides is on the chain, with a name, and the owner goes by it."""

import getpass

import pytest

from privada.privacy import Ledger, OwnerKey

OTHER = "cd" * 32


def lines(home):
    with Ledger.open(home / "clinic/ledger.sqlite", OwnerKey.load(home / "clinic/owner.key")) as ledger:
        return list(ledger.lines("patients"))


@pytest.fixture
def asked(cli, home, learner, exchange, edit):
    """A question that waits for a person; its digest."""
    edit("clinic/owner.toml", "approval = false", "approval = true")
    cli("ask", "cells", learner, "--exchange", exchange, expect=4)
    owner = home / "clinic/owner.toml"
    found = cli.json("answer", owner, "--exchange", exchange, "--name", "clinic", expect=4)
    (row,) = found["questions"]
    return row["digest"]


@pytest.fixture
def answer(cli, home, exchange):
    def run(*more, expect=0):
        owner = home / "clinic/owner.toml"
        return cli("answer", owner, "--exchange", exchange, "--name", "clinic", *more, expect=expect)

    return run


def test_an_approval_is_a_line_that_the_answer_names(cli, home, asked, answer):
    said = cli("owner", "approve", home / "clinic/owner.toml", asked, "--by", "Dr Who").stdout
    assert f"Question {asked[:12]} is approved: line 1 of 'patients'" in said
    cli("owner", "approve", home / "clinic/owner.toml", asked, "--by", "Dr Else")
    answer()
    approval, charge = lines(home)[1:]
    assert (approval.kind, approval.approver, approval.cost) == ("approval", "Dr Who", 0)
    assert (charge.kind, charge.approver, charge.question) == ("charge", "Dr Who", asked)


def test_approving_while_answering_records_who_did(home, asked, answer, monkeypatch):
    monkeypatch.setattr(getpass, "getuser", lambda: "steward")
    answer("--approve", asked, "--approve", OTHER)
    assert [(line.kind, line.approver) for line in lines(home)[1:]] == [
        ("approval", "steward"),
        ("charge", "steward"),
    ]


def test_a_refusal_stands_until_it_is_reconsidered(cli, home, asked, answer):
    owner = home / "clinic/owner.toml"
    cli("owner", "refuse", owner, asked, "--by", "Dr Who", "--reason", "ask for less")
    assert "was refused by Dr Who" in cli("owner", "approve", owner, asked, "--by", "x", expect=3).stderr
    answered = answer(expect=3)
    assert "Dr Who refused it: ask for less" in " ".join(answered.stdout.split())
    cli("owner", "approve", owner, asked, "--by", "Dr Else", "--reconsider")
    answer("--reconsider", asked)
    assert lines(home)[-1].approver == "Dr Else"


def test_a_decision_needs_a_whole_digest_and_a_known_learner(cli, home, monkeypatch):
    owner = home / "clinic/owner.toml"
    for digest in ("abc", OTHER[:-1], "zz" * 32):
        assert "all 64 digits" in cli("owner", "approve", owner, digest, expect=2).stderr
    said = cli("owner", "approve", owner, OTHER, "--learner", "eve", "--by", "x", expect=2).stderr
    assert "lists no learner 'eve'" in said
    assert "Expected by" in cli("owner", "approve", owner, OTHER, "--by", "a\x1bb", expect=2).stderr

    def nobody():
        raise OSError

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert "say --by NAME" in cli("owner", "approve", owner, OTHER, expect=2).stderr
    assert len(lines(home)) == 1


def test_a_decision_for_one_learner(cli, home):
    owner = home / "clinic/owner.toml"
    owner.write_text(owner.read_text() + f'\n[[learners]]\nname = "alice"\nkey = "{"aa" * 32}"\n')
    cli("owner", "approve", owner, OTHER, "--by", "Dr Who", "--learner", "alice")
    assert lines(home)[-1].asker.learner == "alice"
