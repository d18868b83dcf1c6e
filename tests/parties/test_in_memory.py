from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from privada import CellStatistics, NearestCells, Question, Schema
from privada.exceptions import BudgetError, GuaranteeError, RelationError
from privada.parties.in_memory import cover, owner_in_memory
from privada.privacy import ZCDP, ApproxDP, Laplace, PureDP
from privada.privacy.accounting import accountant
from privada.privacy.mechanism import Plan

AR = "add/remove"
SCHEMA = Schema.of_numbers(bounds=(0, 1), width=1)
ROWS = np.full((9, 1), 0.1)
BUDGETS = {
    "pure": PureDP(epsilon=1, relation=AR),
    "zcdp": ZCDP(rho=0.1, relation=AR),
    "approximate": ApproxDP(epsilon=1, delta=1e-6, relation=AR),
}


def asked(guarantee, salt=""):
    cells = NearestCells(centers=np.array([[0.2], [0.8]]))
    return CellStatistics(tables=(cells,), guarantee=guarantee, salt=salt)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ByDistribution(Question):
    """Laplace noise for (epsilon, delta): a privacy-loss distribution shows it, no filter's sum does."""

    epsilon: float = 1.0
    kind: ClassVar[str] = "test.by-distribution"
    answered_by: ClassVar[str] = "nobody:answer"

    def planned(self):
        return Plan(draws={"count": Laplace.calibrated(sensitivity=1, epsilon=self.epsilon)})


@pytest.mark.parametrize("kind", BUDGETS)
def test_a_question_is_paid_from_its_own_guarantee_and_uses_it_up(kind):
    budget = BUDGETS[kind]
    owner = owner_in_memory(ROWS, [asked(budget)], schema=SCHEMA, budget=budget)
    assert owner.answer(asked(budget)).guarantee == budget
    with pytest.raises(BudgetError):
        owner.answer(asked(budget, "again"))


@pytest.mark.parametrize("kind", BUDGETS)
def test_parts_of_a_budget_are_paid_together(kind):
    budget = BUDGETS[kind]
    parts = [asked(budget.part(0.25), "1"), asked(budget.part(0.75), "2")]
    owner = owner_in_memory(ROWS, parts, schema=SCHEMA, budget=budget)
    for question in parts:
        assert owner.answer(question).guarantee == question.guarantee
    with pytest.raises(BudgetError):
        owner.answer(asked(budget.part(0.25), "3"))


def test_one_rule_of_accounting():
    pure, zcdp, approximate = BUDGETS.values()
    assert cover([asked(pure)], pure) == (pure, None)
    assert cover([asked(zcdp)], zcdp) == (zcdp, None)
    assert cover([asked(approximate)], approximate) == (approximate, "gaussian")
    assert cover([], approximate) == (approximate, "gaussian")
    laplace = asked(PureDP(epsilon=0.1, relation=AR))
    assert cover([laplace], approximate) == (approximate, None), "not its own guarantee: the usual filter"
    assert cover([laplace, asked(approximate)], approximate) == (approximate, None)


def test_a_guarantee_by_distribution_opens_what_the_ledger_charges():
    budget = BUDGETS["approximate"]
    question = ByDistribution(guarantee=budget)
    opened, accounting = cover([question], budget)
    assert accounting is None
    assert isinstance(opened, ZCDP)
    assert opened.rho == pytest.approx(accountant.zcdp(question.price.event), rel=1e-8)
    owner = owner_in_memory(ROWS, [question], schema=SCHEMA, budget=budget)
    assert owner.price(question).affordable
    assert owner.price(question).share == pytest.approx(1.0, abs=1e-6)


def test_a_plan_that_does_not_keep_its_guarantee_opens_nothing():
    question = ByDistribution(epsilon=3.0, guarantee=BUDGETS["approximate"])
    with pytest.raises(GuaranteeError):
        cover([question], question.guarantee)


def test_several_questions_never_get_more_than_the_budget():
    question = ByDistribution(guarantee=BUDGETS["approximate"])
    assert cover([question, question], question.guarantee) == (question.guarantee, None)
    owner = owner_in_memory(ROWS, [question] * 2, schema=SCHEMA, budget=question.guarantee)
    assert not owner.price(question).affordable


def test_questions_are_refused_as_by_any_owner():
    owner = owner_in_memory(ROWS, [], schema=SCHEMA, budget=BUDGETS["pure"])
    with pytest.raises(RelationError):
        owner.answer(asked(PureDP(epsilon=1, relation="attribute")))
