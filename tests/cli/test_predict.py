"""``privada predict``: a saved model and a file of rows."""

import numpy as np
import pytest

import privada


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
