"""An owner in memory, for code that holds both sides in one process: estimators, demos and baselines.

Its budget pays for the questions that it is given and is gone with the process. There is one rule for how it
is accounted for (`cover`):

* a pure or zCDP budget by its own filter;
* an (epsilon, delta) budget exactly, by ``"gaussian"``, where all noise is Gaussian, and by the Rényi filter
  otherwise;
* one question that keeps its (epsilon, delta) by a privacy-loss distribution only, which no filter can add
  up (randomised labels, sampled batches), has the ρ that the ledger charges for it as its budget: all of it
  is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privada.parties.owner import Owner
from privada.parties.permissions import Policy
from privada.parties.schema import Schema
from privada.privacy.accounting import accountant
from privada.privacy.accounting.filters import open_filter
from privada.privacy.guarantee import ZCDP, ApproxDP, Guarantee
from privada.privacy.ledger.account import Account
from privada.privacy.release import Question

MARGIN = 1 + 1e-9  # of ρ: a ledger counts in whole grains


def owner_in_memory(
    rows: Any,
    questions: Sequence[Question],
    *,
    schema: Schema,
    budget: Guarantee,
    y: Any = None,
    person: Any = None,
    dataset: str = "fit",
    policy: Policy | None = None,
    insecure_seed: int | None = None,
    allow_empty: bool = False,
) -> Owner:
    """Hold rows for these questions, in memory.

    Parameters
    ----------
    rows : array, frame or Arrow table
        The private rows.
    questions : sequence of Question
        All that will be asked, or questions that cost as much (`Inquiry.asks`). None means that only
        Gaussian noise is expected beside an (epsilon, delta) budget.
    schema : Schema
        Public description of the rows.
    budget : Guarantee
        What all questions may cost together.
    y, person : array, optional
        Label and person of each row.
    dataset : str, default="fit"
        Name in the ledger.
    policy : Policy, optional
        What the owner allows.
    insecure_seed : int, optional
        Seed for reproducible noise: not private.
    allow_empty : bool, default=False
        Whether a data set without rows is meant.

    Privacy
    -------
    Questions that cost more than the budget are refused when they are asked, like any owner's: the rule
    above never makes a budget larger than what a question's own plan was checked to keep.
    """
    opened, accounting = cover(questions, budget)
    return Owner(
        rows,
        y=y,
        person=person,
        schema=schema,
        dataset=dataset,
        budget=opened,
        accounting=accounting,
        policy=policy,
        insecure_seed=insecure_seed,
        allow_empty=allow_empty,
    )


def cover(questions: Sequence[Question], budget: Guarantee) -> tuple[Guarantee, str | None]:
    """The budget to open for some questions, and its accounting: the rule of this module."""
    if not isinstance(budget, ApproxDP):
        return budget, None
    prices = [question.price for question in questions if not question.discloses]
    if all(accountant.only_gaussian(price.event) for price in prices):
        return budget, "gaussian"
    if len(prices) > 1 or prices[0].guarantee != budget:
        return budget, None
    account = Account.opened("one question", open_filter(budget))
    if account.quote(prices[0], cost=account.cost(account.converted(prices[0])), spent=0).affordable:
        return budget, None
    questions[0].check_guarantee()
    rho = accountant.zcdp(prices[0].whole_event()) * MARGIN
    return ZCDP(rho=rho, relation=budget.relation, unit=budget.unit), None


__all__ = ["cover", "owner_in_memory"]
