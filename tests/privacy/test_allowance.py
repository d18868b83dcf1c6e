"""An allowance is a part of a budget, in its terms, for a time."""

from datetime import date

import pytest

from privada.exceptions import InputError, PolicyError
from privada.privacy import ZCDP, ApproxDP, PureDP, Unit
from privada.privacy.accounting.allowance import Allowance, check_part

AR = "add/remove"
KEY = "ab" * 32


def test_a_learner_may_ask_until_the_end_of_its_last_day():
    allowance = Allowance.of("alice", KEY, expires=date(2027, 1, 31))
    allowance.check_term("2027-01-31T23:59:59.999999+00:00")
    with pytest.raises(PolicyError, match=r"'alice' may not ask any more: its last day was 2027-01-31"):
        allowance.check_term("2027-02-01T00:00:00.000000+00:00")
    Allowance.of("alice", KEY).check_term("9999-01-01T00:00:00.000000+00:00")


def test_an_allowance_counts_as_the_budget_does():
    most = ApproxDP(epsilon=0.5, delta=1e-6, relation=AR)
    assert Allowance.of("alice", KEY, most).filter.name == "renyi"
    assert Allowance.of("alice", KEY, most, accounting="gaussian").filter.name == "gaussian"
    assert Allowance.of("alice", KEY).filter is None


BUDGET = ApproxDP(epsilon=1, delta=1e-6, relation=AR)


@pytest.mark.parametrize(
    "part",
    [
        ApproxDP(epsilon=1.1, delta=1e-6, relation=AR),
        ApproxDP(epsilon=0.5, delta=1e-5, relation=AR),
        ApproxDP(epsilon=0.5, delta=1e-6, relation="replace-one"),
        ApproxDP(epsilon=0.5, delta=1e-6, relation=AR, unit=Unit(name="person", max_rows=2)),
        PureDP(epsilon=0.5, relation=AR),
        ZCDP(rho=0.1, relation=AR),
    ],
)
def test_what_is_no_part_of_the_budget_is_refused(part):
    assert check_part(BUDGET, BUDGET) is BUDGET
    with pytest.raises(InputError, match="The allowance is"):
        check_part(part, BUDGET)
