from datetime import date, datetime

import pytest

from privada.exceptions import InputError, LedgerError, TamperError
from privada.privacy import ZCDP, OwnerKey, PureDP
from privada.privacy.accounting.filters import open_filter
from privada.privacy.accounting.vintage import Vintage, add_up
from privada.privacy.guarantee import ApproxDP
from privada.privacy.ledger import Ledger
from privada.privacy.ledger.account import Account
from privada.privacy.ledger.lines import opening
from privada.privacy.ledger.verify import verify

AR = "add/remove"
ONE = PureDP(epsilon=1, relation=AR)


def year(number, *, of="patients", column="admitted", months=12):
    until = date(number + months // 12, 1 + months % 12, 1)
    return Vintage(of=of, name=str(number), column=column, since=date(number, 1, 1), until=until)


@pytest.fixture
def ledger():
    with Ledger.open(":memory:", OwnerKey.generate()) as made:
        yield made


def test_periods_are_half_open():
    assert not year(2025).overlaps(year(2026))
    assert year(2025, months=13).overlaps(year(2026))
    assert Vintage.from_dict(year(2026).to_dict()) == year(2026)


@pytest.mark.parametrize(
    "wrong",
    [
        {"since": "2027-01-01"},
        {"since": "01/02/2026"},
        {"until": datetime(2027, 1, 1)},  # noqa: DTZ001 - refused for being a time at all
        {"until": 2027},
        {"name": ""},
        {"of": "a\nb"},
        {"column": "x" * 91},
    ],
)
def test_what_makes_no_vintage(wrong):
    with pytest.raises(InputError, match=f"Expected {next(iter(wrong))}"):
        Vintage(**(year(2026).to_dict() | wrong))


def test_each_period_has_a_budget_of_its_own_which_is_on_line_0(ledger):
    for number in (2025, 2026):
        ledger.open_budget(f"patients-{number}", ONE, vintage=year(number))
    assert ledger.datasets() == ("patients-2025", "patients-2026")
    (line,) = ledger.lines("patients-2026")
    assert line.detail["vintage"]["since"] == "2026-01-01"
    assert ledger.vintage("patients-2026") == year(2026)
    assert ledger.export()["datasets"]["patients-2025"]["vintage"] == year(2025).to_dict()
    assert ledger.check_budget("patients-2026", ONE, vintage=year(2026)) == "patients-2026"
    assert ledger.verify().datasets == 2


@pytest.mark.parametrize(
    ("name", "vintage", "said"),
    [
        ("patients-2026", year(2026, months=6), "is for rows of 'patients'"),  # the same name, another period
        ("patients-2026", None, "it cannot become one for all rows"),
        ("patients-2025", year(2025, months=13), "a second budget for some of them"),
        ("Patients-2025", year(2025, of="Patients", months=13), "a second budget for some"),
        ("patients-2027", year(2027, column="born"), "a row could be in two of them"),
        ("patients", None, "has vintages, such as 'patients-2026'"),
        ("PATIENTS", None, "has vintages"),
        ("patients-2026-2027", year(2027, of="patients-2026"), "has a budget for all of its rows"),
    ],
)
def test_a_second_budget_for_the_same_rows_is_refused(ledger, name, vintage, said):
    ledger.open_budget("patients-2026", ONE, vintage=year(2026))
    with pytest.raises(LedgerError, match=said):
        ledger.open_budget(name, ONE, vintage=vintage)
    assert ledger.datasets() == ("patients-2026",)


def test_a_vintage_beside_a_budget_of_all_rows_is_refused(ledger):
    ledger.open_budget("patients", ONE)
    with pytest.raises(LedgerError, match="has a budget for all of its rows"):
        ledger.open_budget("patients-2026", ONE, vintage=year(2026))
    ledger.open_budget("visits-2026", ONE, vintage=year(2026, of="visits", column="day"))


def test_a_running_owner_cannot_move_the_period(ledger):
    ledger.open_budget("patients-2026", ONE, vintage=year(2026))
    for other in (year(2026, months=13), None):
        with pytest.raises(LedgerError, match="cannot become"):
            ledger.check_budget("patients-2026", ONE, vintage=other)
    with pytest.raises(InputError, match="Expected dataset to be 'patients-2026'"):
        ledger.open_budget("patients", ONE, vintage=year(2026))


def test_verification_finds_two_budgets_for_the_same_rows():
    key, keeps = OwnerKey.generate(), open_filter(ONE)
    accounts = [
        Account.opened(name, keeps, year(2026, months=months)) for name, months in (("a", 12), ("b", 6))
    ]
    chains = {each.dataset: [opening(each.dataset, each, key)] for each in accounts}
    with pytest.raises(TamperError, match="Line 0 of 'b' opens a second budget"):
        verify(chains, (), public=key.public)
    assert verify({"a": chains["a"]}, (), public=key.public).datasets == 1


def test_losses_of_a_person_in_several_vintages_add_up():
    assert add_up([ONE]) == ONE
    tenth = PureDP(epsilon=0.1, relation=AR)
    assert 0.3 < add_up([tenth] * 3).epsilon < 0.3 + 1e-12
    rho = ZCDP(rho=0.25, relation=AR)
    assert add_up([rho, rho]).rho == pytest.approx(0.5)
    both = add_up([ApproxDP(epsilon=1, delta=1e-6, relation=AR)] * 2)
    assert (both.epsilon, both.delta) == pytest.approx((2, 2e-6))
    assert add_up([ONE, rho]) is None
    assert add_up([ONE, PureDP(epsilon=1, relation="replace-one")]) is None
