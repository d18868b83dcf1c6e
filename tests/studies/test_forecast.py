"""Forecasts of studies: before anything is spent, better with more budget, and without a private row."""

import pytest

from privada.exceptions import InputError
from privada.privacy.guarantee import ZCDP, ApproxDP, PureDP
from privada.studies import Study
from privada.studies.example import example_methods, write_example
from privada.studies.forecast import forecast_study, scale


@pytest.mark.filterwarnings("ignore::privada.exceptions.PrivadaWarning")
@pytest.mark.parametrize("name", example_methods())
def test_more_budget_is_never_expected_to_be_worse_and_no_private_row_is_looked_at(name, tmp_path):
    write_example(tmp_path, name=name)
    for rows in tmp_path.glob("*/rows.csv"):
        rows.unlink()
    found = forecast_study(Study.read(tmp_path / "study.toml"), factors=(0.25, 4.0))
    ratios = [each.forecast.ratio for each in found]
    assert len(ratios) == 2
    assert ratios == sorted(ratios, reverse=True)
    widths = [max(each.half_widths.values()) for each in found]
    assert widths == sorted(widths, reverse=True)


@pytest.mark.filterwarnings("ignore::privada.exceptions.PrivadaWarning")
@pytest.mark.parametrize("name", ["cells", "evaluation", "summarization"])
@pytest.mark.parametrize("factor", [1e-4, 40.0])
def test_extreme_budgets_have_a_forecast_too(name, factor, tmp_path):
    write_example(tmp_path, name=name)
    (found,) = forecast_study(Study.read(tmp_path / "study.toml"), factors=(factor,))
    assert found.forecast.worthwhile is (factor > 1)


def test_a_question_without_a_forecast_still_knows_its_noise(tmp_path):
    write_example(tmp_path, name="transport")
    study = tmp_path / "study.toml"
    study.write_text(study.read_text() + 'rescale = "unit"\n')
    found = forecast_study(Study.read(study), factors=(1.0,))
    assert found[0].forecast is None
    assert found[0].half_widths


def test_a_budget_is_scaled_in_its_own_currency():
    assert scale(PureDP(epsilon=1, relation="add/remove"), 2.0).epsilon == 2
    assert scale(ApproxDP(epsilon=1, delta=1e-5, relation="add/remove"), 0.5).delta == 1e-5
    assert scale(ZCDP(rho=0.5, relation="add/remove"), 2.0).rho == 2.0
    with pytest.raises(InputError, match="factor"):
        scale(PureDP(epsilon=1, relation="add/remove"), 0.0)
