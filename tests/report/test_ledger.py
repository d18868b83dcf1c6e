import dp_accounting
import pytest

from privada.privacy import Approximate, Ledger, OwnerKey, Price
from privada.report import budgets_table, lines_table

BUDGET = Approximate(epsilon=2, delta=1e-6, relation="add/remove")


@pytest.fixture
def ledger():
    made = Ledger.open(":memory:", OwnerKey.generate())
    made.open_budget("patients", BUDGET)
    one = Approximate(epsilon=0.5, delta=1e-6, relation="add/remove")
    price = Price(event=dp_accounting.GaussianDpEvent(8.0576), guarantee=one)
    made.charge("patients", price, question="ab" * 32, purpose="cells.statistics")
    made.note("patients", text="raw rows to the curator: not differentially private")
    return made


def test_tables_agree_with_the_ledger(ledger):
    (row,) = budgets_table(ledger.export()).to_dict()
    assert row["spent"] == str(ledger.spent("patients"))
    assert row["left"] == f"{100 * ledger.remaining('patients').share:.3g}%"
    assert row["lines"] == "3"


def test_a_sum_that_is_no_guarantee_is_not_stated_as_one(ledger):
    budget = Approximate(epsilon=2, delta=1e-6, relation="add/remove")
    ledger.open_budget("visits", budget, "gaussian")
    price = Price(event=dp_accounting.GaussianDpEvent(20.0), guarantee=budget)
    ledger.charge("visits", price, question="cd" * 32)
    row = budgets_table(ledger.export("visits")).to_dict()[0]
    assert row["spent"] == f"at most {budget}"


def test_lines_always_name_the_relation_or_that_there_is_no_guarantee(ledger):
    said = [row["guarantee"] for row in lines_table(ledger.export()).to_dict()]
    assert said[0] == "opens (ε = 2, δ = 1e-06), add/remove one row"
    assert "add/remove" in said[1]
    assert said[2] == "not differentially private"


def test_last_and_after(ledger):
    last = lines_table(ledger.export(), last=1)
    assert (len(last.rows), last.note) == (1, "2 earlier lines are not shown.")
    assert [row["line"] for row in lines_table(ledger.export(), after=0).to_dict()] == ["1", "2"]
