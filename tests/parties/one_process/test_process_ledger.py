"""Each row has the uses that it had, and no others."""

import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

from privada import CellStatistics, Ledger, NearestCells, OwnerKey, PureDP, Unit
from privada.exceptions import InputError
from privada.parties.one_process import process_ledger
from privada.parties.one_process.process_ledger import ProcessLedger, enter_rows, public_rows

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
