"""Which ledger pays for a fit, in which state it is left, and what is public of its rows."""

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone

from privada import CellClassifier, Dataset, Ledger, Owner, OwnerKey, PureDP, Schema
from privada.exceptions import BudgetError, InputError, LedgerError
from privada.methods.transport.wasserstein import private_wasserstein
from privada.parties.one_process.holding import hold_owner, read_dataset
from privada.parties.one_process.process_ledger import open_ledger

X = np.random.default_rng(0).uniform(size=(30, 1))
Y = (X[:, 0] > 0.5).astype(int)
SETTINGS = {"centers": [[0.2], [0.8]], "classes": (0, 1), "bounds": (0, 1), "epsilon": 0.5}
BUDGET = PureDP(epsilon=2, relation="add/remove")


@pytest.fixture
def place(tmp_path):
    """A ledger in a file, its key beside it, with a budget of four fits."""
    place, key = tmp_path / "study.db", OwnerKey.generate()
    key.save(tmp_path / "study.db.key")
    with Ledger.open(place, key) as ledger:
        ledger.open_budget("patients", BUDGET)
    return place


def test_a_path_is_opened_and_closed_for_each_fit(place):
    model = CellClassifier(**SETTINGS, dataset=Dataset("patients", ledger=place))
    for count in range(1, 5):
        model.fit(X, Y)
        assert model.spent_.epsilon == pytest.approx(0.5 * count)
    with pytest.raises(BudgetError, match="Nothing was charged"):
        model.fit(X, Y)
    with open_ledger(str(place)) as ledger:
        assert ledger.remaining("patients").share == 0
        ledger.verify()


def test_worker_processes_charge_one_ledger(place):
    model = CellClassifier(**SETTINGS, dataset=Dataset("patients", ledger=str(place)))
    Parallel(n_jobs=2)(delayed(model.fit)(X, Y) for _ in range(3))
    assert model.fit(X, Y).spent_ == BUDGET


def test_the_key_of_a_url_is_named_by_the_environment(place, monkeypatch):
    assert repr(open_ledger(f"sqlite:///{place}")).startswith("<Ledger")
    monkeypatch.delenv("PRIVADA_LEDGER_KEY", raising=False)
    with pytest.raises(InputError, match="Expected PRIVADA_LEDGER_KEY to name the key file"):
        open_ledger("postgresql+psycopg://nobody@localhost:1/none")


def test_what_is_missing_is_named_before_anything_is_opened(place, tmp_path):
    with pytest.raises(InputError, match="name a budget of its ledger; it has: patients"):
        CellClassifier(**SETTINGS, dataset=Dataset(ledger=place)).fit(X, Y)
    with pytest.raises(BudgetError, match="doctors"):
        CellClassifier(**SETTINGS, dataset=Dataset("doctors", ledger=place)).fit(X, Y)
    with pytest.raises(LedgerError):
        CellClassifier(**SETTINGS, dataset=Dataset("patients", ledger=tmp_path / "other.db")).fit(X, Y)
    OwnerKey.generate().save(tmp_path / "other.db.key")
    with pytest.raises(LedgerError):
        CellClassifier(**SETTINGS, dataset=Dataset("patients", ledger=tmp_path / "other.db")).fit(X, Y)
    assert not (tmp_path / "other.db").exists()


def test_an_owner_pays_from_its_own_ledger_and_answers_the_same_question_once():
    schema = Schema.of_numbers(bounds=(0, 1), width=1)
    owner = Owner(X, schema=schema, dataset="clinic", budget=BUDGET)
    assert hold_owner(owner, BUDGET).statement().read() is None
    with pytest.raises(InputError, match="Expected owner to be an Owner, got ndarray"):
        hold_owner(X, BUDGET)


def test_a_fit_without_the_ledger_knows_what_the_ledger_paid_for(place):
    with_ledger = CellClassifier(**SETTINGS, dataset=Dataset("patients", ledger=place))
    with_ledger.fit(X, Y)
    with_ledger.fit(X, Y)
    with_ledger.fit(1 - X, Y)
    assert CellClassifier(**SETTINGS).fit(X, Y).spent_.epsilon == pytest.approx(1.5)


def test_a_clone_charges_the_same_ledger(tmp_path):
    with Ledger.open(tmp_path / "clinic.db", OwnerKey.generate()) as ledger:
        model = clone(CellClassifier(dataset=Dataset("patients", ledger=ledger)))
        assert model.dataset.ledger is ledger


def test_a_name_needs_a_ledger_and_rows_of_a_person_are_counted():
    with pytest.raises(InputError, match="which ledger"):
        Dataset("patients")
    with pytest.raises(InputError, match="max_rows"):
        Dataset(max_rows=0)


def test_each_of_several_sources_has_a_name():
    assert Dataset().names(2) == (None, None)
    assert Dataset(("a", "b"), ledger="clinic.db").names(2) == ("a", "b")
    with pytest.raises(InputError, match="each of 2 sources"):
        Dataset("a", ledger="clinic.db").names(2)


def test_other_things_are_refused_with_the_form_that_is_expected():
    with pytest.raises(InputError, match=r'Dataset\("patients", ledger="clinic.db"\)'):
        read_dataset("patients")
    with pytest.raises(InputError, match="not persons"):
        private_wasserstein([[0.0]], [[0.0]], bounds=(0, 1), norm_bound=1, dataset=Dataset(max_rows=2))
