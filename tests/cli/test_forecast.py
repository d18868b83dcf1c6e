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


def test_a_method_without_one_says_so(cli, home):
    assert "no forecast of its error" in cli("forecast", home / "study.toml").stdout
