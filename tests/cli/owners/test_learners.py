"""Who may ask, and how much of each allowance is used."""

import pytest

from privada import Owner
from privada.exceptions import PolicyError
from privada.privacy import Asker
from privada.studies import Study

ALICE, BOB = Asker("alice", "aa" * 32, project="stroke"), Asker("bob", "bb" * 32)
LISTED = f"""
[[learners]]
name = "alice"
key = "{ALICE.key}"
allowance = {{ epsilon = 2.0 }}
expires = 2099-01-31

[[learners]]
name = "bob"
key = "{BOB.key}"
methods = ["transport"]
"""


@pytest.fixture
def used(home):
    """Alice paid for a quarter of the budget of 4; Bob was refused, and so was a stranger."""
    path = home / "clinic/owner.toml"
    path.write_text(path.read_text() + LISTED)
    (ask,), owner = Study.read(home / "study.toml").first_asks, Owner.from_toml(path)
    owner.answer(ask.question, asker=ALICE)
    for who in (BOB, Asker("eve", "ee" * 32)):
        with pytest.raises(PolicyError):
            owner.answer(ask.question, asker=who)
    return path


def test_what_each_learner_has_used(cli, used):
    found = cli.json("owner", "learners", used)
    alice, bob = found["learners"]
    assert (alice["left"], alice["charges"], alice["expires"]) == (pytest.approx(0.5), 1, "2099-01-31")
    assert (bob["left"], bob["charges"], bob["refusals"], bob["methods"]) == (1.0, 0, 1, ["transport"])
    assert found["left"] == pytest.approx(0.75)
    assert sum(found["unlisted_refusals"].values()) == 1
    text = cli("owner", "learners", used).stdout
    assert "alice" in text
    assert "Refusals that got no line, mostly of strangers: 1." in text


def test_a_file_without_learners_says_so(cli, home):
    assert cli.json("owner", "learners", home / "clinic/owner.toml")["learners"] == []
    assert "lists no learners" in cli("owner", "learners", home / "clinic/owner.toml").stdout


def test_the_ledger_by_learner(cli, used):
    alice, bob = cli.json("ledger", "show", used, "--by", "learner")["learners"]
    assert (alice["learner"], alice["share"], alice["projects"]) == ("alice", pytest.approx(0.25), ["stroke"])
    assert (bob["learner"], bob["refusals"]) == ("bob", 1)
    assert "By learner" in cli("ledger", "show", used, "--by", "learner").stdout
    assert "Expected --by" in cli("ledger", "show", used, "--by", "moon", expect=2).stderr
