"""Questions of the round protocol: one charge for all rounds, then disclosures to the curator."""

import math

import numpy as np
import pytest

from privada.exceptions import AnswerError, InputError
from privada.methods.summarization import (
    Everyone,
    GaussianThreshold,
    Participation,
    RoundBids,
    RoundPlan,
    RoundPoints,
)
from privada.methods.summarization.questions.rounds import AskRule, order_points, ranks, score_points
from privada.privacy import ZCDP, ApproxDP, Question
from privada.privacy.accounting import accountant, curves
from privada.privacy.mechanism import gaussian_event


def test_taking_part_is_charged_once_and_says_against_whom(matching, made_owner):
    owner = made_owner(np.random.default_rng(0).normal(size=(30, 2)), name="o", seed=1)
    joining = Participation(size=10, batch=5, dimension=40, ask_share=0.5, guarantee=matching.owners)
    release = owner.answer(joining)
    assert int(release["rounds"]) == 2
    assert str(release["against"]).startswith("one owner at a time")
    assert owner.ledger.spent("o").epsilon == pytest.approx(4, rel=1e-3)


def test_bids_and_points_cost_nothing_more_and_survive_the_wire(matching, made_owner):
    owner = made_owner(np.random.default_rng(0).normal(size=(30, 2)), name="o", seed=1)
    bids = RoundBids(
        embedding=matching.embedding,
        target=np.ones(40),
        broadcast=np.zeros(40),
        count=0,
        batch=4,
        sent=[3],
        guarantee=matching.owners,
    )
    again = Question.from_bytes(bids.to_bytes())
    assert again.digest == bids.digest
    offered = owner.disclose(again, to="curator").rows
    assert len(offered["scores"]) == 4
    assert 3 not in offered["index"]
    points = RoundPoints(index=offered["index"], guarantee=matching.owners)
    assert owner.disclose(points, to="curator").rows["X"].shape == (4, 2)
    assert owner.ledger.spent("o") is None


def test_numbers_that_no_row_has_fail_without_showing_them(matching, made_owner):
    owner = made_owner(np.zeros((3, 2)), name="o", seed=1)
    with pytest.raises(AnswerError) as failed:
        owner.disclose(RoundPoints(index=[10**6], guarantee=matching.owners), to="curator")
    assert "1000000" not in str(failed.value)


@pytest.mark.parametrize("index", [[-1], [0.5], [[1]], ["a"]])
def test_numbers_are_whole_and_from_0_on(matching, index):
    with pytest.raises(InputError, match="index"):
        RoundPoints(index=index, guarantee=matching.owners)


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


class Printed(AskRule):
    """PrivAuction: probability exp(-ε (rank - 1))."""

    mu = math.inf

    def __init__(self, epsilon):
        self.epsilon = epsilon

    def probability(self, rank):
        return math.exp(-self.epsilon * (rank - 1))


def excess_delta(rule, epsilon, *, owners):
    """At each rank below K, the δ that telling it from the next one needs at ``epsilon``.

    The larger of ``p_r - e^ε p_{r+1}`` and ``(1 - p_{r+1}) - e^ε (1 - p_r)``, and the same the other way.
    """
    p = np.array([rule.probability(rank) for rank in range(1, owners + 1)])
    here, there, grow = p[:-1], p[1:], math.exp(epsilon)
    asked = np.maximum(here - grow * there, there - grow * here)
    passed = np.maximum((1 - there) - grow * (1 - here), (1 - here) - grow * (1 - there))
    return np.maximum(np.maximum(asked, passed), 0.0)


def test_every_sound_rule_always_asks_rank_one():
    for rule in (Everyone(), GaussianThreshold(sigma=3, beta=1e-9)):
        chances = [rule.probability(rank) for rank in range(1, 60)]
        assert chances[0] == 1
        assert chances == sorted(chances, reverse=True)
        assert rule.expected_asked(40) == pytest.approx(sum(chances[:40]))


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_the_threshold_keeps_the_gaussian_delta_and_its_slack(epsilon):
    rule = GaussianThreshold(sigma=2.5, beta=1e-4)
    allowed = curves.gaussian_delta(epsilon, rule.mu) + (1 + math.exp(epsilon)) * rule.beta
    assert excess_delta(rule, epsilon, owners=200).max() <= allowed


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 0.00995), (0.1, 0.0952), (1.0, 0.632)])
def test_the_printed_rule_has_a_delta_at_any_epsilon(epsilon, delta):
    """privacy.md, section 5 (b): 1 - exp(-ε) in each round, however large the ε that is granted."""
    for granted in (epsilon, 5.0, 50.0):
        found = excess_delta(Printed(epsilon), granted, owners=5)[0]
        assert found == pytest.approx(1 - math.exp(-epsilon))
        assert found == pytest.approx(delta, abs=5e-4)


def test_ranks_two_and_three_of_the_printed_rule_need_a_large_epsilon():
    """privacy.md, section 5 (b): .688 at ε_auc = .01, from the bit "not asked"."""
    p2, p3 = (Printed(0.01).probability(rank) for rank in (2, 3))
    assert math.log((1 - p3) / (1 - p2)) == pytest.approx(0.688, abs=1e-3)


@pytest.mark.parametrize(
    ("epsilon", "rounds", "asked"),
    [(1, 10, 69), (1, 100, 232), (3, 10, 27), (3, 100, 91), (10, 10, 12), (10, 100, 38)],
)
def test_asks_a_round_are_as_specified(epsilon, rounds, asked):
    """privacy.md, section 5 (c): total δ = 1e-5, half of it slack, the auction's budget only, add/remove."""
    beta = 0.5e-5 / ((1 + math.exp(epsilon)) * rounds)
    mu = curves.gaussian_mu(epsilon=epsilon, delta=0.5e-5)
    rule = GaussianThreshold(sigma=math.sqrt(rounds) / mu, beta=beta)
    assert 0.9 * asked <= rule.expected_asked(2000) <= asked
    assert rule.expected_asked(2000) == pytest.approx(rule.threshold - 0.5, abs=0.01)


def test_bad_rules_are_named():
    for make, match in (
        (lambda: GaussianThreshold(sigma=0, beta=0.1), "sigma"),
        (lambda: GaussianThreshold(sigma=1, beta=0), "beta"),
        (lambda: Everyone().probability(0), "rank"),
    ):
        with pytest.raises(InputError, match=match):
            make()


def test_a_miss_keeps_its_precision_where_a_probability_is_one():
    rule = GaussianThreshold(sigma=5.0, beta=1e-30)
    assert rule.miss(1) == 0
    assert rule.probability(3) == 1.0
    assert 1e-30 < rule.miss(2) < rule.miss(3) < 1e-20
    for rank in (2, 20, 55, 70, 100):
        assert rule.miss(rank) + rule.probability(rank) == pytest.approx(1)
    assert Everyone().miss(7) == 0


def test_a_score_is_the_same_in_any_company():
    rng = np.random.default_rng(1)
    features, slope = rng.normal(size=(101, 23)), rng.normal(size=23)
    together = score_points(features, slope)
    alone = [score_points(row[None], slope)[0] for row in features]
    assert together.tolist() == alone
    assert score_points(features[::-1], slope).tolist() == alone[::-1]
    assert together == pytest.approx(features @ slope)


def test_equal_scores_are_ordered_by_the_rows_values():
    scores = np.array([1.0, 3.0, 3.0, 2.0])
    X = np.array([[0.0, 0.0], [1.0, 2.0], [1.0, 1.0], [0.0, 0.0]])
    assert order_points(scores, X, most=3).tolist() == [2, 1, 3]
    assert order_points(scores, X, most=9).tolist() == [2, 1, 3, 0]
    turned = order_points(scores[::-1], X[::-1], most=3)
    assert [3 - i for i in turned] == [2, 1, 3], "whatever the order of the file"


def test_ranks_count_better_points_of_others_that_are_left():
    bids = {"a": np.array([5.0, 1.0]), "b": np.array([4.0]), "c": np.zeros(0)}
    assert ranks(bids, {}) == {"a": 1, "b": 2}
    assert ranks(bids, {"c": np.array([9.0, 8.0])}) == {"a": 2, "b": 3}, "one of each owner at batch 1"
    assert ranks(bids, {"c": np.array([9.0, 8.0])}, batch=2) == {"a": 2, "b": 3}
    assert ranks(bids, {"c": np.array([9.0, 8.0])}, batch=3) == {"a": 1, "b": 2}
