"""What is public of the private rows of a fit."""

import pytest
from sklearn.base import clone

from privada import CellClassifier, Dataset, Ledger, OwnerKey
from privada.exceptions import InputError
from privada.methods.transport.wasserstein import private_wasserstein
from privada.parties.one_process.dataset import read_dataset


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
