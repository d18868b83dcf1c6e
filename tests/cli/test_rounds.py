"""Studies that ask in rounds: all of them can be paid, or nothing is charged."""

import re

import numpy as np
import pytest

from privada.parties.owner_file import OwnerFile
from privada.privacy import Ledger, OwnerKey

OWNER = """
[data]
name = "patients"
path = "patients.csv"

[privacy]
relation = "replace-one"
epsilon = 2.0
delta = 1e-5

[ledger]
url = "ledger.sqlite"
key = "owner.key"

[schema]
size = 400

[[schema.columns]]
name = "a"
low = -1.0
high = 1.0

[[schema.columns]]
name = "b"
low = -1.0
high = 1.0

[schema.label]
name = "y"
low = -1.0
high = 1.0
"""
STUDY = """
[study]
title = "Adapt to the clinic"

[owners.clinic]
owner = "owner.toml"

[budget]
epsilon = 2.0
delta = 1e-5

[method]
name = "reweighting"
source = "source.csv"
"""


@pytest.fixture
def clinic(tmp_path):
    rng = np.random.default_rng(0)
    for name, centre, size in (("source.csv", 0.0, 300), ("patients.csv", 0.3, 400)):
        X = np.clip(rng.normal(centre, 0.6, size=(size, 2)), -1, 1)
        rows = np.column_stack([X, np.clip(X @ [0.8, -0.4], -1, 1)])
        header = "" if name == "source.csv" else "a,b,y"
        np.savetxt(tmp_path / name, rows, delimiter=",", fmt="%.6f", header=header, comments="")
    key = OwnerKey.generate()
    key.save(tmp_path / "owner.key")
    Ledger.open(tmp_path / "ledger.sqlite", key).close()
    (tmp_path / "owner.toml").write_text(OWNER)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


def change(file, before, after):
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def gaussian(clinic):
    change(clinic / "owner.toml", "delta = 1e-5", 'delta = 1e-5\naccounting = "gaussian"')


def begin(clinic):
    """Open the budget that the owner's file names by now."""
    OwnerFile.read(clinic / "owner.toml").open_budget()


def opened(clinic):
    """The data sets whose budgets are opened: those that were charged, and more."""
    with Ledger.open(clinic / "ledger.sqlite", OwnerKey.load(clinic / "owner.key")) as ledger:
        return ledger.datasets()


def left(cli, clinic):
    return cli.json("ledger", "show", clinic / "owner.toml")["datasets"]["patients"]["left"]


def test_gaussian_rounds_use_up_a_gaussian_budget(cli, clinic):
    gaussian(clinic)
    found = cli.json("price", clinic / "study.toml")
    assert found["prices"][0]["share"] == pytest.approx(0.25)
    assert found["together"]["clinic"]["share"] == pytest.approx(1.0)
    assert found["together"]["clinic"]["verdict"] == "all rounds would be answered"
    begin(clinic)
    kinds = [release["kind"] for release in cli.json("run", clinic / "study.toml")["releases"]]
    assert kinds[0] == "reweighting.mixture"
    assert kinds[-1] == "reweighting.linear"
    assert left(cli, clinic) == pytest.approx(0.0, abs=1e-6)


def test_the_default_accounting_refuses_before_anything_is_charged(cli, clinic):
    """The parts compose as Gaussians to the budget, but a filter at one Rényi order loses a little."""
    study, exchange = clinic / "study.toml", clinic / "exchange"
    for words in (("run", study), ("ask", "reweighting", study, "--folder", exchange)):
        refused = cli(*words, expect=3)
        assert 'accounting = "gaussian" or a larger budget in the owner\'s file' in refused.stderr
        assert refused.stderr.rstrip().endswith("Nothing was charged.")
    assert opened(clinic) == ()
    assert not list(exchange.rglob("*.question"))
    gaussian(clinic)
    begin(clinic)
    cli("run", study)


def test_the_largest_guarantee_that_a_refusal_names_is_paid(cli, clinic):
    study = clinic / "study.toml"
    said = cli("run", study, expect=3).stderr
    (largest,) = re.findall(r"at most \(ε = ([\d.]+), δ = 1e-05\), replace-one row, in all", said)
    assert 1.5 < float(largest) < 2
    change(study, "epsilon = 2.0", f"epsilon = {largest}")
    begin(clinic)
    cli("run", study)
    assert 0 <= left(cli, clinic) < 2e-3


def test_price_says_that_later_rounds_would_be_refused(cli, clinic):
    found = cli.json("price", clinic / "study.toml", expect=3)
    assert found["prices"][0]["verdict"] == "would be answered"
    together = found["together"]["clinic"]
    assert together["share"] > together["left"] == 1.0
    assert "all questions together would take" in together["verdict"]
    assert "all questions together would take" in cli("price", clinic / "study.toml", expect=3).stdout
    assert opened(clinic) == ()


def test_rounds_through_a_folder(cli, clinic):
    """The rounds that were answered are not counted against those to come."""
    gaussian(clinic)
    begin(clinic)
    study, exchange = clinic / "study.toml", clinic / "exchange"
    for _ in range(2):
        cli("ask", "reweighting", study, "--folder", exchange, expect=4)
        cli("answer", clinic / "owner.toml", "--folder", exchange, "--name", "clinic")
    cli("ask", "reweighting", study, "--folder", exchange)
    plain = cli.json("learn", "reweighting", study, "--folder", exchange)
    assert len(plain["releases"]) == 2
    assert 0 <= left(cli, clinic) < 1e-3
    assert plain["result"]["questions"] == ["reweighting.mixture", "reweighting.linear"]


def test_a_card_tells_no_accounting(cli, clinic):
    cli("owner", "schema", clinic / "owner.toml", "--out", clinic / "schema.toml")
    change(clinic / "study.toml", 'owner = "owner.toml"', 'schema = "schema.toml"')
    verdict = cli.json("price", clinic / "study.toml")["together"]["clinic"]["verdict"]
    assert "only its owner can say" in verdict
    assert 'pays with accounting = "gaussian".' in verdict


def test_what_is_left_must_pay_for_all_rounds(cli, clinic):
    gaussian(clinic)
    study = clinic / "study.toml"
    change(study, "epsilon = 2.0", "epsilon = 1.6")
    begin(clinic)
    cli("run", study)
    before = left(cli, clinic)
    cli("run", study)
    assert left(cli, clinic) == before, "the same study again is paid for"
    change(study, "[study]", "[study]\nagain = 1")
    refused = cli("run", study, expect=3).stderr
    assert "accounting" not in refused
    assert "to ask for at most (ε =" in refused
    assert left(cli, clinic) == before


def test_an_owner_whose_key_is_elsewhere_is_asked_all_the_same(cli, clinic):
    (clinic / "owner.key").unlink()
    cli("ask", "reweighting", clinic / "study.toml", "--folder", clinic / "exchange", expect=4)
    assert list((clinic / "exchange").rglob("*question*"))
