"""The forecast of an evaluation: half the width of the interval that comes."""

import numpy as np
import pytest

from privada.methods.evaluation.estimator import PrivateEvaluator, ask_about
from privada.methods.evaluation.learner.forecast import forecast_interval
from privada.methods.hypotheses.forms import linear
from privada.parties.one_process.process_ledger import public_rows
from privada.parties.schema import Category, Number, Schema
from privada.privacy.guarantee import ApproxDP, PureDP

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(2000, 1))
CLASSES = Category(name="ill", values=("no", "yes"))
DAYS = Number(name="days", low=0, high=10)


def asking(label, guarantee, model):
    return ask_about(model, Schema.of_numbers(bounds=(0, 1), width=1, label=label), guarantee=guarantee)


@pytest.mark.filterwarnings("ignore::privada.exceptions.RehearsalWarning")
@public_rows()
@pytest.mark.parametrize("size", [200, 2000])
@pytest.mark.parametrize("relation", ["add/remove", "replace-one"])
@pytest.mark.parametrize("flips", [0.05, 0.3])
def test_the_accuracys_interval_is_about_as_wide_as_was_forecast(size, relation, flips):
    wrong = np.random.default_rng(1).random(size) < flips
    y = np.where((X[:size, 0] > 0.5) ^ wrong, "yes", "no")
    model = linear([[9.0]], [-4.5])
    settings = {"classes": CLASSES.values, "bounds": (0, 1), "epsilon": 1.0, "relation": relation}
    public = size if relation == "replace-one" else None
    found = PrivateEvaluator(model, size=public, insecure_seed=0, **settings).fit(X[:size], y).evaluation_
    question = asking(CLASSES, PureDP(epsilon=1.0, relation=relation), model)
    forecast = forecast_interval(question, size=size)
    assert forecast.low <= (found.accuracy.high - found.accuracy.low) / 2 <= forecast.high
    assert "accuracy" in forecast.measure


@pytest.mark.filterwarnings("ignore::privada.exceptions.RehearsalWarning")
@public_rows()
def test_the_squared_errors_interval_is_about_as_wide_as_was_forecast():
    y = np.clip(5 + RNG.normal(0, 2, size=len(X)), 0, 10)
    model = linear([[0.0]], [5.0])
    settings = {"label_bounds": (0, 10), "bounds": (0, 1), "epsilon": 1.0, "insecure_seed": 0}
    found = PrivateEvaluator(model, **settings).fit(X, y).evaluation_.squared_error
    forecast = forecast_interval(asking(DAYS, PureDP(epsilon=1.0, relation="add/remove"), model), size=len(X))
    assert forecast.low <= (found.high - found.low) / 2 / 100 <= forecast.high


@pytest.mark.parametrize(("label", "bias"), [(CLASSES, [-4.5]), (DAYS, [5.0])])
def test_it_narrows_with_rows_and_budget(label, bias):
    model = linear([[9.0]], bias)
    questions = [
        asking(label, ApproxDP(epsilon=epsilon, delta=1e-6, relation="replace-one"), model)
        for epsilon in (0.1, 4.0)
    ]
    ratios = [forecast_interval(question, size=size).ratio for question in questions for size in (100, 5000)]
    assert ratios[0] > ratios[1] > ratios[3]
    assert ratios[0] > ratios[2] > ratios[3]
    looser = forecast_interval(questions[1], size=100, confidence=0.5)
    assert looser.ratio < ratios[2]
    assert "50%" in looser.measure
