"""``privada owner allow`` writes a line, which counts at once."""

import pytest

from privada.privacy import Ledger, OwnerKey
from privada.privacy.keys import LearnerKey


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
    assert "'alice' may have ε = 0.5 (pure), add/remove one row: line 1 of 'patients'" in said
    (line,) = lines(home)
    assert (line.approver, line.asker.learner, line.detail["new"]["epsilon"]) == ("Dr Who", "alice", 0.5)
    (row,) = cli.json("owner", "learners", owner)["learners"]
    assert (row["allowance"]["epsilon"], row["declared"]["epsilon"], row["last"]) == (0.5, 1.5, None)
    assert "may have" in cli("ledger", "show", owner).stdout
    found = cli.json("owner", "allow", owner, "alice", "--whole", "--by", "Dr Who")
    assert (found["allowance"], found["receipt"]["index"]) == (None, 2)


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
