"""What is computed from a noisy table: rates, curves and areas, with intervals that hold."""

import math

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, roc_auc_score

from privada import Category, Owner, PureDP, Schema, run
from privada.exceptions import InputError
from privada.methods.evaluation import Classification, OutcomeCounts, even_edges, learn
from privada.methods.hypotheses import linear
from privada.privacy import ZCDP

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
