"""One name, one budget: what looks like a known name opens no second budget."""

import pytest

from privada.exceptions import LedgerError
from privada.privacy.ledger.names import check_distinct, normal_name
from tests.privacy.ledger.cases import BUDGET


@pytest.mark.parametrize(
    "name",
    ["patients 2024", " patients 2024", "patients\u00a02024 ", "patients\t 2024", "\uff50atients 2024"],
)
def test_names_that_differ_in_spaces_and_forms_are_one(name):
    assert normal_name(name) == "patients 2024"
    assert normal_name(normal_name(name)) == normal_name(name)


@pytest.mark.parametrize("name", ["Patients", "PATIENTS", "patient\u017f"])
def test_a_name_that_differs_in_case_only_is_refused(ledger, name):
    with pytest.raises(LedgerError, match="would be taken for it"):
        check_distinct(normal_name(name), ["others", "patients"])
    ledger.open_budget("patients", BUDGET)
    with pytest.raises(LedgerError):
        ledger.open_budget("Patients", BUDGET)
    assert ledger.datasets() == ("patients",)


def test_other_names_are_distinct():
    check_distinct("patients 2024", ["patients", "patients 2023", "patient 2024"])
