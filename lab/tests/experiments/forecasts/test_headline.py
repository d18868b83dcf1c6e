"""``privada reproduce forecasts`` as a whole, for methods that take little time."""

import pytest

from privada.exceptions import InputError
from privada.report.exhibit import Bands, Figure
from privada_lab.experiments.forecasts import run


def test_figures_and_pictures_of_the_methods_that_are_asked_for():
    items = list(run(runs=1, only=("evaluation", "cells"), quick=True))
    figures = {each.figure: each for each in items if isinstance(each, Figure)}
    assert set(figures) == {
        f"forecast_{what}_{method}"
        for what in ("coverage", "correlation")
        for method in ("cells", "evaluation")
    }
    # the law of the counts' noise is known: of 12 outcomes, 4 or more lie outside once in a hundred runs
    assert figures["forecast_coverage_cells"].value > 0.5
    assert figures["forecast_correlation_evaluation"].met
    assert [each.title for each in items if isinstance(each, Bands)] == [
        "Forecast and outcome of cells",
        "Forecast and outcome of evaluation",
    ]


def test_a_method_that_is_not_known_is_named():
    with pytest.raises(InputError, match="--only to be one of cells"):
        next(run(runs=1, only=("cell",)))
