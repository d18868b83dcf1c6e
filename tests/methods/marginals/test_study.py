import numpy as np
import pytest

from privada import Owner, Schema, run
from privada._toml import Section
from privada.exceptions import StudyError
from privada.methods.marginals import from_plain
from privada.methods.marginals.method import Marginals
from privada.parties import Category, Number
from privada.privacy import ZCDP, PureDP

PURE = PureDP(epsilon=2, relation="add/remove")
SCHEMA = Schema.of_numbers(
    bounds=(0.0, 1.0), width=2, size=300, label=Category(name="l", values=("no", "yes"))
)

BROKEN = {
    "empty": "",
    "holes": "0.1,nan\n",
    "headed": "age,dose\n0.1,0.2\n",
    "ragged": "0.1,0.2\n0.3\n",
    "narrow": "0.1\n",
}


@pytest.fixture
def home(tmp_path):
    np.savetxt(tmp_path / "source.csv", np.random.default_rng(0).uniform(size=(150, 2)), delimiter=",")
    for name, text in BROKEN.items():
        (tmp_path / f"{name}.csv").write_text(text)
    return tmp_path


def made(text, home):
    section = Section.parse(text, name="study.toml")
    return Marginals.inquire(section, schemas={"clinic": SCHEMA}, guarantee=PURE, home=home, seed=1)


@pytest.mark.parametrize(
    "more",
    [
        "",
        "cells = 20",
        'question = "marginals"\nrounds = 2\nbins = 4',
        "rounds = 2",
        "reweight = false",
        "rounds = 3\nbins = 4\nstop = 0.5",
    ],
    ids=["auto", "cells", "marginals", "rounds", "reweight", "stop"],
)
def test_a_study_becomes_a_learner(home, more):
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(300, 2))
    y = np.where(X[:, 0] > 0.5, "yes", "no")
    owner = Owner(X, y=y, schema=SCHEMA, dataset="rows", budget=PURE)
    fit = run(made(f'source = "source.csv"\n{more}', home), {"clinic": owner})
    assert (fit.codes(X) == (y == "yes")).mean() > 0.7
    plain = fit.to_dict()
    assert plain["classes"] == ["no", "yes"]
    assert np.array_equal(from_plain(plain["hypothesis"]).codes(X), fit.codes(X))
    assert {len(share) for share in plain["synthetic_target"]["probabilities"].values()} == {150}
    if "reweight" in more:
        assert set(plain["synthetic_target"]["weights"]) == {1.0}
    if "stop" in more:
        assert plain["rounds"] == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('source = "none.csv"', "cannot read none.csv"),
        ('source = "empty.csv"', "empty.csv is empty"),
        ('source = "holes.csv"', "source: expected finite numbers"),
        (
            'source = "headed.csv"',
            "source: columns .* the file lacks: 'x0', 'x1'; .*: 'age', 'dose'",
        ),
        ('source = "ragged.csv"', "cannot read ragged.csv"),
        ('source = "narrow.csv"', "expected rows of 2 features, got 1"),
        ('source = "source.csv"\nquestion = "rates"', "one of auto, cells, descent"),
        ('source = "source.csv"\nowner = "bank"', "no owner named 'bank'"),
        ('source = "source.csv"\ncells = 1', "Expected cells"),
        ('source = "source.csv"\nrates = 3', "rates"),
        ('source = "source.csv"\nrounds = -2', "line 2, rounds: Expected rounds to be"),
        ('source = "source.csv"\nstop = 3', "line 2, stop: Expected stop between 0 and 1"),
        ('source = "source.csv"\nreweight = 1', "line 2, reweight: expected true or false"),
        ('source = "source.csv"\nsize = 0', "line 2, size: Expected size"),
        ('source = "source.csv"\nquestion = "cells"\nbins = 5', "line 3, bins: Expected bins only"),
    ],
    ids=str,
)
def test_mistakes_name_their_key(home, text, message):
    with pytest.raises(StudyError, match=message):
        made(text, home)


def test_a_missing_value_gets_a_bin_where_the_schema_allows_it(home):
    age = Number(name="age", low=0.0, high=1.0, missing=True)
    schema = Schema(columns=(age,), label=Category(name="l", values=("no", "yes")), size=300)
    text = 'source = "marked.csv"\nquestion = "marginals"'
    np.savetxt(home / "marked.csv", [[value, 0] for value in np.linspace(0, 1, 50)], delimiter=",")
    section = Section.parse(text, name="study.toml")
    (ask,) = Marginals.inquire(section, schemas={"clinic": schema}, guarantee=PURE, home=home).asks
    (table,) = ask.question.tables
    assert (table.feature, table.missing) == (0, 1)


def test_a_study_learns_a_number(home):
    """A schema whose label is a number asks for the regressor."""
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(2000, 2))
    label = Number(name="days", low=0.0, high=20.0)
    schema = Schema.of_numbers(bounds=(0, 1), width=2, size=2000, label=label)
    gaussian = ZCDP(rho=0.5, relation="add/remove")
    for guarantee, more in ((PURE, "cells = 8"), (gaussian, 'regressor = "Ridge"')):
        section = Section.parse(f'source = "source.csv"\n{more}', name="study.toml")
        inquiry = Marginals.inquire(section, schemas={"clinic": schema}, guarantee=guarantee, home=home)
        owner = Owner(X, y=20 * X[:, 0], schema=schema, dataset="rows", budget=guarantee)
        fit = run(inquiry, {"clinic": owner})
        assert np.mean((fit.predict(X) - 20 * X[:, 0]) ** 2) < 0.5 * np.var(20 * X[:, 0])
        make = Marginals.make_estimator(inquiry, schema=schema, guarantee=guarantee)
        assert make(fit).predict(X[:3]).shape == (3,)


def test_the_model_is_one_of_scikit_learn_by_name(home):
    fit = made('source = "source.csv"\nclassifier = "LogisticRegression"', home)
    assert fit.method.classifier.__class__.__name__ == "LogisticRegression"
    with pytest.raises(StudyError, match=r"method\.?classifier|classifier.*one of"):
        made('source = "source.csv"\nclassifier = "Oracle"', home)
