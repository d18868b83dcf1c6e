"""No routine call of scikit-learn states a smaller loss than its private rows have paid."""

import itertools
import math
import warnings

import dp_accounting
import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, learning_curve

from privada import ApproxDP, Dataset, Ledger, Owner, OwnerKey, PureDP, Schema
from privada.exceptions import BudgetError, InputError, PrivacyLeakWarning, PrivadaWarning
from privada.methods.reweighting import deep
from privada.model_selection import PrivateKFold
from privada.parties.schema import Category, Number
from privada.privacy.accounting.accountant import ORDERS
from tests.methods.every_estimator import CASES, CLASSES, GAUSSIAN, NAMES, ROWS

pytestmark = pytest.mark.filterwarnings("ignore::privada.exceptions.PrivadaWarning")
every_case = pytest.mark.parametrize("case", CASES, ids=NAMES)


@pytest.fixture(autouse=True)
def short_public_fits(monkeypatch):
    monkeypatch.setattr(deep, "PUBLIC_STEPS", 3)


@pytest.fixture
def charges(monkeypatch):
    """Every charge of this test, as the ledgers record it: (data set, price)."""
    seen = []
    charge_once = Ledger.charge_once

    def record(self, dataset, price, **more):
        found = charge_once(self, dataset, price, **more)
        seen.append((dataset, price))
        return found

    monkeypatch.setattr(Ledger, "charge_once", record)
    return seen


def private_charges(charges):
    """Prices of what was asked of the private rows that were divided, and not of a summary's other owners."""
    return [price for dataset, price in charges if dataset not in ("a", "b")]


def total_of(fits):
    """ε and δ of fits with these prices each: by dp-accounting, and the formula of accounting.md."""
    prices = [price for fit in fits for price in fit]
    if all(price.epsilon is not None for price in prices):
        return sum(price.epsilon for price in prices), 0.0
    accountant = RdpAccountant(ORDERS, dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    for price in prices:
        accountant.compose(price.event, price.times)
    part = GAUSSIAN["delta"] / len(ORDERS)
    epsilons = [
        divergence + math.log(1 - 1 / order) - (math.log(part) + math.log(order)) / (order - 1)
        for order, divergence in zip(ORDERS, accountant.rdp, strict=True)
    ]
    return min(epsilons), 2 * GAUSSIAN["delta"]


def check_stated(spent, fits):
    epsilon, delta = total_of(fits)
    assert spent.epsilon == pytest.approx(epsilon, rel=1e-9)
    assert getattr(spent, "delta", 0.0) == pytest.approx(delta, rel=1e-9)


@every_case
def test_one_fit_spends_what_it_promises(case):
    X, y = case.private()
    model = case.make().fit(X, y, **case.public)
    assert model.spent_ == model.guarantee_


@every_case
def test_a_second_fit_warns_and_adds_up(case, charges):
    X, y = case.private()
    model = case.make().fit(X, y, **case.public)
    first = private_charges(charges)
    with pytest.warns(PrivacyLeakWarning, match="used before in this process") as caught:
        model.fit(X, y, **case.public)
    assert {each.filename for each in caught if each.category is PrivacyLeakWarning} == {__file__}
    assert not model.spent_ <= model.guarantee_
    check_stated(model.spent_, [first] * 2)


@every_case
def test_a_loop_of_refits_adds_up_in_every_form_of_the_rows(case, charges):
    pandas = pytest.importorskip("pandas")
    X, y = case.private()
    model = case.make().fit(X, y, **case.public)
    first = private_charges(charges)
    order = np.random.default_rng(0).permutation(len(X))
    clone(model).fit(X[order], None if y is None else y[order], **case.public)
    clone(model).fit(X.astype(np.float32), y, **case.public)
    clone(model).fit(np.asfortranarray(X), y, **case.public)
    last = clone(model).fit(pandas.DataFrame(X).to_numpy().copy(), y, **case.public)
    check_stated(last.spent_, [first] * 5)
    assert last.guarantee_ == model.guarantee_


@every_case
def test_cross_validation_and_grid_search_add_up(case, charges):
    """Three folds and a fit, then two candidates on other folds and the refit: eight uses of every row."""
    X, y = case.private()
    folds, scoring = PrivateKFold(3), lambda *_: 0.0
    cross_val_score(case.make(), X, y, cv=folds, scoring=scoring, params=case.public)
    last = case.make().fit(X, y, **case.public)
    first, second = [0, 1, 2, None], [0, 1, 2, 0, 1, 2, None]
    if case.name == "PrivateSummarizer":  # whose other owners take part in every fit
        first, second = [None] * 4, [None] * 7
    check_worst_folds(last.spent_, fits_of(charges, 4), folds=[first])
    search = GridSearchCV(case.make(), {"insecure_seed": [None, None]}, cv=folds, scoring=scoring)
    search.fit(X, y, **case.public)
    found = search.best_estimator_
    check_worst_folds(found.spent_, fits_of(charges, 11), folds=[first, second])
    assert found.guarantee_ == last.guarantee_


def fits_of(charges, count):
    """The prices of each of so many fits."""
    prices = private_charges(charges)
    each = len(prices) // count
    assert len(prices) == each * count
    return [prices[at : at + each] for at in range(0, len(prices), each)]


def check_worst_folds(spent, fits, *, folds):
    """The rows that lost most are in one fold of each division: fits had them that did not leave it out."""
    totals = []
    for own in itertools.product(range(3), repeat=len(folds)):
        has = [left_out != fold for fold, some in zip(own, folds, strict=True) for left_out in some]
        totals.append(total_of([fit for fit, used in zip(fits, has, strict=True) if used]))
    assert spent.epsilon == pytest.approx(max(epsilon for epsilon, _ in totals), rel=1e-9)
    assert getattr(spent, "delta", 0.0) == pytest.approx(totals[0][1], rel=1e-9)


class Bound(ClassifierMixin, BaseEstimator):
    """An estimator with its public side, so that an ensemble needs the private rows only."""

    def __init__(self, model=None, public=None):
        self.model = model
        self.public = public

    def fit(self, X, y):
        self.classes_ = np.asarray(CLASSES)
        self.fitted_ = clone(self.model).fit(X, y, **self.public)
        return self

    def predict(self, X):
        return self.fitted_.predict(X)


@pytest.mark.parametrize("case", [case for case in CASES if case.label == "class"], ids=lambda c: c.name)
def test_what_a_bagging_ensemble_spends_is_unknown(case):
    """It draws rows by place: in a sorted file, one replaced row moves others in and out of its samples."""
    X, y = case.private()
    codes = (y == CLASSES[1]).astype(int)
    model = case.make(**({"classes": (0, 1)} if "classes" in case.settings else {}))
    public = {
        key: (np.asarray(value) == CLASSES[1]).astype(int) if key == "ys" else value
        for key, value in case.public.items()
    }
    bag = BaggingClassifier(
        Bound(model, public), n_estimators=5, max_samples=0.4, bootstrap=False, random_state=0
    )
    bag.fit(X, codes)
    for each in bag.estimators_:
        assert each.fitted_.guarantee_ == bag.estimators_[0].fitted_.guarantee_
        with pytest.raises(InputError, match="PrivateKFold"):
            _ = each.fitted_.spent_


def test_what_scikit_learns_folds_and_curves_spend_is_unknown():
    case = CASES[0]
    X, y = case.private()
    cross_val_score(case.make(), X, y, cv=3, scoring=lambda *_: 0.0)
    last = case.make().fit(X, y)
    with pytest.raises(InputError, match="PrivateKFold"):
        _ = last.spent_
    model = case.make(dataset=Dataset(table="curve"))
    learning_curve(model, X / 2, y, cv=PrivateKFold(3), train_sizes=[0.5, 1.0], scoring=lambda *_: 0.0)
    model.fit(X / 2, y)
    with pytest.raises(InputError, match="PrivateKFold"):
        _ = model.spent_


@pytest.mark.parametrize("relation", ["add/remove", "replace-one"])
def test_what_folds_by_place_of_a_sorted_file_spend_is_not_stated(relation):
    """One replaced row moves all rows between its two places, and many of them to the other fold."""
    X = np.repeat([[0.2, 0.2], [0.8, 0.8]], 500, axis=0) + np.linspace(0, 0.01, 1000)[:, None]
    y = np.asarray(CLASSES)[np.arange(1000) % 2]
    model = CASES[0].make(relation=relation, size=500)
    folds = KFold(2, shuffle=True, random_state=0)
    for rows, _ in folds.split(X):
        model.fit(X[rows], y[rows])
    with pytest.raises(InputError, match=r"PrivateKFold.*Dataset\(table=\.\.\.\)"):
        _ = model.spent_
    assert model.guarantee_.epsilon == 0.5


@every_case
def test_other_rows_start_anew(case):
    X, y = case.private(0)
    first = case.make(dataset=Dataset(table="first")).fit(X, y, **case.public)
    X, y = case.private(1)
    public = dict(case.public)
    if "owners" in public:
        public["owners"] = {name: rows / 2 for name, rows in public["owners"].items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        model = case.make(dataset=Dataset(table="second")).fit(X, y, **public)
    assert model.spent_ == model.guarantee_ == first.spent_


@every_case
def test_other_rows_without_a_name_may_be_another_part_of_the_same_table(case):
    X, y = case.private(0)
    first = case.make().fit(X, y, **case.public)
    X, y = case.private(1)
    second = case.make().fit(X, y, **case.public)
    for model in (first, second):
        with pytest.raises(InputError, match="name each table"):
            _ = model.spent_


@every_case
def test_a_fit_that_fails_after_its_charge_is_remembered(case, monkeypatch):
    X, y = case.private()
    with monkeypatch.context() as broken:
        broken.setattr("privada.parties.owner.answer_rows", lambda *_, **__: 1 / 0)
        with pytest.raises(Exception, match=r"failed|after its charge|too few|answer"):
            case.make().fit(X, y, **case.public)
    model = case.make().fit(X, y, **case.public)
    assert model.spent_.epsilon > model.guarantee_.epsilon


def ledger_for(case, times=10.0):
    """A ledger in memory with a budget for the private rows, and for a summary's other owners."""
    relation = case.make().fit(*case.private(5), **case.public).guarantee_.relation
    ledger = Ledger.open(":memory:", OwnerKey.generate())
    for name in ("patients", "a", "b"):
        if "delta" in case.settings:
            budget = ApproxDP(epsilon=times, delta=1e-5, relation=relation)
        else:
            budget = PureDP(epsilon=times, relation=relation)
        ledger.open_budget(name, budget)
    return ledger


@every_case
def test_a_given_ledger_survives_clone_and_is_charged_for_every_fit(case):
    X, y = case.private()
    with ledger_for(case) as ledger:
        model = case.make(dataset=Dataset("patients", ledger=ledger))
        assert clone(model).dataset.ledger is ledger
        cross_val_score(model, X, y, cv=KFold(3), scoring=lambda *_: 0.0, params=case.public)
        lines = [line for line in ledger.lines("patients") if line.price is not None]
        assert len(lines) % 3 == 0
        assert len({line.question for line in lines}) == len(lines)
        model.fit(X, y, **case.public)
        assert len([line for line in ledger.lines("patients") if line.price]) == len(lines) * 4 // 3
        if case.name != "PrivateSummarizer":
            assert model.spent_ == ledger.spent("patients")
        ledger.verify()


@every_case
def test_a_ledger_is_a_limit(case):
    X, y = case.private()
    with ledger_for(case, times=0.8) as ledger:
        model = case.make(dataset=Dataset("patients", ledger=ledger))
        with pytest.raises((BudgetError, InputError), match=r"budget|too few|owners"):
            for _ in range(12):
                model.fit(X, y, **case.public)
        assert len([line for line in ledger.lines("patients") if line.price is not None]) < 24


def owner_for(case, ledger_size=20.0):
    X, y = case.private()
    made = case.make().fit(*case.private(5), **case.public)
    label = {
        "class": Category(name="label", values=CLASSES),
        "number": Number(name="label", low=0, high=1),
        "none": None,
    }[case.label]
    if "delta" in case.settings:
        budget = ApproxDP(epsilon=ledger_size, delta=1e-5, relation=made.guarantee_.relation)
    else:
        budget = PureDP(epsilon=ledger_size, relation=made.guarantee_.relation)
    low = -2.0 if case.name == "SourceTargetMedoids" else 0.0
    high = 2.0 if case.name == "SourceTargetMedoids" else 1.0
    schema = Schema.of_numbers(bounds=(low, high), width=2, size=ROWS, label=label)
    return Owner(X, y=y, schema=schema, dataset="clinic", budget=budget)


@every_case
def test_an_owner_stands_in_the_place_of_the_rows(case):
    owner = owner_for(case)
    model = case.make(**({"size": ROWS} if "size" in case.settings and "gamma" not in case.settings else {}))
    model.fit(owner=owner, **case.public)
    assert [line.price for line in owner.ledger.lines("clinic") if line.price is not None]
    assert model.n_features_in_ == 2
    if case.name != "PrivateSummarizer":
        assert model.spent_ == owner.ledger.spent("clinic")
    private = "Xt" if "Xs" in case.public else "X"
    with pytest.raises(InputError, match=f"Expected no {private} beside owner="):
        model.fit(owner=owner, **({private: np.zeros((3, 2))} | case.public))


@every_case
def test_what_is_not_an_owner_or_ledger_is_refused_before_any_charge(case, charges):
    X, y = case.private()
    with pytest.raises(InputError, match="Expected owner to be an Owner, got str"):
        case.make().fit(owner="clinic", **case.public)
    with pytest.raises(InputError, match="Expected ledger to be a Ledger, a path or a URL, got int"):
        case.make(dataset=Dataset("patients", ledger=3)).fit(X, y, **case.public)
    with pytest.raises(InputError, match="ledger"):
        case.make(dataset="patients").fit(X, y, **case.public)
    assert private_charges(charges) == []


def test_warnings_double():
    case = CASES[0]
    X, y = case.private()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", PrivacyLeakWarning)
        for _ in range(9):
            case.make().fit(X, y)
    assert len(said) == 3  # at the second, fourth and eighth use
    assert issubclass(PrivacyLeakWarning, PrivadaWarning)
