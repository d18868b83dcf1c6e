from dataclasses import replace

import numpy as np
import pytest

from privada import Owner, Schema, run
from privada._toml import Section
from privada.exceptions import BudgetError, StudyError
from privada.methods.reweighting.method import Reweighting
from privada.parties import Category, Number
from privada.privacy import ApproxDP

BUDGET = ApproxDP(epsilon=2, delta=1e-5, relation="replace-one")
SIZE = 400
LABELS = {
    "number": Number(name="label", low=-1.0, high=1.0),
    "two classes": Category(name="label", values=("no", "yes")),
    "three classes": Category(name="label", values=(1, 2, 3)),
}


def schema(kind="number", size=SIZE):
    return Schema.of_numbers(bounds=(-1.0, 1.0), width=2, size=size, label=LABELS[kind])


def labelled(kind, seed, n):
    """Rows and labels; domains differ in where rows lie."""
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(0.3 * seed, 0.6, size=(n, 2)), -1, 1)
    score = np.clip(X @ [0.8, -0.4], -1, 1)
    if kind == "number":
        return X, score
    values = np.array(LABELS[kind].values)
    return X, values[np.digitize(score, [0.0] if len(values) == 2 else [-0.2, 0.2])]


@pytest.fixture
def home(tmp_path):
    for kind in LABELS:
        X, y = labelled(kind, 0, 300)
        table = np.column_stack([X.astype(str), y.astype(str)])
        np.savetxt(tmp_path / f"{kind}.csv", table, delimiter=",", fmt="%s")
    return tmp_path


def made(text, home, about):
    section = Section.parse(text, name="study.toml")
    return Reweighting.inquire(section, schemas={"clinic": about}, guarantee=BUDGET, home=home, seed=1)


@pytest.mark.parametrize("kind", list(LABELS))
def test_a_study_becomes_a_learner(home, kind):
    X, y = labelled(kind, 1, SIZE)
    owner = Owner(X, y=y, schema=schema(kind), dataset="rows", budget=BUDGET, accounting="gaussian")
    model = run(made(f'source = "{kind}.csv"', home, schema(kind)), {"clinic": owner})
    if kind == "number":
        assert np.mean((model.scores(X)[:, 0] - y) ** 2) < 0.05
    else:
        assert (np.array(LABELS[kind].values)[model.probabilities(X).argmax(axis=1)] == y).mean() > 0.8
    assert model.to_dict()["questions"] == [release.kind for release in model.releases]
    assert 0 <= owner.ledger.remaining("rows").share < 1e-3


@pytest.mark.parametrize(
    ("text", "about", "message"),
    [
        ('source = "none.csv"', schema(), "cannot read none.csv"),
        ('source = "number.csv"\nowner = "bank"', schema(), "no owner named 'bank'"),
        ('source = "number.csv"', schema(size=None), "a label and a declared size"),
        ('source = "two classes.csv"', schema(), "source: expected numbers"),
        ('source = "two classes.csv"', schema("three classes"), "no is not one of the classes 1, 2, 3"),
        ('source = "number.csv"\nbase = "best"', schema(), "best"),
        ('source = "number.csv"\nalfa = 0.3', schema(), "alfa"),
    ],
    ids=["file", "owner", "size", "label", "class", "base", "key"],
)
def test_a_bad_table_names_the_key(home, text, about, message):
    with pytest.raises(StudyError, match=message):
        made(text, home, about)


@pytest.mark.parametrize("base", ["auto", "linear"])
@pytest.mark.parametrize("kind", list(LABELS))
def test_what_is_foreseen_costs_what_is_then_charged(home, kind, base):
    X, y = labelled(kind, 1, SIZE)
    owner = Owner(X, y=y, schema=schema(kind), dataset="rows", budget=replace(BUDGET, epsilon=20.0))
    asking = made(f'source = "{kind}.csv"\nbase = "{base}"', home, schema(kind))
    quote = owner.price_all([ask.question for ask in asking.asks])
    run(asking, {"clinic": owner})
    assert 1 - owner.ledger.remaining("rows").share == pytest.approx(quote.share, rel=1e-9)


def test_an_accounting_that_cannot_pay_for_all_rounds_is_charged_nothing(home):
    X, y = labelled("number", 1, SIZE)
    owner = Owner(X, y=y, schema=schema(), dataset="rows", budget=BUDGET)
    with pytest.raises(BudgetError, match="accounting = "):
        run(made('source = "number.csv"', home, schema()), {"clinic": owner})
    assert owner.ledger.spent("rows") is None
