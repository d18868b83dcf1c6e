from dataclasses import replace

import numpy as np
import pytest

from privada import Owner, Schema, run
from privada._toml import Section
from privada.exceptions import BudgetError, PrivadaWarning, StudyError
from privada.methods.reweighting.study import learner
from privada.parties import Category, Number
from privada.parties.protocol import foreseen
from privada.privacy import Approximate

BUDGET = Approximate(epsilon=2, delta=1e-5, relation="replace-one")
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
    return learner(section, schemas={"clinic": about}, guarantee=BUDGET, home=home, seed=1)


@pytest.mark.parametrize("kind", list(LABELS))
def test_a_study_becomes_a_learner(home, kind):
    X, y = labelled(kind, 1, SIZE)
    owner = Owner(X, y=y, schema=schema(kind), dataset="rows", budget=BUDGET, accounting="gaussian")
    model = run(made(f'source = "{kind}.csv"', home, schema(kind)), {"clinic": owner})
    scores = np.column_stack([X, np.ones(SIZE)]) @ np.column_stack([model.coef.T, model.intercept]).T
    if kind == "number":
        assert np.mean((scores[:, 0] - y) ** 2) < 0.05
    else:
        codes = scores.argmax(axis=1) if scores.shape[1] > 1 else scores[:, 0] > 0
        assert (np.array(LABELS[kind].values)[codes.astype(int)] == y).mean() > 0.8
    assert 0 <= owner.ledger.remaining("rows").share < 1e-3


@pytest.mark.parametrize(
    ("text", "about", "message"),
    [
        ('source = "none.csv"', schema(), "cannot read none.csv"),
        ('source = "number.csv"\nowner = "bank"', schema(), "no owner named 'bank'"),
        ('source = "number.csv"', schema(size=None), "a label and a declared size"),
        ('source = "two classes.csv"', schema(), "source: expected numbers"),
        ('source = "two classes.csv"', schema("three classes"), "no is not one of the classes 1, 2, 3"),
        ('source = "number.csv"\nselection = "best"', schema(), "best"),
        ('source = "number.csv"\nalfa = 0.3', schema(), "alfa"),
    ],
    ids=["file", "owner", "size", "label", "class", "selection", "key"],
)
def test_a_bad_table_names_the_key(home, text, about, message):
    with pytest.raises(StudyError, match=message):
        made(text, home, about)


def test_a_study_may_name_domains(home):
    """Six alike domains, and few rows: the rehearsal sees that nothing is gained, and says so."""
    np.savetxt(home / "months.csv", np.arange(300) % 6, fmt="month %d")
    text = 'source = "number.csv"\ngroups = "months.csv"'
    with pytest.warns(PrivadaWarning, match="alone would do"):
        made(text, home, schema(size=5))
    (home / "months.csv").write_text("january\n")
    with pytest.raises(StudyError, match="groups"):
        made(text, home, schema())


@pytest.mark.parametrize("selection", ["public", "private"])
@pytest.mark.parametrize("kind", list(LABELS))
def test_what_is_foreseen_costs_what_is_then_charged(home, kind, selection):
    X, y = labelled(kind, 1, SIZE)
    owner = Owner(X, y=y, schema=schema(kind), dataset="rows", budget=replace(BUDGET, epsilon=20.0))
    asking = made(f'source = "{kind}.csv"\nselection = "{selection}"', home, schema(kind))
    quote = owner.price_all([ask.question for ask in foreseen(asking)])
    run(asking, {"clinic": owner})
    assert 1 - owner.ledger.remaining("rows").share == pytest.approx(quote.share, rel=1e-9)


@pytest.mark.parametrize(("selection", "accounting"), [("public", None), ("private", "gaussian")])
def test_an_accounting_that_cannot_pay_for_all_rounds_is_charged_nothing(home, selection, accounting):
    X, y = labelled("number", 1, SIZE)
    owner = Owner(X, y=y, schema=schema(), dataset="rows", budget=BUDGET, accounting=accounting)
    asking = made(f'source = "number.csv"\nselection = "{selection}"', home, schema())
    with pytest.raises(BudgetError, match="accounting = "):
        run(asking, {"clinic": owner})
    assert owner.ledger.spent("rows") is None
