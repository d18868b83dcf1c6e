"""``privada run`` with one file for the consumer and one for each owner."""

import threading

import numpy as np
import pytest

from privada.exchange import open_courier
from privada.parties.owner_file import OwnerFile
from privada.privacy import ApproxDP, Ledger, OwnerKey

OWNER = """
[data]
name = "{name}"
path = "{name}.csv"

[privacy]
relation = "replace-one"
epsilon = 2.0
delta = 1e-4
accounting = "gaussian"

[ledger]
url = "{name}.sqlite"
key = "{name}.key"

[policy]
curators = ["curator"]

[schema]
size = {size}

[[schema.columns]]
name = "a"
low = -4.0
high = 4.0

[[schema.columns]]
name = "b"
low = -4.0
high = 4.0
"""
LABEL = '\n[schema.label]\nname = "ill"\nvalues = ["no", "yes"]\n'
STUDY = """
[study]
title = "A summary for the hospital"

[owners.hospital]
owner = "hospital.toml"
[owners.east]
owner = "east.toml"
[owners.west]
owner = "west.toml"

[budget]
epsilon = 2.0
delta = 1e-4

[method]
name = "summarization"
consumer = "hospital"
size = 30
gamma = 0.5
n_features = 40
validation_epsilon = 1.5
validation_delta = 1e-4
summary = "summary.npz"
"""


@pytest.fixture
def market(tmp_path):
    rng = np.random.default_rng(0)
    for name, side, size in (("hospital", 1, 100), ("east", 1, 200), ("west", -1, 200)):
        rows = rng.normal(side, 0.4, size=(size, 2))
        lines = ["a,b" + ("" if name == "hospital" else ",ill")]
        for i, row in enumerate(rows):
            label = "" if name == "hospital" else ("," + ("yes" if i % 2 else "no"))
            lines.append(f"{row[0]:.6f},{row[1]:.6f}{label}")
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
        text = OWNER.format(name=name, size=size) + ("" if name == "hospital" else LABEL)
        (tmp_path / f"{name}.toml").write_text(text)
        key = OwnerKey.generate()
        key.save(tmp_path / f"{name}.key")
        Ledger.open(tmp_path / f"{name}.sqlite", key).close()
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


def test_a_run_gathers_a_summary_and_logs_what_was_disclosed(cli, market):
    begin(market)
    plain = cli.json("run", market / "study.toml")
    result = plain["result"]
    assert result["points"] == result["points_seen"] == 30
    assert result["rows"]["east"] > 20
    assert "raw rows at the curator: not differentially private" in result["stamps"]
    assert [release["kind"] for release in plain["releases"]] == [
        *["summarization.sum"] * 3,
        *["summarization.near"] * 2,
    ]
    with np.load(market / "summary.npz") as held:
        assert held["X"].shape == (30, 2)
        assert set(held["owner"]) <= {"east", "west"}
    lines = plain["ledgers"]["east"]["datasets"]["east"]["lines"]
    assert [line["kind"] for line in lines] == ["charge", "charge", "disclosure"]
    again = cli("run", market / "study.toml", expect=2)
    assert "summary.npz is there already" in again.stderr


def test_a_run_in_rounds_charges_each_owner_once_for_all_of_them(cli, market):
    begin(market)
    study = market / "study.toml"
    study.write_text(study.read_text().replace("size = 30", 'size = 30\nalgorithm = "rounds"\nbatch = 10'))
    plain = cli.json("run", study)
    assert plain["result"]["points"] == 30
    assert plain["result"]["points_seen"] >= 30
    lines = plain["ledgers"]["east"]["datasets"]["east"]["lines"]
    assert [line["kind"] for line in lines].count("charge") == 1
    (market / "summary.npz").unlink()
    refused = cli("run", study, expect=3)
    assert "budget" in refused.stderr.lower(), "a second start is a second charge"


def test_an_owner_that_names_no_curator_refuses(cli, market):
    file = market / "east.toml"
    file.write_text(file.read_text().replace('curators = ["curator"]', "curators = []"))
    refused = cli("run", market / "study.toml", expect=3)
    assert "discloses no rows" in refused.stderr
    assert opened(market) == []


def begin(market):
    """Open the budgets that the owners' files name."""
    for name in ("hospital", "east", "west"):
        OwnerFile.read(market / f"{name}.toml").open_budget()


def opened(market):
    """The data sets whose budgets are opened: those that were charged, and more."""
    found = []
    for name in ("hospital", "east", "west"):
        with Ledger.open(market / f"{name}.sqlite", OwnerKey.load(market / f"{name}.key")) as ledger:
            found += ledger.datasets()
    return found


def test_all_rounds_of_all_owners_can_be_paid_or_nothing_is_charged(cli, market):
    study, east = market / "study.toml", market / "east.toml"
    found = cli.json("price", study)
    assert list(found["together"]) == ["east", "west"]
    assert found["together"]["east"]["share"] == pytest.approx(1.0)
    east.write_text(east.read_text().replace('accounting = "gaussian"\n', ""))
    found = cli.json("price", study, expect=3)["together"]
    assert found["west"]["verdict"] == "all rounds would be answered"
    assert 'accounting = "gaussian"' in found["east"]["verdict"]
    assert 'accounting = "gaussian"' in cli("run", study, expect=3).stderr
    assert opened(market) == []


@pytest.mark.parametrize(
    ("before", "after", "match"),
    [
        ('consumer = "hospital"', 'consumer = "nobody"', "consumer to be one of hospital, east, west"),
        ("size = 30", "size = 3000", "at most 400, all rows of the owners"),
        ("n_features = 40", "n_features = 41", "even"),
        ("gamma = 0.5", "gamma = -1", "gamma"),
        ("gamma = 0.5", "gamma = 0.5\nspeed = 3", "speed"),
    ],
)
def test_a_wrong_study_names_the_key(cli, market, before, after, match):
    file = market / "study.toml"
    file.write_text(file.read_text().replace(before, after))
    assert match in cli("run", file, expect=2).stderr


def test_rows_are_asked_for_with_a_key_and_that_is_said_before_the_first_question(market):
    from privada.exceptions import InputError
    from privada.exchange import Mailbox
    from privada.studies.study import Study

    study = Study.read(market / "study.toml")
    with pytest.raises(InputError, match="raw rows, which are encrypted for your key"):
        Mailbox.open(market / "exchange").learn(study.inquiry)
    assert not (market / "exchange").exists()


def test_rounds_need_the_owners_cards_and_that_is_said_before_the_first_question(market):
    """Their questions are sealed for the owners, whose public keys are on the cards."""
    from privada.exceptions import InputError
    from privada.exchange import Mailbox, Sender
    from privada.privacy.keys import LearnerKey
    from privada.studies.study import Study

    file = market / "study.toml"
    file.write_text(file.read_text().replace("size = 30", 'size = 30\nalgorithm = "rounds"'))
    study, sender = Study.read(file), Sender(learner="curator", key=LearnerKey.generate())
    with pytest.raises(
        InputError, match=r"sealed, so that east alone can read it.*with the card of that owner"
    ):
        Mailbox.open(market / "exchange", sender=sender).learn(study.inquiry)
    assert not (market / "exchange").exists()


def test_rounds_run_through_a_folder_with_the_owners_cards(market):
    from privada import Owner
    from privada.exchange import Mailbox, Sender
    from privada.privacy.keys import LearnerKey
    from privada.service.serving import Desk, Service
    from privada.studies.study import Study

    curator, file, names = LearnerKey.generate(), market / "study.toml", ("hospital", "east", "west")
    begin(market)
    for name in names:
        owner = market / f"{name}.toml"
        owner.write_text(f'{owner.read_text()}\n[[learners]]\nname = "curator"\nkey = "{curator.public}"\n')
        (market / f"{name}.card").write_text(OwnerFile.read(owner).card().to_toml())
        file.write_text(file.read_text().replace(f'owner = "{name}.toml"', f'schema = "{name}.card"'))
    file.write_text(file.read_text().replace("size = 30", 'size = 12\nalgorithm = "rounds"\nbatch = 4'))
    parties = {name: Owner.from_toml(market / f"{name}.toml") for name in names}
    place = market / "exchange"
    service = Service([Desk(*party) for party in parties.items()], lambda: open_courier(place))
    thread = threading.Thread(target=service.run)
    thread.start()
    try:
        study = Study.read(file)
        sender = Sender(learner="curator", key=curator)
        with Mailbox.open(place, keys=study.keys, sender=sender) as mailbox:
            summary = mailbox.learn(study.inquiry, patience=60)
    finally:
        service.stop()
        thread.join()
    assert len(summary) == 12
    assert summary.faults == ()
    lines = [line.kind for line in parties["east"].ledger.lines("east")]
    assert lines.count("charge") == 1
    assert lines.count("disclosure") == 2 * 3, "a bid and points in each of three rounds"


def test_an_owner_that_names_no_curator_is_not_charged_for_rounds(cli, market):
    file, study = market / "east.toml", market / "study.toml"
    file.write_text(file.read_text().replace('curators = ["curator"]', "curators = []"))
    study.write_text(study.read_text().replace("size = 30", 'size = 30\nalgorithm = "rounds"'))
    begin(market)
    assert "discloses no rows" in cli("run", study, expect=3).stderr
    with Ledger.open(market / "west.sqlite", OwnerKey.load(market / "west.key")) as ledger:
        assert ledger.spent("west") is None


def test_releases_travel_in_a_folder_and_an_owner_leaves_before_its_rows(market):
    """Matching needs releases alone, so a folder carries it; rows need owners that are at hand."""
    from privada import Mailbox, Owner
    from privada.exceptions import Waiting
    from privada.methods.summarization import Curator, FourierEmbedding, Matching, OwnerNode, gather, match

    class Gone(OwnerNode):
        def disclose(self, question, to):
            raise ConnectionError

    budget = ApproxDP(epsilon=1.0, delta=1e-4, relation="replace-one")
    embedding = FourierEmbedding.of(width=2, n_features=40, gamma=0.5, random_state=0)
    matching = Matching(embedding=embedding, size=30, validation=budget, owners=budget)
    begin(market)
    folder = Mailbox.open(market / "exchange")
    parties = {name: Owner.from_toml(market / f"{name}.toml") for name in ("hospital", "east", "west")}
    for _ in range(3):
        with pytest.raises(Waiting):
            folder.learn(match("hospital", 100, {"east": 200, "west": 200}, matching))
        for name, owner in parties.items():
            folder.answer(name, owner)
    allocation = folder.learn(match("hospital", 100, {"east": 200, "west": 200}, matching))
    assert allocation.rows["east"] > 20
    for kind, sources, points in ((OwnerNode, {"east", "west"}, 250), (Gone, {"east"}, 200)):
        nodes = {"east": OwnerNode("east", parties["east"]), "west": kind("west", parties["west"])}
        summary = Curator().drive(gather(allocation.resized(250), matching), nodes)
        assert set(summary.owner) == sources
        assert summary.points_seen == len(summary) == points
    assert [each.owner for each in summary.allocation.absent] == ["west"]
    for owner in parties.values():
        owner.ledger.close()
    lines = Ledger.open(market / "east.sqlite", OwnerKey.load(market / "east.key")).lines("east")
    assert [line.kind for line in lines].count("charge") == 2
