"""``privada forecast``: a table or JSON, and nothing is spent."""

import pytest

from privada.studies.example import write_example


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
