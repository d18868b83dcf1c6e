"""What an estimator states is what its rows have lost by now, and never what they had lost once."""

import copy
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate

from privada import Category, CellClassifier, Dataset, Ledger, Owner, OwnerKey, PureDP, Schema
from privada.exceptions import InputError, PrivacyLeakWarning
from privada.model_selection import PrivateKFold
from privada.parties.one_process.process_ledger import Statement, join_statements

pytestmark = pytest.mark.filterwarnings("ignore::privada.exceptions.PrivadaWarning")
SETTINGS = {"centers": [[0.2, 0.2], [0.8, 0.8]], "classes": (0, 1), "bounds": (0, 1), "epsilon": 0.5}
BUDGET = PureDP(epsilon=4, relation="add/remove")
X = np.random.default_rng(0).uniform(size=(90, 2))
Y = (X[:, 0] > 0.5).astype(int)


def make(**more):
    return CellClassifier(**(SETTINGS | more))


def spent(*models):
    return [model.spent_.epsilon for model in models]


@pytest.fixture
def ledger():
    with Ledger.open(":memory:", OwnerKey.generate()) as ledger:
        ledger.open_budget("a", BUDGET)
        ledger.open_budget("b", BUDGET)
        yield ledger


@pytest.fixture
def place(tmp_path):
    place, key = tmp_path / "study.db", OwnerKey.generate()
    key.save(f"{place}.key")
    with Ledger.open(place, key) as ledger:
        ledger.open_budget("a", BUDGET)
    return place


def owner():
    label = Category(name="label", values=(0, 1))
    schema = Schema.of_numbers(bounds=(0, 1), width=2, label=label)
    return Owner(X, y=Y, schema=schema, dataset="clinic", budget=BUDGET)


def test_a_later_fit_is_in_the_statement_of_an_earlier_one():
    first = make(dataset=Dataset(table="all"))
    assert not hasattr(first, "spent_")
    first.fit(X, Y)
    assert spent(first) == [0.5]
    second = make(dataset=Dataset(table="children")).fit(X[:10], Y[:10])
    assert spent(first, second) == [1.0, 1.0]
    third = make(dataset=Dataset(table="adults")).fit(X[20:], Y[20:])
    assert spent(first, second, third) == [1.0, 1.0, 1.0]
    assert first.guarantee_.epsilon == 0.5


def test_every_member_of_an_ensemble_states_what_all_of_them_cost():
    folds = PrivateKFold(3)
    found = cross_validate(make(), X, Y, cv=folds, return_estimator=True)["estimator"]
    assert spent(*found) == [1.0] * 3
    half = make(dataset=Dataset(table="half"))
    calibrated = CalibratedClassifierCV(half, cv=folds).fit(X / 2, Y).calibrated_classifiers_
    assert spent(*(each.estimator for each in calibrated)) == [1.0] * 3
    pair = [(name, make(dataset=Dataset(table="third"))) for name in ("one", "two")]
    stacked = StackingClassifier(pair, LogisticRegression(), cv=folds).fit(X / 3, Y)
    assert spent(*stacked.estimators_) == [3.0] * 2  # of two, each fitted whole and in two of three folds


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_and_pickles_go_on_with_it(again):
    model = make().fit(X, Y)
    other = again(model)
    model.fit(X, Y)
    assert spent(model, other) == [1.0, 1.0]
    other.fit(X, Y)
    assert spent(model, other) == [1.5, 1.5]


def test_another_process_states_what_was_known_when_it_was_pickled(tmp_path):
    model = make().fit(X, Y)
    make().fit(X, Y)
    joblib.dump(model, tmp_path / "model.joblib")
    script = f"import joblib; print(joblib.load({str(tmp_path / 'model.joblib')!r}).spent_)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("ε = 1 (pure)")


def test_a_pickle_holds_no_fingerprint():
    model = make().fit(X, Y)
    written = pickle.dumps(model)
    assert len(model._statement.uses) == 1
    for use in model._statement.uses:
        assert len(use.rows) == len(X)
        assert not any(int(each).to_bytes(8, sys.byteorder) in written for each in use.rows)


def test_a_ledger_does_not_hide_what_the_process_used_before(ledger):
    make().fit(X, Y)
    with pytest.warns(PrivacyLeakWarning, match="used before in this process"):
        model = make(dataset=Dataset("a", ledger=ledger)).fit(X, Y)
    assert spent(model) == [1.0]
    make(dataset=Dataset("a", ledger=ledger)).fit(X / 2, Y)
    assert spent(model) == [1.5]  # a budget is of a data set, whatever its rows are
    other = make(dataset=Dataset("b", ledger=ledger)).fit(X, Y)
    assert spent(other) == [1.5]
    make().fit(X / 2, Y)
    assert spent(other, model) == [1.5, 2.0]


def test_a_ledger_that_is_closed_is_stated_as_it_was_last(ledger):
    model = make(dataset=Dataset("a", ledger=ledger)).fit(X, Y)
    ledger.close()
    assert spent(model) == [0.5]


def test_fits_of_worker_processes_are_read_from_the_ledger(place):
    model = make(dataset=Dataset("a", ledger=str(place)))
    found = cross_validate(model, X, Y, cv=3, n_jobs=2, return_estimator=True, error_score="raise")
    assert spent(*found["estimator"]) == pytest.approx([1.5] * 3)
    place.rename(f"{place}.moved")
    assert spent(*found["estimator"]) == pytest.approx([1.5] * 3)  # as it was last read


def test_an_owner_and_arrays_of_the_same_rows_add_up():
    model = make().fit(owner=owner())
    other = make().fit(X, Y)
    assert spent(model, other) == [1.0, 1.0]
    assert spent(make().fit(owner=owner()), other) == [1.5, 1.5]


def test_columns_of_a_frame_in_another_order_are_the_same_rows():
    frame = pd.DataFrame(X, columns=["u", "v"])
    model, other = make().fit(frame, Y), make().fit(frame[["v", "u"]], Y)
    assert spent(model, other) == [1.0, 1.0]
    assert spent(make().fit(X, Y), model) == [1.5, 1.5]


def test_what_is_unknown_stays_so_in_copies_and_other_processes(tmp_path):
    model = make().fit(X[:40], Y[:40])
    make().fit(X[40:], Y[40:])
    with pytest.raises(InputError, match="PrivateKFold"):
        _ = copy.deepcopy(model).spent_
    assert repr(model._statement) == "<Statement: unknown>"
    joblib.dump(model, tmp_path / "model.joblib")
    script = f"import joblib; joblib.load({str(tmp_path / 'model.joblib')!r}).spent_"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "divide them by PrivateKFold" in done.stderr


def test_an_undeclared_part_of_what_an_owner_holds_is_unknown(ledger):
    model = make().fit(owner=owner())
    part = make().fit(X[:40], Y[:40])
    for each in (model, part):
        with pytest.raises(InputError, match="PrivateKFold"):
            _ = each.spent_


def test_a_fork_is_a_worker_process():
    script = f"""
import os, numpy as np
from privada import CellClassifier
model = CellClassifier(**{SETTINGS!r})
if os.fork() == 0:
    try:
        model.fit(np.full((4, 2), 0.5), [0, 1, 0, 1])
    except Exception as error:
        print(error)
else:
    os.wait()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "Expected a Dataset with a ledger in a worker process" in done.stdout


def test_public_rows_have_no_statement():
    assert Statement().read() is None
    assert join_statements([Statement(), Statement(known=BUDGET)]).read() == BUDGET
    assert repr(Statement(known=BUDGET)) == f"<Statement: {BUDGET}>"
