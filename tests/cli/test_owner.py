"""An owner's commands: its budget, card, check, learners, decisions, console users and keys."""

import getpass
import stat
import time

import pytest

from privada import Owner
from privada.exceptions import BudgetError, LedgerError, PolicyError, StudyError
from privada.privacy import Asker, Ledger, OwnerKey
from privada.privacy.keys import LearnerKey
from privada.privacy.ledger.ledger import FILE
from privada.service.console.users import Users
from privada.studies import Study

FILLED = {
    "relation": 'relation = "add/remove"',
    "epsilon": "epsilon = 2.0",
    "low": "low = 0",
    "high": "high = 10",
    "values": 'values = ["well", "ill"]',
}


def fill_in(path):
    """Replace one placeholder after the other; until the last one, loading fails and names it."""
    while 'FILL IN"  #' in (text := path.read_text()) or '"FILL IN"\n' in text:
        with pytest.raises(StudyError, match="FILL IN") as failed:
            Owner.from_toml(path)
        lines = text.splitlines()
        number = int(str(failed.value).split("line ")[1].split(",")[0])
        key = lines[number - 1].split(" = ")[0]
        assert 'FILL IN"' in lines[number - 1]
        lines[number - 1] = FILLED[key]
        path.write_text("\n".join(lines) + "\n")


def test_owner_init_then_fill_in_then_load(cli, home, tmp_path):
    folder = tmp_path / "north"
    done = cli.json("owner", "init", folder, "--data", home / "clinic/rows.csv", "--label", "outcome")
    assert stat.S_IMODE((folder / "owner.key").stat().st_mode) == 0o600
    assert len(done["public_key"]) == 64
    text = (folder / "owner.toml").read_text().replace('# values = ["a", "b"]', "# or values = [...]")
    label = text.index("[schema.label]")
    text = text[:label] + text[label:].replace('low = "FILL IN"', 'values = "FILL IN"', 1)
    text = text[:label] + "\n".join(line for line in text[label:].splitlines() if not line.startswith("high"))
    (folder / "owner.toml").write_text(text + "\n")
    fill_in(folder / "owner.toml")
    with pytest.raises(BudgetError, match="privada owner open-budget"):
        Owner.from_toml(folder / "owner.toml")
    opened = cli.json("owner", "open-budget", folder / "owner.toml")
    assert opened["dataset"] == "rows"
    assert cli.json("owner", "open-budget", folder / "owner.toml") == opened
    assert Owner.from_toml(folder / "owner.toml").dataset == "rows"


def test_types_come_from_parquet_and_values_from_nowhere(cli, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"age": [31, 77], "height": [1.71, 1.55], "ward": ["secret-a", "secret-b"]})
    pq.write_table(table, tmp_path / "rows.parquet")
    cli("owner", "init", tmp_path / "o", "--data", tmp_path / "rows.parquet", "--name", "people")
    text = (tmp_path / "o/owner.toml").read_text()
    assert all(value not in text for value in ("31", "77", "1.71", "secret"))
    assert 'name = "people"' in text
    assert 'path = "../rows.parquet"' in text
    assert text.count('low = "FILL IN"') == 2
    assert text.count('values = "FILL IN"') == 1


def test_a_csv_gives_its_header_only(cli, tmp_path):
    (tmp_path / "rows.csv").write_text('age,"the ""ward"""\n31,secret\n')
    cli("owner", "init", tmp_path / "o", "--data", tmp_path / "rows.csv")
    text = (tmp_path / "o/owner.toml").read_text()
    assert "secret" not in text
    assert r'name = "the \"ward\""' in text


def test_nothing_is_overwritten(cli, tmp_path):
    cli("owner", "init", tmp_path / "o")
    before = {path.name: path.read_bytes() for path in (tmp_path / "o").iterdir()}
    assert "not overwritten" in cli("owner", "init", tmp_path / "o", expect=2).stderr
    assert {path.name: path.read_bytes() for path in (tmp_path / "o").iterdir()} == before


def test_wrong_data(cli, tmp_path):
    missing = cli("owner", "init", tmp_path / "o", "--data", tmp_path / "none.csv", expect=2)
    assert "--data: there is nothing at" in missing.stderr
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    label = cli("owner", "init", tmp_path / "o", "--data", tmp_path / "rows.csv", "--label", "c", expect=2)
    assert "--label to be one of a, b" in label.stderr
    (tmp_path / "rows.txt").write_text("a,b\n1,2\n")
    assert (
        "neither CSV nor Parquet"
        in cli("owner", "init", tmp_path / "o", "--data", tmp_path / "rows.txt", expect=2).stderr
    )
    assert not (tmp_path / "o").exists()


def test_the_card_is_public_and_reads_back(cli, home):
    from privada.parties.owner_file import Card, OwnerFile

    cli("owner", "schema", home / "clinic/owner.toml", "--out", home / "schema.toml")
    file = OwnerFile.read(home / "clinic/owner.toml")
    assert Card.read(home / "schema.toml") == file.card()
    assert "PRIVATE" not in (home / "schema.toml").read_text()
    assert cli("owner", "schema", home / "clinic/owner.toml").stdout == (home / "schema.toml").read_text()


@pytest.mark.parametrize("name", ["patients ", "patients\u00a0", "ｐatients"])
def test_a_name_that_looks_the_same_is_the_same_budget(cli, home, edit, name):
    cli("run", home / "study.toml")
    edit("clinic/owner.toml", 'name = "patients"', f'name = "{name}"')
    edit("study.toml", "again = 0", "again = 1")
    cli("run", home / "study.toml")
    (shown,) = cli.json("ledger", "show", home / "clinic/ledger.sqlite", "--key", home / "clinic/owner.key")[
        "datasets"
    ].values()
    assert shown["left"] == pytest.approx(0.5)


@pytest.mark.parametrize("name", ["patients2", "Patients"])
def test_another_name_is_an_error_and_never_a_new_budget(cli, home, edit, name):
    edit("clinic/owner.toml", 'name = "patients"', f'name = "{name}"')
    assert "it knows 'patients'" in cli("run", home / "study.toml", expect=3).stderr
    shown = cli.json("ledger", "show", home / "clinic/ledger.sqlite", "--key", home / "clinic/owner.key")
    assert list(shown["datasets"]) == ["patients"]


def test_a_budget_is_not_opened_under_a_name_that_differs_in_case_only(cli, home, edit):
    edit("clinic/owner.toml", 'name = "patients"', 'name = "Patients"')
    failed = cli("owner", "open-budget", home / "clinic/owner.toml", expect=5)
    assert "would be taken for it" in failed.stderr


WRONG = 'weight;outcome\n80,5;well\nmuch;ill\n90;"Mrs; Smith"\n'
CSV = '[data.csv]\ndelimiter = ";"\ndecimal = ","\n'


def made(cli, folder, text):
    folder.mkdir()
    (folder / "EXPORT.CSV").write_text(text)
    cli("owner", "init", folder / "o", "--data", folder / "EXPORT.CSV", "--delimiter", ";", "--decimal", ",")
    path = folder / "o/owner.toml"
    filled = path.read_text().replace('low = "FILL IN"', "low = 0").replace('high = "FILL IN"', "high = 200")
    filled = filled.replace('relation = "FILL IN"', 'relation = "add/remove"')
    filled = filled.replace('epsilon = "FILL IN"', "epsilon = 1.0")
    label = filled.rindex("[[schema.columns]]")
    path.write_text(filled[:label] + '[schema.label]\nname = "outcome"\nvalues = ["well", "ill"]\n')
    time.sleep(0.15)
    return path


def test_what_does_not_fit_is_counted_and_no_value_is_shown(cli, tmp_path):
    path = made(cli, tmp_path / "a", WRONG)
    done = cli("owner", "check", path, expect=6)
    assert "unparsable" in done.stdout
    assert "do not fit" in done.stdout
    assert "Smith" not in done.stdout + done.stderr
    assert "much" not in done.stdout + done.stderr
    found = cli.json("owner", "check", path, expect=6)
    assert found["columns"][0] == {"name": "weight", "unparsable": 1, "first_line": 3, "fits": False}
    assert found["columns"][1] == {"name": "outcome", "outside": 1, "fits": False}
    assert not (tmp_path / "a/o/rows.checked").exists()


def test_rows_that_fit_are_remembered(cli, tmp_path, monkeypatch):
    path = made(cli, tmp_path / "a", "weight;outcome\n80,5;well\n")
    cli("owner", "open-budget", path)
    assert CSV in path.read_text()
    found = cli.json("owner", "check", path)
    assert (found["fits"], found["remembered"], found["rows"]) == (True, True, 1)
    assert (tmp_path / "a/o/rows.checked").stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr("privada.parties.rows.Rows.check", None)  # reading all rows again would fail
    assert Owner.from_toml(path).dataset == "EXPORT"


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


OTHER = "cd" * 32


def lines_of_decisions(home):
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
    approval, charge = lines_of_decisions(home)[1:]
    assert (approval.kind, approval.approver, approval.cost) == ("approval", "Dr Who", 0)
    assert (charge.kind, charge.approver, charge.question) == ("charge", "Dr Who", asked)


def test_approving_while_answering_records_who_did(home, asked, answer, monkeypatch):
    monkeypatch.setattr(getpass, "getuser", lambda: "steward")
    answer("--approve", asked, "--approve", OTHER)
    assert [(line.kind, line.approver) for line in lines_of_decisions(home)[1:]] == [
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
    assert lines_of_decisions(home)[-1].approver == "Dr Else"


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
    assert len(lines_of_decisions(home)) == 1


def test_a_decision_for_one_learner(cli, home):
    owner = home / "clinic/owner.toml"
    owner.write_text(owner.read_text() + f'\n[[learners]]\nname = "alice"\nkey = "{"aa" * 32}"\n')
    cli("owner", "approve", owner, OTHER, "--by", "Dr Who", "--learner", "alice")
    assert lines_of_decisions(home)[-1].asker.learner == "alice"


def test_a_person_may_sign_in_afterwards(cli, home, monkeypatch):
    monkeypatch.setenv("PRIVADA_CONSOLE_PASSPHRASE", "correct horse")
    owner = home / "clinic/owner.toml"
    said = cli.json("owner", "console-user", owner, "Grace", "--role", "approver")
    assert said["role"] == "approver"
    user = Users(home / "clinic/console-users.json").sign_in("Grace", "correct horse")
    assert (user.name, user.role) == ("Grace", "approver")


def test_an_unknown_role_is_named(cli, home, monkeypatch):
    monkeypatch.setenv("PRIVADA_CONSOLE_PASSPHRASE", "correct horse")
    owner = home / "clinic/owner.toml"
    assert "one of viewer" in cli("owner", "console-user", owner, "G", "--role", "x", expect=2).stderr


OLD, NEW = "correct horse", "battery staple"


@pytest.fixture
def say(monkeypatch):
    def set_both(old, new=None):
        for name, value in (("PRIVADA_KEY_PASSPHRASE", old), ("PRIVADA_NEW_KEY_PASSPHRASE", new)):
            monkeypatch.delenv(name, raising=False)
            if value is not None:
                monkeypatch.setenv(name, value)

    set_both(None)
    return set_both


def test_a_new_owner_with_a_passphrase(cli, tmp_path, say):
    assert (
        "set PRIVADA_KEY_PASSPHRASE" in cli("owner", "init", tmp_path / "a", "--passphrase", expect=5).stderr
    )
    assert not (tmp_path / "a").exists()
    say(OLD)
    made = cli.json("owner", "init", tmp_path / "a", "--passphrase")
    assert OwnerKey.load(tmp_path / "a" / "owner.key", passphrase=OLD).public == made["public_key"]


def test_a_passphrase_is_set_changed_and_removed(cli, home, say):
    owner, key = home / "clinic" / "owner.toml", home / "clinic" / "owner.key"
    before = OwnerKey.load(key)
    say(None, OLD)
    assert cli.json("owner", "key", "passphrase", owner)["protected"]
    assert OwnerKey.load(key, passphrase=OLD) == before
    assert "set PRIVADA_KEY_PASSPHRASE" in cli("owner", "schema", owner, expect=5).stderr
    assert "set PRIVADA_KEY_PASSPHRASE" in cli("run", home / "study.toml", expect=5).stderr
    say(OLD)
    assert cli.json("owner", "schema", owner)["public_key"] == before.public
    cli("run", home / "study.toml")
    say(OLD, NEW)
    cli("owner", "key", "passphrase", owner)
    with pytest.raises(LedgerError, match="does not open"):
        OwnerKey.load(key, passphrase=OLD)
    assert "does not open" in cli("owner", "key", "passphrase", owner, expect=5).stderr
    say(NEW)
    assert "set PRIVADA_NEW_KEY_PASSPHRASE" in cli("owner", "key", "passphrase", owner, expect=5).stderr
    cli("owner", "key", "passphrase", owner, "--remove")
    say(None)
    assert OwnerKey.load(key) == before


def test_words_are_not_shown(cli, home, say):
    say("wrong words", "short")
    result = cli("owner", "key", "passphrase", home / "clinic" / "owner.toml", expect=2)
    assert "8 to 1000 bytes" in result.stderr
    assert "short" not in result.stderr
    assert "wrong words" not in result.stderr


@pytest.fixture
def clinic(cli, home, say):
    """An owner who has answered."""
    cli("run", home / "study.toml")
    return home / "clinic"


def test_a_new_key_takes_over(cli, home, clinic):
    before = OwnerKey.load(clinic / "owner.key")
    made = cli.json("owner", "key", "rotate", clinic / "owner.toml")
    assert made["old"] == before.public
    assert OwnerKey.load(clinic / "owner.key").public == made["new"]
    assert OwnerKey.load(clinic / f"owner.key.{before.public[:12]}") == before
    assert not (clinic / "owner.key.new").exists()
    assert cli.json("owner", "schema", clinic / "owner.toml")["public_key"] == made["new"]
    told = clinic / f"handover-{made['new'][:12]}.json"
    assert cli.json("owner", "key", "check", told, "--public-key", before.public)["new"] == made["new"]
    assert "another owner" in cli("owner", "key", "check", told, "--public-key", made["new"], expect=5).stderr
    cli("run", home / "study.toml")
    assert cli.json("ledger", "verify", clinic / "owner.toml")["verified"]
    shown = cli.json("ledger", "show", clinic / "owner.toml")["datasets"]["patients"]["lines"]
    assert [line["kind"] for line in shown].count("key") == 1
    stale = ("--key", clinic / f"owner.key.{before.public[:12]}")
    assert "took over" in cli("ledger", "verify", clinic / "ledger.sqlite", *stale, expect=5).stderr


@pytest.mark.parametrize("stage", ["key", "ledger", "link"])
def test_an_interrupted_rotation_is_finished(cli, clinic, stage, monkeypatch):
    """Whatever was done before the interruption, the next run ends with one new key."""
    import os

    from privada.privacy import Ledger

    before = OwnerKey.load(clinic / "owner.key")
    new = OwnerKey.generate()
    new.save(clinic / "owner.key.new")
    if stage != "key":
        with Ledger.open(clinic / "ledger.sqlite", before, create=False) as ledger:
            ledger.rotate(new)
    if stage == "link":
        os.link(clinic / "owner.key", clinic / f"owner.key.{before.public[:12]}")
    made = cli.json("owner", "key", "rotate", clinic / "owner.toml")
    assert (made["old"], made["new"]) == (before.public, new.public)
    assert OwnerKey.load(clinic / "owner.key") == new
    cli("ledger", "verify", clinic / "owner.toml")


def test_the_old_key_is_kept_where_there_are_no_links(cli, clinic, monkeypatch):
    import os

    def none(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    made = cli.json("owner", "key", "rotate", clinic / "owner.toml")
    assert OwnerKey.load(clinic / f"owner.key.{made['old'][:12]}").public == made["old"]
    assert OwnerKey.load(clinic / "owner.key").public == made["new"]


def test_a_protected_key_is_followed_by_a_protected_one(cli, clinic, say):
    say(None, OLD)
    cli("owner", "key", "passphrase", clinic / "owner.toml")
    say(OLD)
    assert "NEW_KEY_PASSPHRASE" in cli("owner", "key", "rotate", clinic / "owner.toml", expect=5).stderr
    say(OLD, NEW)
    made = cli.json("owner", "key", "rotate", clinic / "owner.toml")
    assert OwnerKey.load(clinic / "owner.key", passphrase=NEW).public == made["new"]
    say(NEW)
    cli("ledger", "verify", clinic / "owner.toml")


def test_a_file_that_is_no_hand_over(cli, tmp_path):
    (tmp_path / "handover.json").write_text("{}")
    result = cli("owner", "key", "check", tmp_path / "handover.json", "--public-key", "00", expect=5)
    assert "is not a hand-over of a key" in result.stderr
