"""A search states what it costs before it begins, and no candidate is free."""

import numpy as np
import pytest
from sklearn.base import clone

from privada import (
    ApproxDP,
    CellClassifier,
    Dataset,
    Ledger,
    OwnerKey,
    PureDP,
    ReweightedClassifier,
    ReweightedRegressor,
    Schema,
)
from privada.exceptions import AnswerError, BudgetError, InputError, PrivadaError
from privada.methods.marginals.questions import HypothesisChoice
from privada.model_selection import PrivateSearchCV, random_stopping
from privada.model_selection.search import KeptModel, keep_models
from privada.parties.one_process import process_ledger
from privada.privacy.noise import SecureNoise

pytestmark = pytest.mark.filterwarnings("ignore::privada.exceptions.PrivadaWarning")
GRID = {"centers": [[[0.5]], [[0.25], [0.75]], [[0.1], [0.2]]]}
REGRESSOR = ReweightedRegressor(epsilon=1, delta=1e-6)
MODEL = CellClassifier(classes=(0, 1), bounds=(0, 1), epsilon=0.5)


def rows(seed=0, size=600):
    X = np.random.default_rng(seed).uniform(size=(size, 1))
    return X, (X[:, 0] > 0.5).astype(int)


def test_a_private_choice_costs_the_fits_or_the_choice_and_says_so_before():
    search = PrivateSearchCV(MODEL, GRID, selection_epsilon=2.0)
    assert search.price() == PureDP(epsilon=2, relation="add/remove")
    assert PrivateSearchCV(MODEL, GRID, selection_epsilon=0.1).price().epsilon == 1.5
    search.fit(*rows())
    assert search.best_index_ == 1
    assert search.best_params_ == {"centers": GRID["centers"][1]}
    assert search.quote_ == search.spent_ == search.price()
    assert search.score(*rows(1)) > 0.9
    assert np.array_equal(search.predict([[0.1], [0.9]]), [0, 1])
    assert clone(search).get_params()["estimator"] is not MODEL


def test_candidates_are_not_fitted_on_the_rows_that_choose(monkeypatch):
    seen, asked = [], []
    fit, hold = CellClassifier.fit, PrivateSearchCV._hold
    monkeypatch.setattr(
        PrivateSearchCV, "_hold", lambda self, model, X, *more: asked.append(X) or hold(self, model, X, *more)
    )
    monkeypatch.setattr(CellClassifier, "fit", lambda self, X, y: seen.append(X) or fit(self, X, y))
    X, y = rows()
    PrivateSearchCV(MODEL, GRID, selection_epsilon=1.0, held_out=0.25).fit(X, y)
    assert 400 < len(seen[0]) < 500
    assert all(np.array_equal(each, seen[0]) for each in seen)
    assert len(asked) == 1
    assert len(np.intersect1d(asked[0], seen[0])) == 0
    assert len(asked[0]) + len(seen[0]) == len(X)


def test_a_search_shows_nobody_which_rows_were_held_out():
    """Not even by what a row has lost: the statement covers both sides."""
    X, y = rows(size=300)
    model = clone(MODEL).set_params(dataset=Dataset(table="all"))
    search = PrivateSearchCV(model, GRID, selection_epsilon=0.5).fit(X, y)
    assert search.spent_ == search.quote_ == PureDP(epsilon=1.5, relation="add/remove")
    probe = clone(MODEL).set_params(centers=[[0.5]])
    spent = [
        clone(probe).set_params(dataset=Dataset(table=f"row {at}")).fit(X[at : at + 1], y[at : at + 1]).spent_
        for at in range(30)
    ]
    assert set(spent) == {PureDP(epsilon=2.0, relation="add/remove")}
    second = clone(search).set_params(random_state=0)
    with pytest.warns(DeprecationWarning, match="random_state has no effect"):
        second.fit(X, y)
    assert search.spent_.epsilon == 3.0 + 0.5


def test_public_scores_cost_one_fit():
    X, y = rows()
    search = PrivateSearchCV(MODEL, GRID, public=rows(5, 300)).fit(X, y)
    assert search.quote_ == search.spent_ == PureDP(epsilon=0.5, relation="add/remove")
    assert search.best_index_ == 1
    assert search.scores_.shape == (3,)
    assert search.release_ is None


def test_on_a_ledger_everything_is_charged_to_one_data_set():
    with Ledger.open(":memory:", OwnerKey.generate()) as ledger:
        ledger.open_budget("patients", PureDP(epsilon=3, relation="add/remove"))
        model = clone(MODEL).set_params(dataset=Dataset("patients", ledger=ledger))
        search = PrivateSearchCV(model, GRID, selection_epsilon=1.0)
        assert search.price().epsilon == 2.5
        search.fit(*rows())
        assert search.spent_.epsilon == pytest.approx(2.5)
        assert search.spent_ == ledger.spent("patients")
        with pytest.raises(BudgetError):
            search.fit(*rows())


def test_an_approximate_estimator_with_another_domain():
    rng = np.random.default_rng(0)
    Xs, Xt = rng.normal(size=(200, 2)), rng.normal(size=(300, 2))
    ys, yt = (Xs[:, 0] > 0).astype(int), (Xt[:, 0] > 0).astype(int)
    model = ReweightedClassifier(epsilon=0.5, delta=1e-6, base="linear", random_state=0)
    search = PrivateSearchCV(model, {"standardize": [True, False]}, selection_epsilon=0.5)
    assert search.price() == ApproxDP(epsilon=1.0, delta=2e-6, relation="replace-one")
    search.fit(Xt, yt, Xs=Xs, ys=ys)
    assert search.spent_.epsilon < 1.5
    assert search.predict(Xt).shape == (300,)


def test_the_search_adds_to_what_the_rows_were_used_for():
    X, y = rows()
    PrivateSearchCV(MODEL, GRID, selection_epsilon=0.5).fit(X, y)
    model = clone(MODEL).set_params(centers=[[0.2]]).fit(X, y)
    assert model.spent_.epsilon == pytest.approx(2.0)


MANY = {"centers": [[[0.5]], [[0.25], [0.75]], [[0.1], [0.2]], [[0.4]], [[0.9]]]}


def test_the_cheaper_way_to_choose_is_taken_and_both_prices_are_known():
    few, many = (PrivateSearchCV(MODEL, grid, selection_epsilon=0.5) for grid in (GRID, MANY))
    assert [each.epsilon for each in few.prices().values()] == [1.5, 1.5]
    assert few._find_choice() == "exponential"  # equal prices: fewer fits
    assert [each.epsilon for each in many.prices().values()] == [2.5, 1.5]
    assert many.price() == PureDP(epsilon=1.5, relation="add/remove")
    approximate = clone(MODEL).set_params(delta=1e-6)
    assert list(PrivateSearchCV(approximate, MANY, selection_epsilon=0.5).prices()) == ["exponential"]


def test_random_stopping_is_charged_at_once_and_only_the_winner_leaves():
    with Ledger.open(":memory:", OwnerKey.generate()) as ledger:
        ledger.open_budget("patients", PureDP(epsilon=2, relation="add/remove"))
        model = clone(MODEL).set_params(dataset=Dataset("patients", ledger=ledger))
        search = PrivateSearchCV(model, MANY, selection_epsilon=0.5, runs=12).fit(*rows(size=300))
        assert search.choice_ == "random stopping"
        (line,) = [line for line in ledger.lines("patients") if line.price is not None]
        assert line.price.epsilon == search.quote_.epsilon == 1.5
        assert search.spent_.epsilon == pytest.approx(1.5)
        assert ledger.spent("patients") == search.spent_
        with pytest.raises(BudgetError):
            clone(search).fit(*rows(size=300))
        public = ledger.key.public
    best = search.best_estimator_
    assert best.guarantee_ == best.release_.guarantee == PureDP(epsilon=1.5, relation="add/remove")
    assert best.release_.receipt == search.release_.receipt  # a receipt of its run would have the run's time
    best.release_.verify(public=public)
    assert set(search.release_.payload) == {"choice"}
    assert search.scores_ is None
    assert search.best_params_ == {"centers": best.centers}


def test_random_stopping_is_charged_before_its_first_run(monkeypatch):
    with Ledger.open(":memory:", OwnerKey.generate()) as ledger:
        ledger.open_budget("patients", PureDP(epsilon=9, relation="add/remove"))
        model = clone(MODEL).set_params(dataset=Dataset("patients", ledger=ledger))
        search, seen = PrivateSearchCV(model, MANY, selection_epsilon=0.5, runs=3), []

        def fail_after_looking(run, *, runs, noise):
            seen.append(ledger.spent("patients"))
            raise ValueError("a run failed")

        monkeypatch.setattr(random_stopping, "best_of_random_runs", fail_after_looking)
        with pytest.raises(AnswerError, match="The charge stands") as error:
            search.fit(*rows())
        assert seen == [ledger.spent("patients")]
        assert seen[0].epsilon == pytest.approx(search.price().epsilon)
        assert "a run failed" not in str(error.value)
        assert error.value.__cause__ is error.value.__context__ is None


@pytest.mark.parametrize("choice", ["exponential", "random stopping"])
def test_that_no_row_happens_to_be_held_out_is_not_told(choice):
    """Of two rows, one more or less may decide whether there is one to hold out: no error says so."""
    X, y = rows(size=2)
    for held_out in (1e-9, 1 - 1e-9):  # none is held out, then all are
        search = PrivateSearchCV(MODEL, GRID, selection_epsilon=0.5, choice=choice, runs=2, held_out=held_out)
        assert search.fit(X, y).best_index_ in range(3)


def test_rows_of_random_stopping_are_remembered_and_persons_are_kept_whole():
    X, y = rows(size=300)
    person = np.arange(300) // 2
    model = clone(MODEL).set_params(dataset=Dataset(max_rows=2))
    search = PrivateSearchCV(model, MANY, selection_epsilon=0.5, runs=3).fit(X, y, person=person)
    assert search.spent_ == search.quote_
    assert search.spent_.unit.max_rows == 2
    again = clone(model).set_params(centers=[[0.2]]).fit(X, y, person=person)
    assert again.spent_.epsilon == pytest.approx(2.0)


def test_a_candidate_that_cannot_be_fitted_is_found_before_the_charge():
    grid = {"centers": [*MANY["centers"], [[0.1, 0.2]]]}
    with pytest.raises(InputError):
        PrivateSearchCV(MODEL, grid, selection_epsilon=0.5).fit(*rows())
    assert len(process_ledger.THE_LEDGER._rows) == 0


@pytest.mark.parametrize(
    ("search", "match"),
    [
        (PrivateSearchCV(MODEL, GRID), "selection_epsilon"),
        (PrivateSearchCV(MODEL, GRID, selection_epsilon=1, choice="best"), "choice"),
        (PrivateSearchCV(MODEL, {"dataset": [None, Dataset(max_rows=2)]}, selection_epsilon=1), "one unit"),
        (
            PrivateSearchCV(
                clone(MODEL).set_params(delta=1e-6), GRID, selection_epsilon=1, choice="random stopping"
            ),
            "pure epsilon",
        ),
        (PrivateSearchCV(MODEL, {"epsilon": [0.1]}, selection_epsilon=1), "at least 2 candidates"),
        (PrivateSearchCV(MODEL, GRID, selection_epsilon=-1), "epsilon"),
        (PrivateSearchCV(MODEL, GRID, selection_epsilon=1, held_out=1.5), "held_out"),
        (PrivateSearchCV(None, GRID, selection_epsilon=1), "one of privada's"),
        (
            PrivateSearchCV(REGRESSOR, {"base": ["auto", "linear"]}, selection_epsilon=1),
            "Expected a classifier",
        ),
    ],
)
def test_what_cannot_be_searched_is_refused_before_any_charge(search, match):
    with pytest.raises(InputError, match=match):
        search.fit(*rows())
    assert len(process_ledger.THE_LEDGER._rows) == 0


@pytest.mark.parametrize("choice", ["exponential", "random stopping"])
@pytest.mark.parametrize("frames", ["pandas", "polars"])
def test_columns_of_a_frame_are_known_by_name(frames, choice):
    library = pytest.importorskip(frames)
    X = np.random.default_rng(3).uniform(size=(400, 2))
    frame = library.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    grid = {"centers": [[[0.2, 0.5], [0.8, 0.5]], [[0.2, 0.5], [0.7, 0.5]]]}
    model = clone(MODEL).set_params(epsilon=4.0)
    search = PrivateSearchCV(model, grid, selection_epsilon=1, choice=choice, runs=2)
    search.fit(frame, (X[:, 0] > 0.5).astype(int))
    assert search.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(search.predict(frame[["b", "a"]]), search.predict(frame))
    with pytest.raises(InputError, match="missing: 'b'"):
        search.predict(frame[["a"]])
    assert search.spent_.epsilon == pytest.approx({"exponential": 8.0, "random stopping": 12.0}[choice])


def test_a_schema_and_sparse_rows_are_refused_with_a_sentence():
    from scipy.sparse import csr_matrix

    schema = Schema.of_numbers(bounds=(0, 1), width=1)
    with pytest.raises(InputError, match=r"schema\.encode"):
        PrivateSearchCV(clone(MODEL).set_params(schema=schema), GRID, selection_epsilon=1).fit(*rows())
    with pytest.raises(InputError, match="dense"):
        PrivateSearchCV(MODEL, GRID, selection_epsilon=1).fit(csr_matrix(rows()[0]), rows()[1])
    assert len(process_ledger.THE_LEDGER._rows) == 0


def test_the_choice_keeps_its_epsilon():
    """At most e^ε between neighbours, by the frequencies of many choices; false alarms: below 1e-6."""
    X = np.array([[0.1]] * 6 + [[0.9]])
    y = np.array([0] * 6 + [1])
    epsilon, counts = 1.0, []
    for count in (6, 7):
        with keep_models([Always(0), Always(1)], (0, 1)) as candidates:
            counts.append(choose_often(candidates, X[-count:], y[-count:], epsilon, times=4000))
    assert abs(np.log(counts[0] / counts[1])) < epsilon + 0.35
    assert counts[0] > 0


class Always:
    def __init__(self, label):
        self.label = label

    def predict(self, X):
        return np.full(len(X), self.label)


def choose_often(candidates, X, y, epsilon, *, times):
    """How often the second candidate is chosen, by exact draws of the mechanism."""
    guarantee = PureDP(epsilon=epsilon, relation="add/remove")
    draw = HypothesisChoice(candidates=candidates, n_classes=2, guarantee=guarantee).plan.draws["choice"]
    scores = np.array([int((each.codes(X) == y).sum()) for each in candidates])
    noise = SecureNoise()
    return sum(int(draw.draw(scores, noise)[0]) for _ in range(times))


def test_a_kept_model_is_known_in_its_block_only():
    with keep_models([Always(1)], (0, 1)) as (model,):
        model.fits(3, 2)
        with pytest.raises(InputError, match="Expected a model of 3 classes"):
            model.fits(3, 3)
    with pytest.raises(PrivadaError, match="another process"):
        model.fits(3, 2)
    assert isinstance(model, KeptModel)
