"""Estimators of a frame with text, dates and gaps, which a schema describes."""

import numpy as np
import pytest
from sklearn.utils import estimator_html_repr

from privada import (
    Category,
    CellClassifier,
    Date,
    MarginalClassifier,
    MarginalRegressor,
    Number,
    PrivateSummarizer,
    ReweightedClassifier,
    ReweightedRegressor,
    Schema,
    TransportClassifier,
    load,
)
from privada.exceptions import InputError

pytestmark = pytest.mark.filterwarnings("ignore::privada.exceptions.PrivadaWarning")

COLUMNS = [
    Number(name="age", low=0, high=100, missing=True),
    Category(name="ward", values=("A", "B"), missing=True),
    Date(name="seen", first="2024-01-01", last="2025-12-31", missing=True),
]
CLASSES = Schema(columns=COLUMNS, label=Category(name="ill", values=("no", "yes")))
NUMBERS = Schema(columns=COLUMNS, label=Number(name="stay", low=0, high=100))
BUDGET = {"epsilon": 1, "delta": 1e-5, "insecure_seed": 0}


def draw_patients(n, seed):
    """A frame of patients, whether they are ill, and how long they stay."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    ages = rng.uniform(0, 100, n)
    days = pandas.to_datetime("2024-01-01") + pandas.to_timedelta(rng.integers(0, 700, n), "D")
    frame = pandas.DataFrame({"age": ages, "ward": rng.choice(["A", "B"], n), "seen": days})
    frame.loc[:9, "age"], frame.loc[10:19, "ward"], frame.loc[20:29, "seen"] = np.nan, None, None
    return frame, np.where(ages > 50, "yes", "no"), ages


THEIRS, ILL, STAY = 0, 1, 2


@pytest.mark.parametrize(
    ("model", "label", "public"),
    [
        (MarginalClassifier(**BUDGET, schema=CLASSES, size=400), ILL, {"source": THEIRS}),
        (MarginalRegressor(**BUDGET, schema=NUMBERS, size=400), STAY, {"source": THEIRS}),
        (TransportClassifier(**BUDGET, schema=CLASSES), ILL, {"Xt": THEIRS}),
        (ReweightedClassifier(**BUDGET, schema=CLASSES), ILL, {"Xs": THEIRS, "ys": ILL}),
        (ReweightedRegressor(**BUDGET, schema=NUMBERS), STAY, {"Xs": THEIRS, "ys": STAY}),
        (CellClassifier(bins={"age": [50]}, **BUDGET, schema=CLASSES), ILL, {}),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else "",
)
def test_a_schema_declares_the_label(model, label, public, tmp_path):
    private, ours = draw_patients(400, seed=1), draw_patients(300, seed=2)
    model.fit(private[0], private[label], **{name: ours[place] for name, place in public.items()})
    predicted = model.predict(ours[0])
    declared = model.schema.label
    if label == ILL:
        assert set(predicted) <= set(declared.values)
    else:
        assert predicted.min() >= declared.low
        assert predicted.max() <= declared.high
    loaded = load(model.save(tmp_path / "model.privada"))
    np.testing.assert_array_equal(loaded.predict(ours[0]), predicted)


def test_owners_of_a_summary_have_the_classes_of_the_schema():
    (X, y, _), (first, labels, _) = draw_patients(60, seed=1), draw_patients(80, seed=2)
    summarizer = PrivateSummarizer(10, **BUDGET, schema=CLASSES, gamma=0.01)
    summarizer.fit(X, y, owners={"a": (first, labels)})
    assert set(summarizer.y_) <= {"no", "yes"}


def test_text_without_a_schema_is_named_as_such():
    X, y, _ = draw_patients(60, seed=1)
    model = MarginalClassifier(epsilon=1, bounds=(0, 1), classes=("no", "yes"), size=60)
    with pytest.raises(InputError, match="Expected .* to be a matrix of numbers"):
        model.fit(X[["ward"]], y, source=X[["ward"]].fillna("A"))


def test_a_parameter_that_it_does_not_have_is_named_with_its_class():
    with pytest.raises(TypeError, match="MarginalClassifier: got an unexpected keyword argument 'epsilom'"):
        MarginalClassifier(epsilom=1)


def test_a_notebook_shows_an_estimator_whose_spending_cannot_be_stated():
    models = []
    for seed in (1, 2):
        X, y, _ = draw_patients(60, seed=seed)
        models.append(CellClassifier(bins={"age": [50]}, **BUDGET, schema=CLASSES).fit(X, y))
    with pytest.raises(InputError, match="to state spent_"):
        _ = models[-1].spent_
    shown = estimator_html_repr(models[-1])
    assert "guarantee_" in shown
    assert "spent_" not in shown
