"""What a learner holds: its key, cards, question and release files, saved models."""

import stat
import tomllib

import numpy as np
import pytest

import privada
from privada import Owner
from privada.parties.permissions import LearnerCard
from privada.privacy import LearnerKey, OwnerKey


def test_a_key_and_a_card(cli, tmp_path):
    made = cli.json("learner", "init", "alice", "--organisation", "Süd & Co", "--folder", tmp_path)
    key = LearnerKey.load(tmp_path / "alice.key")
    assert stat.S_IMODE((tmp_path / "alice.key").stat().st_mode) == 0o600
    card = LearnerCard.read(tmp_path / "alice.toml")
    assert card == LearnerCard(name="alice", organisation="Süd & Co", public_key=key.public)
    assert made["public_key"] == key.public
    assert "existing" not in cli("learner", "init", "alice", "--folder", tmp_path, expect=2).stderr
    assert LearnerKey.load(tmp_path / "alice.key") == key


def test_what_is_printed_can_be_pasted(cli, tmp_path):
    said = cli("learner", "init", "bob", "--folder", tmp_path).stdout
    pasted = tomllib.loads(said[said.index("[[learners]]") :])
    assert pasted["learners"] == [{"name": "bob", "key": LearnerKey.load(tmp_path / "bob.key").public}]


def test_a_passphrase(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("PRIVADA_KEY_PASSPHRASE", "correct horse")
    cli("learner", "init", "alice", "--folder", tmp_path, "--passphrase")
    assert b"ENCRYPTED" in (tmp_path / "alice.key").read_bytes()


@pytest.mark.parametrize("name", ["../alice", "a/b", "", ".alice", "a\nb", "x" * 65])
def test_a_name_is_no_path(cli, tmp_path, name):
    assert "Expected NAME" in cli("learner", "init", "--folder", tmp_path, "--", name, expect=2).stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["dummy.csv", "dummy.parquet"])
def test_dummy_rows_fit_the_owner_whose_card_it_is(cli, home, edit, tmp_path, name):
    card, out = home / "schema.toml", tmp_path / name
    cli("owner", "schema", home / "clinic/owner.toml", "--out", card)
    told = cli.json("card", "dummy", card, "--rows", 50, "--out", out)
    assert (told["cost"], told["rows"], told["private"]) == (0, 50, False)
    Owner.from_toml(home / "clinic/owner.toml")
    edit("clinic/owner.toml", 'path = "', f'path = "{out}" # "')
    Owner.from_toml(home / "clinic/owner.toml")


def test_it_says_what_the_rows_are_and_overwrites_nothing(cli, home, tmp_path):
    card, out = home / "schema.toml", tmp_path / "dummy.csv"
    cli("owner", "schema", home / "clinic/owner.toml", "--out", card)
    said = " ".join(cli("card", "dummy", card, "--out", out).stdout.split())
    assert "no private row was read, and nothing was charged" in said
    assert "exists" in cli("card", "dummy", card, "--out", out, expect=2).stderr
    assert "Expected --out" in cli("card", "dummy", card, "--out", tmp_path / "x.txt", expect=2).stderr
    assert (
        "no file" in cli("card", "dummy", tmp_path / "no.toml", "--out", tmp_path / "x.csv", expect=2).stderr
    )


@pytest.fixture
def asked(cli, home, exchange):
    cli("ask", "cells", home / "study.toml", "--folder", exchange, expect=4)
    (file,) = (exchange / "questions/clinic").glob("*.question")
    return file


def test_a_question_says_what_comes_back_how_noisy_and_for_how_much(cli, asked):
    text = " ".join(cli("question", "show", asked).stdout.split())
    assert "noisy numbers, no row." in text
    assert "It costs ε = 1 (pure), add/remove one row." in text
    assert "whether one row is in it" in text
    assert "74 of 100" in text
    assert "counts" in text
    plain = cli.json("question", "show", asked)
    (part,) = [part for part in plain["parts"] if part["name"] == "counts"]
    assert part["within"] in text
    assert f": {sum(part['numbers'] for part in plain['parts'])} noisy" in plain["asked"]
    assert plain["guarantee"]["relation"] == "add/remove"


def test_a_file_that_is_no_question_ends_with_5(cli, asked):
    asked.write_bytes(asked.read_bytes()[:-1])
    cli("question", "show", asked, expect=5)


@pytest.fixture
def answered(cli, home, tmp_path):
    exchange = tmp_path / "exchange"
    cli("ask", "cells", home / "study.toml", "--folder", exchange, expect=4)
    cli("answer", home / "clinic/owner.toml", "--folder", exchange, "--name", "clinic")
    (release,) = (exchange / "releases/clinic").glob("*.release")
    (question,) = (exchange / "questions/clinic").glob("*.question")
    return release, question


def test_a_release_explains_itself(cli, answered):
    release, question = answered
    text = cli("release", "show", release, "--question", question).stdout
    assert "each within ±3 with 95% confidence" in text
    plain = cli.json("release", "show", release, "--confidence", "0.5")
    low, high = plain["intervals"]["counts"]
    assert low[0][0] < plain["values"]["counts"][0][0] < high[0][0]


def test_what_does_not_hold_ends_with_5(cli, home, answered, tmp_path):
    release, _ = answered
    key = OwnerKey.generate().public
    assert "another owner's key" in cli("release", "show", release, "--public-key", key, expect=5).stderr
    other = home / "study.toml"
    other.write_text(other.read_text().replace("again = 0", "again = 9"))
    cli("ask", "cells", other, "--folder", tmp_path / "other", expect=4)
    (question,) = (tmp_path / "other/questions/clinic").iterdir()
    assert "another question" in cli("release", "show", release, "--question", question, expect=5).stderr
    blob = bytearray(release.read_bytes())
    blob[-1] ^= 1
    release.write_bytes(bytes(blob))
    cli("release", "show", release, expect=5)


@pytest.fixture
def model(tmp_path):
    X = np.random.default_rng(77).uniform(size=(300, 1))
    made = privada.CellClassifier([[0.0], [1.0]], classes=("no", "yes"), bounds=(0, 1), epsilon=4)
    return made.fit(X, np.where(X[:, 0] > 0.5, "yes", "no")).save(tmp_path / "model.privada")


def test_predictions_are_printed_or_written(cli, model, tmp_path):
    (tmp_path / "rows.csv").write_text("0.1\n0.9\n")
    said = cli("predict", model, tmp_path / "rows.csv").stdout
    assert [line.split(",")[0] for line in said.splitlines()] == ["prediction", "no", "yes"]
    cli("predict", model, tmp_path / "rows.csv", "--out", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == said
    plain = cli.json("predict", model, tmp_path / "rows.csv")
    assert [row[0] for row in plain["rows"]] == ["no", "yes"]


def test_nothing_is_overwritten_and_bad_files_are_named(cli, model, tmp_path):
    (tmp_path / "rows.csv").write_text("0.1,0.2\n")
    assert "rows of 1 columns" in cli("predict", model, tmp_path / "rows.csv", expect=2).stderr
    assert (
        "is not overwritten" in cli("predict", model, tmp_path / "rows.csv", "--out", model, expect=2).stderr
    )
    assert "truncated" in cli("predict", tmp_path / "rows.csv", tmp_path / "rows.csv", expect=5).stderr


def test_rows_may_be_written_the_german_way(cli, model, tmp_path):
    (tmp_path / "rows.csv").write_text("Größe;Alter\n0,1;2\n0,9;3\n", encoding="cp1252")
    options = ("--delimiter", ";", "--decimal", ",")
    wrong = cli("predict", model, tmp_path / "rows.csv", *options, expect=2)
    assert "not text in the encoding utf-8" in wrong.stderr
    (tmp_path / "rows.csv").write_text("0,1\n0,9\n")
    said = cli("predict", model, tmp_path / "rows.csv", *options).stdout
    assert [line.split(",")[0] for line in said.splitlines()] == ["prediction", "no", "yes"]


def test_a_model_of_a_study_reads_its_columns_as_they_are_declared(cli, home, tmp_path):
    cli("run", home / "study.toml", "--model", tmp_path / "model.privada")
    rows = tmp_path / "rows.csv"
    rows.write_text("Notiz;marker_b;marker_a\nfrüh;4,5;6,1\nspät;7,8;7,3\n", encoding="cp1252")
    refused = cli("predict", tmp_path / "model.privada", rows, "--encoding", "cp1252", expect=2).stderr
    assert "there is no marker_a" in refused
    assert "--delimiter" in refused
    options = ("--delimiter", ";", "--decimal", ",", "--encoding", "cp1252")
    said = cli("predict", tmp_path / "model.privada", rows, *options).stdout.splitlines()
    assert [line.split(",")[0] for line in said] == ["prediction", "well", "ill"]
