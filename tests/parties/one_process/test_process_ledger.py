"""Each row has the uses that it had, and an estimator states what its rows have lost by now."""

import copy
import pickle
import subprocess
import sys
import threading

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate

from privada import (
    Category,
    CellClassifier,
    CellStatistics,
    Dataset,
    Ledger,
    NearestCells,
    Owner,
    OwnerKey,
    PureDP,
    Schema,
    Unit,
)
from privada.exceptions import InputError, PrivacyLeakWarning
from privada.model_selection import PrivateKFold
from privada.parties.one_process import process_ledger
from privada.parties.one_process.process_ledger import (
    GivenBudget,
    ProcessLedger,
    Statement,
    enter_rows,
    join_statements,
    open_ledger,
    public_rows,
)

EPSILON = PureDP(epsilon=0.25, relation="add/remove")
QUESTION = CellStatistics(tables=(NearestCells(centers=np.eye(2)),), guarantee=EPSILON)
ROWS = np.arange(40.0).reshape(20, 2)


@pytest.fixture
def book():
    return ProcessLedger()


def use(book, rows, guarantee=EPSILON, *, charged=True, table=None):
    """One use of rows, charged once and settled."""
    ledger = Ledger.open(":memory:", OwnerKey.generate())
    ledger.open_budget("fit", guarantee)
    made = book.enter(rows, guarantee=guarantee, ledger=ledger, dataset="fit", table=table)
    if charged:
        ledger.charge("fit", QUESTION.price, question=QUESTION.digest)
    made.settle()
    ledger.close()
    return made


def test_the_worst_row_counts(book):
    first = use(book, ROWS[:10], table="a")
    second = use(book, ROWS[5:15], table="b")
    third = use(book, ROWS[14:], table="c")
    assert [each.uses for each in (first, second, third)] == [1, 2, 2]
    assert [each.spent().epsilon for each in (first, second, third)] == [0.5, 0.5, 0.5]
    fourth = use(book, ROWS, table="d")
    assert fourth.uses == 3
    assert fourth.spent().epsilon == 0.75
    assert use(book, ROWS[:5], table="e").spent().epsilon == 0.75  # the fifth use of others is not theirs


def test_disjoint_rows_share_nothing(book):
    uses = [use(book, ROWS[at : at + 4], table=str(at)) for at in range(0, 20, 4)]
    assert {each.spent().epsilon for each in uses} == {0.25}


def test_a_use_that_was_never_charged_costs_nothing(book):
    use(book, ROWS, charged=False)
    assert use(book, ROWS).spent() == EPSILON


def test_a_use_that_is_still_open_counts_from_its_charge_on(book):
    ledger = Ledger.open(":memory:", OwnerKey.generate())
    ledger.open_budget("fit", EPSILON)
    book.enter(ROWS, guarantee=EPSILON, ledger=ledger, dataset="fit")
    other = use(book, ROWS)
    assert other.spent().epsilon == 0.25
    ledger.charge("fit", QUESTION.price, question=QUESTION.digest)
    assert other.spent().epsilon == 0.5
    ledger.close()


def test_many_threads_lose_no_use(book):
    threads = [
        threading.Thread(target=use, args=(book, ROWS[at:]), kwargs={"table": str(at)}) for at in range(16)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert use(book, ROWS[15:], table="last").spent().epsilon == pytest.approx(17 * 0.25)


def test_a_person_keeps_one_bound_on_its_rows(book):
    two, three = (
        PureDP(epsilon=0.25, relation="add/remove", unit=Unit(name="person", max_rows=most))
        for most in (2, 3)
    )
    use(book, np.array(["p", "q"]), two, charged=False)
    with pytest.raises(InputError, match="one unit in every fit.*at most 2 rows.*at most 3 rows"):
        use(book, np.array(["q", "r"]), three, charged=False)


def test_it_holds_few_bytes_a_row_and_cannot_be_taken_along(book):
    use(book, np.random.default_rng(0).normal(size=(5000, 30)))
    assert book._rows.nbytes + book._history.nbytes == 12 * 5000
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(book)
    assert repr(book) == "<ProcessLedger>"


def test_public_rows_are_not_noted(monkeypatch):
    monkeypatch.setattr(process_ledger.THE_LEDGER, "enter", lambda *_, **__: "noted")
    with public_rows():
        assert enter_rows(ROWS, guarantee=EPSILON, ledger=None, dataset="fit") is None
    assert enter_rows(ROWS, guarantee=EPSILON, ledger=None, dataset="fit") == "noted"


def test_a_worker_process_is_refused():
    script = """
import multiprocessing, numpy as np
from privada import CellClassifier
from privada.exceptions import InputError

def fit(_):
    try:
        CellClassifier([[0.0]], classes=(0, 1), bounds=(0, 1), epsilon=1).fit(np.zeros((4, 1)), [0, 1, 0, 1])
    except InputError as error:
        return str(error)

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(1) as pool:
        print(pool.map(fit, [0])[0])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "Expected a Dataset with a ledger in a worker process" in done.stdout


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


SMALL_BUDGET = PureDP(epsilon=2, relation="add/remove")
ONCE = PureDP(epsilon=0.5, relation="add/remove")


@pytest.fixture
def study(tmp_path):
    place = tmp_path / "study.db"
    open_budget(place)
    return place


def open_budget(place):
    key = OwnerKey.generate()
    key.save(f"{place}.key")
    with Ledger.open(place, key) as ledger:
        ledger.open_budget("patients", SMALL_BUDGET)


def charge(ledger):
    from privada import CellStatistics, NearestCells

    question = CellStatistics(tables=(NearestCells(centers=[[0.0]]),), guarantee=ONCE)
    ledger.charge("patients", question.price, question=question.digest)


def test_it_is_read_from_its_place_also_by_another_process(study):
    with open_ledger(study) as ledger:
        given = GivenBudget.of(ledger, "patients", study)
        assert given.read() is None
        given.release_ledger()
    carried = pickle.loads(pickle.dumps(given))
    with open_ledger(str(study)) as ledger:
        charge(ledger)
    assert given.read() == carried.read() == ONCE


def test_what_cannot_be_read_or_is_another_one_is_stated_as_it_was(study):
    with open_ledger(study) as ledger:
        charge(ledger)
        given = GivenBudget.of(ledger, "patients", study)
        given.release_ledger()
    for file in study.parent.glob("study.db*"):
        file.unlink()
    assert given.read() == ONCE
    open_budget(study)
    assert given.read() == ONCE  # and not None, which the new one would say


def test_budgets_of_one_name_are_told_apart():
    key, found = OwnerKey.generate(), set()
    for _ in range(3):
        with Ledger.open(":memory:", key) as ledger:
            for name in ("patients", "doctors"):
                ledger.open_budget(name, SMALL_BUDGET)
                found.add(GivenBudget.of(ledger, name, ledger).identity)
    assert len(found) == 6
