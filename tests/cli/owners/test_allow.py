"""``privada owner allow`` writes a line, which counts at once."""

import pytest

from privada import Owner
from privada.privacy import Ledger, OwnerKey
from privada.privacy.keys import LearnerKey
from privada.privacy.ledger.grants import FILE


@pytest.fixture
def owner(home):
    file = home / "clinic/owner.toml"
    key = LearnerKey.generate().public
    listed = f'\n[[learners]]\nname = "alice"\nkey = "{key}"\nallowance = {{ epsilon = 1.5 }}\n'
    file.write_text(file.read_text() + listed)
    return file


def lines(home):
    with Ledger.open(home / "clinic/ledger.sqlite", OwnerKey.load(home / "clinic/owner.key")) as ledger:
        return [line for line in ledger.lines("patients") if line.kind == "allowance"]


def test_a_change_is_a_line_and_what_learners_shows(cli, home, owner):
    said = cli("owner", "allow", owner, "alice", "--epsilon", "0.5", "--by", "Dr Who").stdout
    assert "'alice' may have ε = 0.5 (pure), add/remove one row: line 2 of 'patients'" in said
    first, line = lines(home)
    assert (first.approver, first.detail["new"]["epsilon"]) == (FILE, 1.5)
    assert (line.approver, line.asker.learner, line.detail["new"]["epsilon"]) == ("Dr Who", "alice", 0.5)
    (row,) = cli.json("owner", "learners", owner)["learners"]
    assert (row["allowance"]["epsilon"], row["declared"]["epsilon"], row["last"]) == (0.5, 1.5, None)
    assert "may have" in cli("ledger", "show", owner).stdout
    found = cli.json("owner", "allow", owner, "alice", "--whole", "--by", "Dr Who")
    assert (found["allowance"], found["receipt"]["index"]) == (None, 3)


def test_an_owner_that_opens_for_the_first_time_does_not_undo_a_change(cli, home, owner):
    cli("owner", "allow", owner, "alice", "--epsilon", "0.5", "--by", "Dr Who")
    for _ in range(2):
        Owner.from_toml(owner).ledger.close()
    (row,) = cli.json("owner", "learners", owner)["learners"]
    assert (row["allowance"]["epsilon"], len(lines(home))) == (0.5, 2)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (["alice"], "either --whole or how much"),
        (["alice", "--whole", "--epsilon", "1"], "either --whole or how much"),
        (["alice", "--epsilon", "400"], "more than the budget"),
        (["alice", "--rho", "0.1"], "state it in the same terms"),
        (["bob", "--epsilon", "1"], "lists no learner 'bob'"),
    ],
)
def test_other_changes_are_refused_by_name(cli, home, owner, given, why):
    assert why in cli("owner", "allow", owner, *given, "--by", "x", expect=2).stderr
    assert lines(home) == []
