"""What a study came to: every release, and the lines of this study only."""

import json

import pytest

from privada.exceptions import BudgetError, InputError, PolicyError, Waiting
from privada.exchange import Mailbox
from privada.parties.owner import Owner
from privada.parties.owner_file import OwnerFile
from privada.studies import Study
from privada.studies.outcome import Outcome, learn_from, run_study


def change(home, name, before, after):
    text = (home / name).read_text()
    assert before in text
    (home / name).write_text(text.replace(before, after))


def lines(outcome):
    return outcome.ledgers["clinic"]["datasets"]["patients"]["lines"]


def test_an_outcome_has_its_releases_and_the_lines_of_this_study_only(home):
    outcome = run_study(Study.read(home / "study.toml"))
    (release,) = outcome.releases
    (line,) = lines(outcome)
    assert (line["kind"], line["index"]) == ("charge", release.receipt.index)
    change(home, "study.toml", "again = 0", "again = 1")
    second = run_study(Study.read(home / "study.toml"))
    assert [line["index"] for line in lines(second)] == [release.receipt.index + 1]


def test_the_same_study_again_writes_no_line(home):
    first, again = (run_study(Study.read(home / "study.toml")) for _ in range(2))
    assert again.result == first.result
    assert lines(again) == []


def test_the_plain_form_is_json_and_names_guarantee_and_signature(home):
    outcome = run_study(Study.read(home / "study.toml"))
    plain = json.loads(json.dumps(outcome.to_dict()))
    assert plain["written_by"] == "privada"
    assert plain["guarantee"] == outcome.study.guarantee.to_dict()
    (release,) = plain["releases"]
    assert release["question"] == outcome.releases[0].question
    assert release["signed_by"] == OwnerFile.read(home / "clinic/owner.toml").card().public_key


def test_stamps_are_those_of_all_releases_once():
    class Stamped:
        def __init__(self, *stamps):
            self.stamps = stamps

    releases = (Stamped("b", "a"), Stamped("a"))
    assert Outcome(study=None, result={}, releases=releases, ledgers={}, learnt=None).stamps == ("a", "b")


@pytest.mark.parametrize(
    ("share", "epsilon", "error"), [("0.1", "1.0", PolicyError), ("1.0", "9.0", BudgetError)]
)
def test_what_cannot_be_answered_is_refused_before_anything_is_charged(home, share, epsilon, error):
    change(home, "clinic/owner.toml", "largest_share = 0.25", f"largest_share = {share}")
    change(home, "study.toml", "epsilon = 1.0", f"epsilon = {epsilon}")
    with pytest.raises(error):
        run_study(Study.read(home / "study.toml"))
    with OwnerFile.read(home / "clinic/owner.toml").open_ledger() as ledger:
        assert ledger.spent("patients") is None


def test_an_owner_elsewhere_is_asked_through_a_folder(home):
    card = OwnerFile.read(home / "clinic/owner.toml").card()
    (home / "schema.toml").write_text(card.to_toml())
    change(home, "study.toml", 'owner = "clinic/owner.toml"', 'schema = "schema.toml"')
    study = Study.read(home / "study.toml")
    with pytest.raises(InputError, match=r"owners\.clinic needs owner"):
        run_study(study)
    mailbox = Mailbox.open(home / "exchange", keys=study.keys)
    with pytest.raises(Waiting):
        learn_from(mailbox, study)
    mailbox.answer("clinic", Owner.from_file(OwnerFile.read(home / "clinic/owner.toml")))
    outcome = learn_from(mailbox, Study.read(home / "study.toml"))
    assert [release.receipt.dataset for release in outcome.releases] == ["patients"]
    assert outcome.ledgers == {}
