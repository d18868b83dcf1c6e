"""Coverage and correlation as figures."""

import pytest

from privada_lab.experiments.calibration import calibration_figures

PAIRS = [(0.1 * at, float(at**2)) for at in range(6)]


def test_both_figures_have_goals():
    covered, ordered = calibration_figures("cells", covered=[True, True, False], pairs=PAIRS, runs=2)
    assert covered.value == pytest.approx(2 / 3)
    assert not covered.met
    assert "of 3 outcomes" in covered.beside
    assert ordered.value == pytest.approx(1.0)
    assert ordered.met


def test_few_pairs_and_forecasts_that_are_all_alike_have_no_order():
    for pairs in (PAIRS[:4], [(0.5, each) for _, each in PAIRS]):
        assert list(calibration_figures("cells", covered=[], pairs=pairs, runs=1)) == []
