import dp_accounting
import pytest

from privada.privacy import ApproxDP, Asker, Ledger, OwnerKey, Price, PureDP
from privada.privacy.accounting.filters import Vintage
from privada.privacy.relation import Unit
from privada.report import budgets_table, lines_table
from privada.report.ledger import by_learner, learners_table, vintages_tables

BUDGET = ApproxDP(epsilon=2, delta=1e-6, relation="add/remove")


@pytest.fixture
def ledger():
    made = Ledger.open(":memory:", OwnerKey.generate())
    made.open_budget("patients", BUDGET)
    one = ApproxDP(epsilon=0.5, delta=1e-6, relation="add/remove")
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
    budget = ApproxDP(epsilon=2, delta=1e-6, relation="add/remove")
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


def test_lines_say_who_asked_and_who_decided(ledger):
    assert "who" not in lines_table(ledger.export()).columns
    alice = Asker("alice", "ab" * 32, project="stroke")
    price = Price(event=dp_accounting.GaussianDpEvent(20.0), guarantee=BUDGET)
    ledger.approve("patients", "cd" * 32, by="Dr Who", asker=alice)
    ledger.charge("patients", price, question="cd" * 32, asker=alice, approver="Dr Who")
    ledger.refuse("patients", question="ef" * 32, reason="too much", asker=alice)
    rows = lines_table(ledger.export()).to_dict()[3:]
    assert [row["who"] for row in rows] == ["alice, by Dr Who", "alice, by Dr Who", "alice"]
    assert [row["what"] for row in rows] == ["approved", "charge", "too much"]
    assert [row["guarantee"] for row in rows] == ["nothing charged", str(BUDGET), "nothing charged"]


def test_by_learner_the_shares_are_those_of_the_lines(ledger):
    alice, bob = Asker("alice", "ab" * 32, project="stroke"), Asker("bob", "cd" * 32)
    price = Price(event=dp_accounting.GaussianDpEvent(20.0), guarantee=BUDGET)
    for who in (alice, bob, alice):
        ledger.charge("patients", price, question="cd" * 32, asker=who)
    ledger.refuse("patients", question="ef" * 32, reason="too much", asker=bob)
    nobody, one, other = by_learner(ledger.export())
    assert (nobody["learner"], nobody["charges"]) == ("", 1)
    assert (one["learner"], one["charges"], one["projects"]) == ("alice", 2, ["stroke"])
    assert (other["charges"], other["refusals"]) == (1, 1)
    spent = ledger.export()["datasets"]["patients"]
    shares = nobody["share"] + one["share"] + other["share"]
    assert shares == pytest.approx(spent["spent"] / spent["capacity"])
    table = learners_table(ledger.export())
    assert [row["learner"] for row in table.to_dict()] == ["(not named)", "alice", "bob"]


def open_years(ledger, *years, of="visits", **guarantee):
    for year in years:
        days = {"since": f"{year}-01-01", "until": f"{year + 1}-01-01"}
        vintage = Vintage(of=of, name=str(year), column="day", **days)
        ledger.open_budget(vintage.dataset, PureDP(epsilon=1.5, **guarantee), vintage=vintage)


def test_vintages_stand_together_with_what_holds_over_all_of_them(ledger):
    assert vintages_tables(ledger.export()) == []
    open_years(ledger, 2026, 2025, relation="add/remove")
    (table,) = vintages_tables(ledger.export())
    assert table.title == "Vintages of visits"
    assert [row["vintage"] for row in table.to_dict()] == ["2025", "2026"]
    assert table.to_dict()[0]["rows"] == "day from 2025-01-01 and before 2026-01-01"
    assert table.to_dict()[0]["left"] == "100%"
    assert table.note.startswith("A row is in one vintage")
    assert "public" not in table.note
    opened = lines_table(ledger.export("visits-2026")).to_dict()[0]["guarantee"]
    assert opened.endswith("for rows of 'visits' whose 'day' is from 2026-01-01 and before 2027-01-01")


def test_what_vintages_do_not_protect_is_said(ledger):
    open_years(ledger, 2025, 2026, relation="replace-one")
    assert "is not protected" in vintages_tables(ledger.export())[-1].note
    persons = Unit(name="person", max_rows=3)
    open_years(ledger, 2025, 2026, of="stays", relation="add/remove", unit=persons)
    note = vintages_tables(ledger.export())[0].note  # in the order of their names
    assert "losses add up; in all of them, to at most ε = 3 (pure), add/remove one person" in note
