"""Results from noisy tables and sums: rates, curves, errors and forecasts, with intervals that hold."""

import math

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, roc_auc_score

from privada import Category, Number, Owner, PureDP, Schema, evaluate, run
from privada.exceptions import InputError
from privada.methods.evaluation import (
    Classification,
    ErrorMoments,
    OutcomeCounts,
    Regression,
    even_edges,
    learn,
)
from privada.methods.evaluation.estimator import PrivateEvaluator, ask_about
from privada.methods.evaluation.example import ask
from privada.methods.evaluation.learner.results import forecast_interval, read_release
from privada.methods.hypotheses import linear
from privada.parties.one_process.process_ledger import public_rows
from privada.privacy import ZCDP
from privada.privacy.guarantee import ApproxDP

RNG = np.random.default_rng(2)
MODEL = linear([[4.0]], [-2.0])
SURE = PureDP(epsilon=200.0, relation="add/remove")  # hardly any noise


def world(rows, rng=RNG):
    """Scores are probabilities of the labels: the model is calibrated."""
    X = rng.uniform(size=(rows, 1))
    return X, (rng.uniform(size=rows) < 1 / (1 + np.exp(2 - 4 * X[:, 0]))).astype(int)


def evaluated(X, y, *, guarantee=SURE, bins=10, insecure_seed=None, hypothesis=MODEL, **settings):
    classes = settings.pop("classes", ("no", "yes"))
    schema = Schema.of_numbers(
        bounds=(0, 1), width=1, size=len(X), label=Category(name="y", values=tuple(range(len(classes))))
    )
    question = OutcomeCounts(
        hypothesis=hypothesis,
        n_classes=len(classes),
        edges=even_edges(bins) if bins > 1 else [],
        link="softmax",
        guarantee=guarantee,
        **settings,
    )
    owner = Owner(X, y=y, schema=schema, dataset="rows", budget=guarantee, insecure_seed=insecure_seed)
    return run(learn("owner", question, classes=classes, size=len(X)), {"owner": owner})


def test_without_noise_numbers_are_those_of_scikit_learn():
    X, y = world(4000)
    score = 1 / (1 + np.exp(2 - 4 * X[:, 0]))
    found = evaluated(X, y, bins=40)
    said = (score >= 0.5).astype(int)
    assert np.array_equal(found.confusion, confusion_matrix(y, said))
    assert found.accuracy.value == pytest.approx((said == y).mean())
    assert found.recalls[1].value == pytest.approx(said[y == 1].mean())
    assert found.precisions[0].value == pytest.approx(1 - y[said == 0].mean())
    assert found.auc.value == pytest.approx(roc_auc_score(y, score), abs=2e-3)
    for point in found.roc:
        assert point.true_positives.value == pytest.approx((score >= point.threshold)[y == 1].mean())
        assert point.false_positives.value == pytest.approx((score >= point.threshold)[y == 0].mean())
    for each in found.calibration:
        inside = (score >= each.low) & (score < each.high)
        assert each.rows == inside.sum()
        if inside.any():
            assert each.share.value == pytest.approx(y[inside].mean())


def test_a_curve_falls_with_its_threshold():
    found = evaluated(*world(2000))
    rates = [point.true_positives.value for point in found.roc]
    assert [point.threshold for point in found.roc] == sorted((p.threshold for p in found.roc), reverse=True)
    assert rates == sorted(rates)


@pytest.mark.statistical
@pytest.mark.filterwarnings("ignore::privada.exceptions.RehearsalWarning")
def test_intervals_hold_the_populations_numbers():
    """60 data sets of 400 rows at ε = 1: 95 % or more are held; fewer than 51 has a probability below 1e-3.

    For rates the proof says so; for the area, whose interval is normal, this is how it is known.
    """
    X, y = world(200_000)
    true = evaluated(X, y, bins=10)
    held = {"accuracy": 0, "auc": 0, "recall": 0}
    for seed in range(60):
        found = evaluated(
            *world(400, np.random.default_rng(seed)),
            guarantee=PureDP(epsilon=1.0, relation="add/remove"),
            insecure_seed=seed,
        )
        held["accuracy"] += found.accuracy.low <= true.accuracy.value <= found.accuracy.high
        held["auc"] += found.auc.low <= true.auc.value <= found.auc.high
        held["recall"] += found.recalls[0].low <= true.recalls[0].value <= found.recalls[0].high
    assert min(held.values()) >= 51, held


@pytest.mark.statistical
def test_fewer_bins_have_less_noise():
    """An accuracy adds up the entries of its table: of two bins 4, of forty 80."""
    X, y = world(3000)
    guarantee = ZCDP(rho=0.001, relation="add/remove")
    widths = {}
    for bins in (1, 40):
        found = evaluated(X, y, guarantee=guarantee, bins=bins).accuracy
        widths[bins] = found.high - found.low
    assert widths[40] > 1.5 * widths[1]


def test_size_is_used_only_where_it_is_the_true_one():
    X, y = world(500)
    assert evaluated(X, y).size is None
    assert evaluated(X, y, guarantee=PureDP(epsilon=200, relation="replace-one")).size == 500


def test_several_classes_have_a_curve_of_the_one_that_was_asked_for():
    X = RNG.uniform(size=(900, 1))
    y = np.minimum(2, (3 * X[:, 0] + RNG.normal(0, 0.3, 900)).clip(0).astype(int))
    three = linear([[-6.0, 0.0, 6.0]], [2.0, 1.5, -4.0])
    classes = ("low", "middle", "high")
    predicted = evaluated(X, y, hypothesis=three, classes=classes)
    with pytest.raises(InputError, match="positive="):
        predicted.roc
    assert "roc" not in predicted.to_dict()
    total = sum(each.rows for each in predicted.calibration)
    assert total == 900
    one = evaluated(X, y, hypothesis=three, classes=classes, positive=2)
    assert one.auc.value > 0.9
    assert set(one.to_dict()["recall"]) == set(classes)


def test_predictions_alone_have_no_curves():
    found = evaluated(*world(300), bins=1)
    assert found.accuracy.value > 0.5
    for name in ("roc", "auc", "calibration"):
        with pytest.raises(InputError, match="Scores were not asked for"):
            getattr(found, name)
    assert "calibration" not in found.to_dict()


@pytest.mark.filterwarnings("ignore::privada.exceptions.RehearsalWarning")
def test_much_noise_gives_wide_intervals_and_no_failure():
    found = evaluated(*world(50), guarantee=PureDP(epsilon=0.001, relation="add/remove"), insecure_seed=1)
    plain = found.to_dict()
    assert found.accuracy.high - found.accuracy.low > 0.5
    assert 0 <= found.auc.low <= found.auc.value <= found.auc.high <= 1
    assert all(math.isfinite(value) for row in plain["confusion"].values() for value in row.values())


def test_only_releases_and_the_right_classes_are_read():
    found = evaluated(*world(50))
    with pytest.raises(InputError, match="accepts Releases only"):
        Classification(question=found.question, release={"table": 1}, classes=("a", "b"))
    with pytest.raises(InputError, match="Expected 2 classes"):
        Classification(question=found.question, release=found.release, classes=("a", "b", "c"))


MODEL_REGRESSION = linear([[2.0]], [0.0])
SURE_REGRESSION = PureDP(epsilon=500.0, relation="add/remove")


def world_regression(rows, rng):
    X = rng.uniform(size=(rows, 1))
    return X, 2 * X[:, 0] + rng.normal(0, 0.3, size=rows)


def evaluated_regression(X, y, *, guarantee=SURE_REGRESSION, largest=1.0, insecure_seed=None):
    schema = Schema.of_numbers(bounds=(0, 1), width=1, size=len(X), label=Number(name="y", low=-2, high=4))
    question = ErrorMoments(hypothesis=MODEL_REGRESSION, largest=largest, guarantee=guarantee)
    owner = Owner(X, y=y, schema=schema, dataset="rows", budget=guarantee, insecure_seed=insecure_seed)
    return run(learn("owner", question, size=len(X)), {"owner": owner})


def test_without_noise_it_is_the_mean_squared_error():
    X, y = world_regression(2000, np.random.default_rng(0))
    found = evaluated_regression(X, y)
    true = np.minimum((2 * X[:, 0] - y) ** 2, 1).mean()
    assert found.squared_error.value == pytest.approx(true, rel=0.02)
    assert found.root.value == pytest.approx(np.sqrt(true), rel=0.02)
    assert found.root.low < found.root.value < found.root.high
    assert set(found.to_dict()) == {"guarantee", "stamps", "squared_error", "root_squared_error", "rows"}


@pytest.mark.statistical
@pytest.mark.filterwarnings("ignore::privada.exceptions.RehearsalWarning")
@pytest.mark.parametrize("relation", ["add/remove", "replace-one"])
def test_the_interval_holds_the_populations_error(relation):
    """80 data sets of 500 rows at ε = 1, 95 % nominal: fewer than 68 has a probability below 1e-3."""
    true = 0.09  # the variance of the labels' noise; clipping at 1 cuts off 1e-4 of it
    held = 0
    for seed in range(80):
        found = evaluated_regression(
            *world_regression(500, np.random.default_rng(seed)),
            guarantee=PureDP(epsilon=1.0, relation=relation),
            insecure_seed=seed,
        ).squared_error
        held += found.low <= true <= found.high
    assert held >= 68


def test_under_replacement_the_size_is_needed_and_used():
    X, y = world_regression(200, np.random.default_rng(1))
    found = evaluated_regression(X, y, guarantee=PureDP(epsilon=500, relation="replace-one"))
    assert found.rows == 200
    with pytest.raises(InputError, match="Expected size"):
        Regression(question=found.question, release=found.release)


def test_much_noise_stays_within_the_bounds():
    X, y = world_regression(20, np.random.default_rng(1))
    found = evaluated_regression(X, y, guarantee=PureDP(epsilon=0.001, relation="add/remove"), largest=36.0)
    assert 0 <= found.squared_error.low <= found.squared_error.value <= found.squared_error.high <= 36


PURE = PureDP(epsilon=1.0, relation="add/remove")


def test_one_question_is_asked():
    learner = learn("clinic", ask(PURE)).start()
    asked = next(learner)
    assert (asked.owner, asked.question) == ("clinic", ask(PURE))
    with pytest.raises(InputError, match="accepts Releases only"):
        learner.send(3)


def test_other_questions_are_refused():
    with pytest.raises(InputError, match="a question of evaluation"):
        read_release("counts", None)


RNG_FORECAST = np.random.default_rng(0)
X = RNG_FORECAST.uniform(size=(2000, 1))
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
    y = np.clip(5 + RNG_FORECAST.normal(0, 2, size=len(X)), 0, 10)
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


X_PICTURES = np.random.default_rng(31).uniform(size=(500, 1))
THREE = linear([[-6.0, 0.0, 6.0]], [2.0, 1.5, -4.0])


def test_two_classes_have_three_panels(tmp_path):
    pytest.importorskip("matplotlib")
    y = np.where(X_PICTURES[:, 0] > 0.5, "$yes", "no_")
    found = evaluate(
        linear([[8.0]], [-4.0]), X_PICTURES, y, classes=("no_", "$yes"), bounds=(0, 1), epsilon=1.0
    )
    figure = found.plot()
    assert len(figure.axes) == 3
    assert str(found.guarantee) in figure.get_suptitle()
    figure.savefig(tmp_path / "evaluation.png")


@pytest.mark.filterwarnings("ignore::privada.exceptions.PrivacyLeakWarning")
@pytest.mark.parametrize(("settings", "panels"), [({"bins": 1}, 1), ({}, 2), ({"positive": 2}, 3)])
def test_panels_are_what_was_asked_for(settings, panels):
    pytest.importorskip("matplotlib")
    y = np.minimum(2, (3 * X_PICTURES[:, 0]).astype(int))
    found = evaluate(THREE, X_PICTURES, y, classes=(0, 1, 2), bounds=(0, 1), epsilon=2.0, **settings)
    assert len(found.plot().axes) == panels
