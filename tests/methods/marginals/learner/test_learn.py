import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from privada import Owner, Schema, run
from privada.exceptions import InputError, PrivadaWarning
from privada.methods.cells import GridCells
from privada.methods.marginals import (
    CellCounts,
    ErrorTables,
    MarginalClassifier,
    Onnx,
    OutcomeTables,
    Public,
    Rounds,
    cells,
    default_cells,
    default_rounds,
    feature_bins,
    learn_cells,
    learn_rounds,
)
from privada.methods.marginals.learner.rounds import box_least_squares, importance
from privada.methods.marginals.learner.smoothing import smooth
from privada.parties import Category
from privada.privacy import ApproxDP, PureDP

PURE = PureDP(epsilon=2, relation="add/remove")
HALF = PureDP(epsilon=1, relation="add/remove")


@pytest.fixture
def square():
    """A target whose label is the side of a slanted line, and a source that leans to one side."""
    rng = np.random.default_rng(5)
    X = rng.uniform(size=(800, 2))
    y = (X @ [1.0, 0.6] > 0.8).astype(int)
    source = rng.beta(1.0, 1.5, size=(500, 2))
    return X, y, source


def owner_of(X, y, budget=PURE, classes=(0, 1)):
    schema = Schema.of_numbers(bounds=(0.0, 1.0), width=2, label=Category(name="l", values=classes))
    with pytest.warns(UserWarning, match="not private"):
        return Owner(X, y=y, schema=schema, dataset="rows", budget=budget, insecure_seed=3)


def public_of(source, **more):
    return Public(source=source, classes=(0, 1), **({"classifier": LogisticRegression()} | more))


def accuracy(fit, X, y):
    return (fit.codes(X) == y).mean()


def test_cells_label_the_source_and_weigh_it(square):
    X, y, source = square
    question = default_cells(source, guarantee=PURE, size=800, n_classes=2, seed=0)
    fit = run(learn_cells("o", question, public_of(source)), {"o": owner_of(X, y)})
    assert accuracy(fit, X, y) > 0.93
    weights, truth = fit.synthetic.weights, source @ [1.0, 0.6] > 0.8
    assert (fit.synthetic.codes == truth).mean() > 0.9
    assert np.average(source[:, 0], weights=weights) == pytest.approx(0.5, abs=0.05)  # the target's mean
    assert fit.synthetic.guarantees == (str(PURE),)


@pytest.mark.parametrize("estimate", ["smooth", "cumulative", "instantaneous"])
def test_rounds_learn_from_single_features(square, estimate):
    X, y, source = square
    plan = Rounds(questions=(feature_bins(source, 6),) * 2, guarantees=(HALF, HALF), estimate=estimate)
    owner = owner_of(X, y)
    fit = run(learn_rounds("o", plan, public_of(source)), {"o": owner})
    assert accuracy(fit, X, y) > 0.88
    assert len(fit.releases) == len(fit.hypotheses) == 2
    assert owner.ledger.spent("rows").epsilon == pytest.approx(2)


def test_signed_tables_and_groups_and_any_classifier(square):
    """Pairs of features in a grid, errors minus correct, and a forest that travels as ONNX."""
    X, y, source = square
    grids = (GridCells(factors=feature_bins(source, 4)),)
    plan = Rounds(questions=(grids, grids), guarantees=(HALF, HALF), count="signed", size=800.0)
    forest = RandomForestClassifier(5, max_depth=4, random_state=0)
    fit = run(learn_rounds("o", plan, public_of(source, classifier=forest)), {"o": owner_of(X, y)})
    assert isinstance(fit.hypotheses[1], Onnx)
    assert accuracy(fit, X, y) > 0.85


def test_stopping_early_costs_less(square):
    X, y, source = square
    each = PureDP(epsilon=0.5, relation="add/remove")
    plan = Rounds(questions=(feature_bins(source, 4),) * 4, guarantees=(each,) * 4, stop=0.9)
    owner = owner_of(X, y)
    fit = run(learn_rounds("o", plan, public_of(source)), {"o": owner})
    assert len(fit.releases) == 2
    assert owner.ledger.spent("rows").epsilon == pytest.approx(1)


def test_several_classes(square):
    X, _, source = square
    y = np.digitize(X[:, 0], [0.33, 0.66])
    question = OutcomeTables(tables=(cells(source, 40, 0),), n_classes=3, count="labels", guarantee=PURE)
    public = Public(source=source, classes=(0, 1, 2), classifier=LogisticRegression())
    fit = run(learn_cells("o", question, public), {"o": owner_of(X, y, classes=(0, 1, 2))})
    assert accuracy(fit, X, y) > 0.85
    assert np.allclose(fit.probabilities(X).sum(axis=1), 1)


def test_noise_alone_gives_a_model_and_no_error():
    """An owner without any row: everything is noise, and nothing breaks."""
    rng = np.random.default_rng(0)
    source = rng.uniform(size=(60, 2))
    model = MarginalClassifier(
        classes=(0, 1), bounds=(0, 1), epsilon=0.01, size=10, classifier=LogisticRegression()
    )
    with pytest.warns(PrivadaWarning, match="keep the budget"):
        model.fit(rng.uniform(size=(1, 2)), [1], source=source)
    assert set(model.predict(source)) <= {0, 1}
    assert not model.forecast_.worthwhile


def test_the_default_asks_less_where_the_budget_is_small():
    source = np.random.default_rng(0).uniform(size=(2000, 3))
    entries = []
    for epsilon in (0.05, 0.25, 1.0):
        pure = PureDP(epsilon=epsilon, relation="add/remove")
        question = default_cells(source, guarantee=pure, size=1000, n_classes=2, seed=0)
        entries.append(question.tables[0].n_cells)
    assert entries == sorted(entries)
    assert entries[0] < entries[-1]
    plan = default_rounds(source, guarantee=PURE, size=1000, rounds=2, features=2)
    assert [len(tables) for tables in plan.questions] == [2, 2]
    assert sum(each.epsilon for each in plan.guarantees) == pytest.approx(PURE.epsilon)
    with pytest.raises(InputError, match="no even shares"):
        default_rounds(
            source,
            guarantee=ApproxDP(epsilon=1, delta=1e-5, relation="add/remove"),
            size=1000,
            rounds=2,
        )


def test_least_squares_in_a_box_is_the_optimum():
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(6, 9)), rng.normal(size=6)
    x = box_least_squares(A, b, centre=0.3, low=0.0, high=1.0, ridge=0.1, iterations=3000)
    slope = A.T @ (A @ x - b) + 0.1 * (x - 0.3)
    assert np.all(np.abs(slope[(x > 1e-9) & (x < 1 - 1e-9)]) < 1e-6)
    assert np.all(slope[x <= 1e-9] > -1e-6)
    assert np.all(slope[x >= 1 - 1e-9] < 1e-6)


def test_importance_weights_move_bins_to_the_counts():
    incidence = np.repeat(np.eye(2), 50, axis=1)
    weights = importance(incidence, np.array([3000.0, 1000.0]), noise=1.0)
    assert weights[:50].mean() / weights[50:].mean() == pytest.approx(3, rel=0.15)  # drawn a little toward 1


def test_the_posterior_is_the_exact_one_where_it_is_known():
    """Design the identity, no sampling: ordinary Gaussian process regression."""
    points = np.linspace(-2, 2, 60)[:, None]
    observed = np.sin(2 * points)
    found = smooth(points, np.eye(60), observed, released=np.full(60, 1e-4), sampling=np.zeros(60))
    assert np.abs(found(points) - observed).max() < 0.05
    assert np.abs(found(points + 0.01) - np.sin(2 * points + 0.02)).max() < 0.05


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"classes": None}, "Expected classes"),
        ({"bounds": None}, "Expected bounds"),
        ({"size": None}, "Expected size"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"algorithm": "rates"}, "Expected algorithm"),
        ({"algorithm": ErrorTables(estimate="guess")}, "Expected estimate"),
        ({"algorithm": ErrorTables(estimate="cumulative"), "classes": (0, 1, 2)}, "two classes"),
        ({"algorithm": ErrorTables(chosen=0)}, "Expected chosen"),
        ({"algorithm": CellCounts(cells=1)}, "Expected cells"),
    ],
    ids=str,
)
def test_wrong_settings_are_refused_by_name(square, wrong, message):
    X, y, source = square
    settings = {"classes": (0, 1), "bounds": (0.0, 1.0), "epsilon": 1.0, "size": 800} | wrong
    with pytest.raises(InputError, match=message):
        MarginalClassifier(**settings).fit(X, y, source=source)


def test_fit_needs_a_finite_source(square):
    X, y, source = square
    model = MarginalClassifier(classes=(0, 1), bounds=(0.0, 1.0), epsilon=1.0, size=800)
    with pytest.raises(InputError, match="Expected source"):
        model.fit(X, y)
    with pytest.raises(InputError, match="source"):
        model.fit(X, y, source=np.where(source > 0.9, np.nan, source))


def test_domains_that_agree_are_asked_for_signed_cells_with_less_noise(square):
    X, y, _ = square
    source = np.random.default_rng(1).uniform(size=(2000, 2))
    settings = {"guarantee": HALF, "size": 800, "n_classes": 2, "seed": 0}
    signed = default_cells(source, reweight=False, **settings)
    both = default_cells(source, **settings)
    assert (signed.count, both.count) == ("signed", "labels")
    assert signed.tables[0].n_cells > len(both.tables[0].inner.centers)
    fit = run(learn_cells("o", signed, public_of(source), size=800.0), {"o": owner_of(X, y)})
    assert accuracy(fit, X, y) > 0.93
    assert np.allclose(fit.synthetic.weights, 1)


@pytest.mark.parametrize(
    "more", [{"vary": True}, {"separate": True}, {"chosen": 1}, {"features": 1}], ids=str
)
def test_the_papers_perspectives_learn_too(square, more):
    X, y, source = square
    plan = default_rounds(source, guarantee=PURE, size=800, rounds=2, **more)
    owner = owner_of(X, y, budget=PureDP(epsilon=2.0, relation="add/remove"))
    fit = run(learn_rounds("o", plan, public_of(source)), {"o": owner})
    assert accuracy(fit, X, y) > 0.85
    assert len(fit.releases) == 3 if "separate" in more else 2
    asked = [sum(name.startswith("table") for name in release.payload) for release in fit.releases]
    assert asked[-1] == (1 if {"chosen", "features"} & set(more) else 2)


@pytest.mark.parametrize("more", [{}, {"separate": True}, {"chosen": 1}, {"features": 1}], ids=str)
def test_what_is_foreseen_costs_what_is_then_charged(square, more):
    X, y, source = square
    plan = default_rounds(source, guarantee=PURE, size=800, rounds=3, **more)
    owner = owner_of(X, y, budget=ApproxDP(epsilon=8, delta=1e-6, relation="add/remove"))
    asking = learn_rounds("o", plan, public_of(source))
    quote = owner.price_all([ask.question for ask in asking.asks])
    run(asking, {"o": owner})
    assert 1 - owner.ledger.remaining("rows").share == pytest.approx(quote.share, rel=1e-9)


def test_bins_move_from_round_to_round():
    source = np.random.default_rng(0).uniform(size=(500, 2))
    plan = default_rounds(source, guarantee=PURE, size=800, rounds=2, bins=4, vary=True)
    first, second = (tables[0].edges for tables in plan.questions)
    assert (first < second).all()


def test_an_importance_query_moves_the_weights(square):
    X, y, source = square
    plan = default_rounds(source, guarantee=PURE, size=800, rounds=1, separate=True)
    fit = run(learn_rounds("o", plan, public_of(source)), {"o": owner_of(X, y)})
    high = source[:, 0] > 0.5
    assert np.average(high, weights=fit.synthetic.weights) > high.mean() + 0.03


def test_rounds_of_several_classes():
    rng = np.random.default_rng(2)
    X, source = rng.uniform(size=(1200, 2)), rng.uniform(size=(500, 2))
    y = np.digitize(X[:, 0], [0.35, 0.65])
    tables = feature_bins(source, 6)
    plan = Rounds(questions=(tables, tables), guarantees=(PURE, PURE), count="classes", chosen=1)
    owner = owner_of(X, y, budget=PureDP(epsilon=4, relation="add/remove"), classes=(0, 1, 2))
    fit = run(learn_rounds("o", plan, Public(source=source, classes=(0, 1, 2))), {"o": owner})
    assert accuracy(fit, X, y) > 0.8
    assert list(fit.releases[-1].payload) == ["table.0"]
    assert fit.synthetic.probabilities.shape == (500, 3)
