"""The round protocol: its lemmas on random neighbouring worlds, its price, and whole runs."""

from dataclasses import replace

import numpy as np
import pytest

from privada.exceptions import InputError
from privada.methods.summarization import (
    Consumer,
    Curator,
    Everyone,
    GaussianThreshold,
    OwnerNode,
    Participation,
    RoundPlan,
    Voice,
    herd,
    mmd2,
    ranks,
)
from privada.privacy import ZCDP, Approximate, accountant
from privada.privacy.mechanism import gaussian_event

AR, RO = "add/remove", "replace-one"


def play(world, scores, *, batch, rounds, rule, coins):
    """Rounds with fixed broadcasts: every point has a fixed score in every round.

    ``world`` maps an owner to its points. Returns D_s, the ranks of each round, and whether the best points
    were always at hand.
    """
    unsent = {name: set(points) for name, points in world.items()}
    pool = {name: set() for name in world}
    chosen, seen = [], []
    for turn in range(rounds):
        score = scores[turn]
        top = {name: sorted(left, key=lambda x: -score[x])[:batch] for name, left in unsent.items()}
        bids = {name: np.array([score[x] for x in points]) for name, points in top.items() if points}
        found = ranks(
            bids, {name: np.array([score[x] for x in points]) for name, points in pool.items()}, batch=batch
        )
        seen.append(found)
        for name, rank in found.items():
            if coins[turn][name] <= rule.probability(rank):
                pool[name] |= set(top[name])
                unsent[name] -= set(top[name])
        left = {x for name in world for x in unsent[name] | pool[name]}
        wanted = sorted(left, key=lambda x: -score[x])[:batch]
        at_hand = set().union(*pool.values())
        assert set(wanted) <= at_hand, "the best points must always be at hand"
        chosen += wanted
        for name in pool:
            pool[name] -= set(wanted)
    return chosen, seen


def random_case(rng, relation):
    owners = [f"o{i}" for i in range(int(rng.integers(2, 6)))]
    points, batch, rounds = 30, int(rng.integers(1, 4)), 5
    where = rng.integers(len(owners), size=points)
    world = {name: {x for x in range(points) if where[x] == i} for i, name in enumerate(owners)}
    changed = owners[int(where[0])]
    neighbour = {name: set(held) - {0} for name, held in world.items()}
    if relation == RO:
        neighbour[changed] |= {points}  # another row instead of row 0
    scores = rng.normal(size=(rounds, points + 1))
    coins = [{name: rng.uniform() for name in owners} for _ in range(rounds)]
    return world, neighbour, changed, scores, {"batch": batch, "rounds": rounds, "coins": coins}


RULES = [Everyone(), GaussianThreshold(sigma=1.0, beta=0.05)]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize(("relation", "steps"), [(AR, 1), (RO, 2)])
def test_one_unit_moves_the_summary_by_its_swaps_and_ranks_by_its_steps(relation, steps, rule):
    """PRIVACY, section 5 (c): |D_s \\ D_s'| and |r_i - r_i'| on 300 random worlds, in every round."""
    rng = np.random.default_rng(7)
    moved = 0
    for _ in range(300):
        world, neighbour, changed, scores, more = random_case(rng, relation)
        first, seen = play(world, scores, rule=rule, **more)
        second, seen_there = play(neighbour, scores, rule=rule, **more)
        for turn in range(more["rounds"]):
            upto = (turn + 1) * more["batch"]
            gone = set(first[:upto]) - set(second[:upto])
            assert len(gone) <= steps
            moved = max(moved, len(gone))
        for name in set(world) - {changed}:
            for turn in range(more["rounds"]):
                here, there = seen[turn].get(name), seen_there[turn].get(name)
                if here is None or there is None:
                    break
                assert abs(here - there) <= steps
                asked = [more["coins"][turn][name] <= rule.probability(rank) for rank in (here, there)]
                if asked[0] != asked[1]:
                    break  # from here on the owner has seen different things
    assert moved == steps, "the bound is reached"


def test_the_summary_does_not_depend_on_coins():
    rng = np.random.default_rng(3)
    for _ in range(100):
        world, _, _, scores, more = random_case(rng, AR)
        other = [{name: rng.uniform() for name in coins} for coins in more["coins"]]
        rule = GaussianThreshold(sigma=0.7, beta=0.1)
        first = play(world, scores, rule=rule, **more)[0]
        assert first == play(world, scores, rule=rule, **(more | {"coins": other}))[0]
        assert first == play(world, scores, rule=Everyone(), **more)[0]


@pytest.mark.parametrize("relation", [AR, RO])
@pytest.mark.parametrize("ask_share", [0.0, 0.4])
def test_the_price_is_that_of_all_rounds(relation, ask_share):
    guarantee = Approximate(epsilon=1, delta=1e-5, relation=relation)
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
    claim = Approximate(epsilon=1, delta=1e-5, relation=RO)
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


class Words:
    """Coins that were flipped beforehand."""

    def __init__(self, *words):
        self.left = list(words)

    def words(self, n):
        return np.array([self.left.pop(0) for _ in range(n)], dtype=np.uint64)


def test_a_coin_is_as_fine_as_the_chance_to_be_missed():
    """With 53 bits a chance of 1e-20 would be none: "not asked" never at one rank, at the next perhaps."""
    rule = GaussianThreshold(sigma=5.0, beta=1e-30)
    rank = next(rank for rank in range(2, 100) if rule.miss(rank) > 1e-25)
    assert rule.miss(rank) < 1e-20
    assert Voice(Words(1)).ask({"a": rank}, rule) == {"a"}
    assert Voice(Words(0, 2**63)).ask({"a": rank}, rule) == {"a"}
    assert Voice(Words(0, 0)).ask({"a": rank}, rule) == set()
    assert Voice(Words(0, 0)).ask({"a": 1}, rule) == {"a"}
    assert Voice(Words(2**64 - 1)).ask({"a": 10**6}, rule) == set()


def test_bits_are_as_likely_as_the_rule_says(rehearsal):
    rule = GaussianThreshold(sigma=4.0, beta=1e-4)
    found = {f"o{i}": 14 for i in range(20_000)}
    asked = len(Voice(rehearsal).ask(found, rule)) / len(found)
    assert asked == pytest.approx(rule.probability(14), abs=0.02)


def test_after_a_failure_everyone_is_asked(town, made_owner, matching, rehearsal):
    """The winner's points did not come, and who is next had not been asked because of the winner's bids."""

    class Failing(OwnerNode):
        def reply(self, ask):
            self.asked = [*getattr(self, "asked", []), ask.question]
            if self.name == "near" and ask.question.kind.endswith("points"):
                raise ConnectionError
            return super().reply(ask)

    budget = ZCDP(rho=4000, relation=RO)
    consumer, _ = town()
    rich = replace(matching, owners=budget)
    plan = RoundPlan(size=40, batch=5, dimension=40, ask_share=0.9, guarantee=budget)
    assert plan.rule.probability(3) < 0.01
    rng = np.random.default_rng(0)
    held = {"near": rng.normal(1, 0.4, (60, 2)), "far": rng.normal(-1, 0.4, (60, 2))}
    nodes = [Failing(name, made_owner(X, name=name, seed=1, budget=budget)) for name, X in held.items()]
    summary = Curator().auction(consumer, nodes, rich, batch=5, ask_share=0.9, voice=Voice(rehearsal))
    assert [fault.partition(":")[0] for fault in summary.faults] == ["near"]
    assert len(summary) == 40
    assert summary.allocation.against.startswith("one owner at a time")
    for node in nodes[1:]:
        kinds = [question.kind.rpartition(".")[2] for question in node.asked]
        assert kinds.count("points") == kinds.count("bids") == plan.rounds


def test_broadcasts_have_the_specified_noise():
    """PRIVACY, section 5 (c): kernel-mean std .298 at q = 250, eps 1, p 100 and .094 at p 10 (δ = 1e-5)."""
    for size, std in ((100, 0.298), (10, 0.094)):
        guarantee = Approximate(epsilon=1, delta=1e-5, relation=AR)
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


@pytest.mark.parametrize(("batch", "ask_share"), [(1, 0.0), (10, 0.0), (10, 0.5)])
def test_a_whole_run(town, matching, rehearsal, batch, ask_share):
    consumer, owners = town()
    curator = Curator()
    options = {"batch": batch, "ask_share": ask_share, "voice": Voice(rehearsal)}
    summary = curator.auction(consumer, owners, matching, **options)
    assert len(summary) == 40
    assert summary.faults == ()
    assert len({row.tobytes() for row in summary.X}) == 40
    assert 40 <= summary.points_seen == curator.view.points <= 40 * 3 + 3 * batch
    for node in owners:
        spent = node.owner.ledger.spent(node.owner.dataset)
        assert spent.epsilon == pytest.approx(4, rel=1e-3), "all rounds are one charge"
        kinds = [line.kind for line in node.owner.ledger.lines(node.owner.dataset)]
        assert kinds.count("charge") == 1
        assert kinds.count("disclosure") >= 2
    assert sum(summary.contributions().values()) > 0


def test_a_seed_set_counts_but_is_not_returned(town, matching, rehearsal):
    """Thirty seed rows on one side of the target push the summary to the other."""
    seeds = np.tile([0.2, 0.2], (30, 1))
    start = matching.embedding.transform(seeds).sum(axis=0)
    plain, pushed = (
        Curator().auction(*town(), replace(matching, size=20), batch=10, voice=Voice(rehearsal), **more)
        for more in ({}, {"start": start, "start_size": 30})
    )
    assert len(pushed) == len(plain) == 20
    assert pushed.X.mean() > plain.X.mean()


def test_with_little_noise_rounds_are_greedy(made_owner, matching, rehearsal):
    rng = np.random.default_rng(0)
    V, A, B = rng.normal(1, 0.4, (100, 2)), rng.normal(1, 0.5, (80, 2)), rng.normal(-1, 0.5, (80, 2))
    budget = ZCDP(rho=4000, relation=RO)
    rich = replace(matching, owners=budget, validation=budget, size=20)
    consumer, *nodes = (
        kind(name, made_owner(X, name=name, seed=1, budget=budget))
        for kind, name, X in ((Consumer, "v", V), (OwnerNode, "a", A), (OwnerNode, "b", B))
    )
    summary = Curator().auction(consumer, nodes, rich, voice=Voice(rehearsal))
    both = np.vstack([A, B])
    chosen = herd(matching.embedding.transform(both), matching.embedding.mean(V), 20)
    greedy, ours = (mmd2(X, V, gamma=0.5) for X in (both[chosen], summary.X))
    random = np.mean([mmd2(A[rng.choice(80, 20, replace=False)], V, gamma=0.5) for _ in range(20)])
    assert greedy <= ours < 0.5 * random
