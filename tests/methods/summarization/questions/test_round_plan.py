"""The price of all rounds, whom it holds against, and the public schedule."""

import pytest

from privada.exceptions import InputError
from privada.methods.summarization import Participation, RoundPlan
from privada.privacy import ZCDP, ApproxDP
from privada.privacy.accounting import accountant
from privada.privacy.mechanism import gaussian_event

AR, RO = "add/remove", "replace-one"


@pytest.mark.parametrize("relation", [AR, RO])
@pytest.mark.parametrize("ask_share", [0.0, 0.4])
def test_the_price_is_that_of_all_rounds(relation, ask_share):
    guarantee = ApproxDP(epsilon=1, delta=1e-5, relation=relation)
    question = Participation(size=100, batch=10, dimension=40, ask_share=ask_share, guarantee=guarantee)
    plan = question.rounds
    assert plan.rounds == 10
    assert accountant.satisfies(question.price.event, guarantee)
    assert plan.mu == pytest.approx(guarantee.gaussian_mu(), rel=1e-6)
    swap = 4 if relation == RO else 2
    assert plan.broadcast.sensitivity == swap
    share = 10 * (swap / plan.broadcast.scale) ** 2 / guarantee.gaussian_mu() ** 2
    assert share == pytest.approx(1 - ask_share, rel=1e-4)


def test_a_guarantee_says_whom_it_holds_against():
    """With asking bits it never held against any coalition: bits of owners together add up."""
    claim = ApproxDP(epsilon=1, delta=1e-5, relation=RO)
    everyone, one, ten = (
        Participation(size=100, batch=10, dimension=40, guarantee=claim, **more)
        for more in ({}, {"ask_share": 0.5}, {"ask_share": 0.5, "coalition": 10})
    )
    assert everyone.against == "any coalition of owners"
    assert one.against == "one owner at a time, while all others keep to the protocol"
    assert ten.against == "at most 10 owners together, while all others keep to the protocol"
    assert everyone.rounds.mu_against(1) == everyone.rounds.mu_against(10**6)
    for question, paid in ((one, 1), (ten, 10)):
        plan = question.rounds
        assert plan.mu == plan.mu_against(paid) == pytest.approx(claim.gaussian_mu(), rel=1e-6)
        assert accountant.satisfies(question.price.event, claim)
        assert not accountant.satisfies(gaussian_event(plan.mu_against(paid + 1)), claim)
        bits = plan.rounds * paid * (plan.steps * plan.rule.mu) ** 2
        assert bits == pytest.approx(0.5 * claim.gaussian_mu() ** 2, rel=1e-6)
    assert ten.rounds.rule.expected_asked(10**4) > 3 * one.rounds.rule.expected_asked(10**4)
    with pytest.raises(InputError, match="coalition"):
        Participation(size=3, dimension=40, coalition=0, guarantee=claim)


def test_the_schedule_is_public_and_fills_the_summary():
    claim = ZCDP(rho=0.1, relation=RO)
    for size, batch in ((10, 1), (10, 3), (3, 10), (7, 7)):
        plan = RoundPlan(size=size, batch=batch, dimension=4, guarantee=claim)
        taken = [plan.taken(turn) for turn in range(plan.rounds)]
        assert sum(taken) == size
        assert min(taken) > 0
        assert [plan.planned(turn) for turn in range(plan.rounds)] == [
            sum(taken[:turn]) for turn in range(plan.rounds)
        ]


def test_broadcasts_have_the_specified_noise():
    """privacy.md, section 5 (c): kernel-mean std .298 at q = 250, eps 1, p 100; .094 at p 10 (δ = 1e-5)."""
    for size, std in ((100, 0.298), (10, 0.094)):
        guarantee = ApproxDP(epsilon=1, delta=1e-5, relation=AR)
        plan = RoundPlan(size=size, dimension=140, guarantee=guarantee)
        assert plan.broadcast.scale / 250 == pytest.approx(std, abs=1e-3)


def test_few_rounds_are_paid_for_by_batches():
    guarantee = ZCDP(rho=0.1, relation=RO)
    scales = [
        RoundPlan(size=100, batch=b, dimension=40, guarantee=guarantee).broadcast.scale for b in (1, 25)
    ]
    assert scales[0] == pytest.approx(5 * scales[1], rel=1e-4)
    with pytest.raises(InputError, match="batch"):
        RoundPlan(size=100, batch=0, dimension=40, guarantee=guarantee)
