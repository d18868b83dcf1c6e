"""Before anything is asked: which method fits, what a question costs, what a study may expect."""

import pytest

from privada import CellStatistics, NearestCells, PureDP
from privada.studies.example import write_example


@pytest.mark.parametrize(
    ("said", "method"),
    [
        (("--want", "model", "--private", "target", "--yours", "labelled"), "reweighting"),
        (("--want", "model", "--private", "target", "--yours", "unlabelled"), "marginals"),
        (("--want", "model", "--private", "source"), "transport"),
        (("--want", "points"), "clustering"),
        (("--want", "rows"), "summarization"),
        (("--want", "counts"), "cells"),
    ],
)
def test_a_complete_answer_names_one_method(cli, said, method):
    assert [each["name"] for each in cli.json("advise", *said)["methods"]] == [method]
    assert f"privada init DIR --method {method}" in cli("advise", *said).stdout


def test_a_model_is_scored_by_evaluation(cli):
    assert "privada init DIR --method evaluation" in cli("advise", "--want", "score").stdout


def test_what_is_missing_or_wrong_is_named(cli):
    assert "--want: say one of model, points" in cli("advise", expect=2).stderr
    assert "--private: say one of target, source" in cli("advise", "--want", "model", expect=2).stderr
    assert "want" in cli("advise", "--want", "money", expect=2).stderr


def test_a_study_is_priced_without_a_trace(cli, home):
    (row,) = cli.json("price", home / "study.toml")["prices"]
    assert row["share"] == pytest.approx(0.25)
    assert row["left"] == 1.0
    assert row["half_widths"]["counts"] == pytest.approx(3, abs=0.5)
    (line,) = cli.json("ledger", "show", home / "clinic/owner.toml")["datasets"]["patients"]["lines"]
    assert line["kind"] == "budget"
    assert "25%" in cli("price", home / "study.toml").stdout


def test_price_says_what_the_owner_would_refuse(cli, home, edit):
    for number in range(4):
        cli("run", home / "study.toml")
        edit("study.toml", f"again = {number}", f"again = {number + 1}")
    (row,) = cli.json("price", home / "study.toml", expect=3)["prices"]
    assert row["left"] == 0.0
    assert "Nothing was charged" in row["verdict"]
    edit("study.toml", "epsilon = 1.0", "epsilon = 400.0")
    cli("price", home / "study.toml", expect=3)


def test_a_question_that_was_answered_is_free_and_not_too_cheap(cli, home):
    cli("run", home / "study.toml")
    (row,) = cli.json("price", home / "study.toml")["prices"]
    assert row["share"] == 0.0
    assert row["verdict"] == "was answered before; the same release is free"


def test_numbered_draws_of_the_same_noise_are_a_range(cli, tmp_path):
    write_example(tmp_path, name="marginals")
    printed = cli("price", tmp_path / "study.toml").stdout
    assert "gradient_0 to gradient_79" in " ".join(printed.split())
    assert "gradient_1 " not in printed


def test_a_learner_elsewhere_sees_the_guarantee_only(cli, home, edit):
    cli("owner", "schema", home / "clinic/owner.toml", "--out", home / "schema.toml")
    edit("study.toml", 'owner = "clinic/owner.toml"', 'schema = "schema.toml"')
    (row,) = cli.json("price", home / "study.toml")["prices"]
    assert row["share"] is None
    assert row["verdict"] == "only its owner can say"


def test_wrong_files(cli, home, tmp_path):
    assert "there is no file" in cli("price", "nowhere.question", expect=2).stderr
    (tmp_path / "junk.question").write_bytes(b"junk")
    assert "not a privada file" in cli("price", tmp_path / "junk.question", expect=5).stderr
    assert "--owner goes with" in cli("price", home / "study.toml", "--owner", "x.toml", expect=2).stderr


def test_a_study_of_rounds_names_what_all_of_them_ask_for(cli, home, edit):
    assert cli.json("price", home / "study.toml")["in_all"] == {}
    edit("clinic/owner.toml", 'methods = ["cells"]', 'methods = ["marginals"]')
    edit(
        "study.toml",
        'name = "cells"\ncenters = "centers.csv"\nby_label = true',
        'name = "marginals"\nsource = "centers.csv"\nsize = 1200\nrounds = 2',
    )
    found = cli.json("price", home / "study.toml")
    (row,) = found["prices"]
    assert row["share"] < 0.25
    assert found["in_all"]["clinic"]["epsilon"] == 1.0
    assert "all together ask for at most ε = 1 (pure), add/remove" in cli("price", home / "study.toml").stdout
    cli("run", home / "study.toml")
    spent = cli.json("ledger", "show", home / "clinic/owner.toml")["datasets"]["patients"]
    assert spent["left"] == pytest.approx(0.75)
    edit("clinic/owner.toml", "largest_share = 0.25", "largest_share = 1.0")
    edit("study.toml", "epsilon = 1.0", "epsilon = 4.0")  # half of it in each round, of 3 that are left
    found = cli.json("price", home / "study.toml", expect=3)
    assert found["prices"][0]["verdict"] == "would be answered"
    assert "to ask for at most ε = 3 (pure)" in found["together"]["clinic"]["verdict"]
    assert "to ask for at most ε = 3 (pure)" in cli("run", home / "study.toml", expect=3).stderr
    after = cli.json("ledger", "show", home / "clinic/owner.toml")["datasets"]["patients"]
    assert after["lines"] == spent["lines"]
    edit("study.toml", "epsilon = 4.0", "epsilon = 3.0")
    cli("run", home / "study.toml")


def test_a_learner_sees_what_is_left_of_its_allowance(cli, home):
    owner, study = home / "clinic/owner.toml", home / "study.toml"
    learners = f'\n[[learners]]\nname = "alice"\nkey = "{"ab" * 32}"\nallowance = {{ epsilon = 1.5 }}\n'
    owner.write_text(owner.read_text() + learners)
    assert cli.json("price", study)["prices"][0]["allowance"] is None
    (row,) = cli.json("price", study, "--learner", "alice")["prices"]
    assert row["allowance"]["share"] == pytest.approx(2 / 3)
    assert (row["allowance"]["left"], row["allowance"]["affordable"]) == (1.0, True)
    assert "of the allowance" in cli("price", study, "--learner", "alice").stdout
    assert "of the allowance" not in cli("price", study).stdout
    assert (
        "clinic: owner.toml lists no learner 'eve'"
        in cli("price", study, "--learner", "eve", expect=2).stderr
    )
    cli("owner", "allow", owner, "alice", "--epsilon", "0.5", "--by", "dora")
    lines = cli.json("ledger", "show", owner)
    (row,) = cli.json("price", study, "--learner", "alice", expect=3)["prices"]
    assert row["allowance"]["share"] == pytest.approx(2)
    assert row["verdict"].startswith("The allowance of 'alice' does not allow it")
    assert "a larger allowance of 'alice' from the owner" in row["verdict"]
    assert cli.json("ledger", "show", owner) == lines


def test_a_learner_is_one_of_an_owners_file(cli, home, tmp_path):
    question = tmp_path / "any.question"
    ask = CellStatistics(
        tables=(NearestCells(centers=[[2.0, 2.0]]),), guarantee=PureDP(epsilon=0.5, relation="add/remove")
    )
    question.write_bytes(ask.to_bytes())
    assert "--learner needs the owner.toml" in cli("price", question, "--learner", "alice", expect=2).stderr
    said = cli("price", question, "--owner", home / "clinic/owner.toml", "--learner", "alice", expect=2)
    assert "owner.toml lists no learner 'alice'" in said.stderr


@pytest.mark.filterwarnings("ignore::privada.exceptions.PrivadaWarning")
def test_a_forecast_says_what_it_is_compared_with_and_spends_nothing(cli, tmp_path):
    write_example(tmp_path, name="reweighting")
    shown = cli("forecast", tmp_path / "study.toml").stdout
    assert "100 % is the error of the public linear model." in shown
    plain = cli.json("forecast", tmp_path / "study.toml")
    assert [each["guarantee"].split(",")[0] for each in plain["outlooks"]][2] == "(ε = 1"
    assert all(each["forecast"]["low"] < each["forecast"]["high"] for each in plain["outlooks"])
    lines = cli.json("ledger", "show", tmp_path / "clinic/owner.toml")
    assert "charge" not in str(lines)


def test_counts_have_an_error_of_their_own(cli, home):
    shown = cli("forecast", home / "study.toml").stdout
    assert "The error is the share of rows that are counted in a wrong cell" in shown
    first = cli.json("forecast", home / "study.toml")["outlooks"][0]
    assert first["beside"] is None
    assert first["measure"].startswith("the share of rows")


def test_a_question_without_a_forecast_shows_its_noise(cli, tmp_path):
    write_example(tmp_path, name="transport")
    study = tmp_path / "study.toml"
    study.write_text(study.read_text() + 'rescale = "unit"\n')
    assert "has no forecast of its error" in cli("forecast", study).stdout
