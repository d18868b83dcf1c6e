"""The round protocol: its lemmas on random neighbouring worlds, its price, and whole runs."""

from dataclasses import replace

import numpy as np
import pytest

from privada.exceptions import InputError, RehearsalWarning
from privada.methods.summarization import (
    Consumer,
    Curator,
    CuratorNoise,
    Everyone,
    GaussianThreshold,
    OwnerNode,
    RoundPlan,
    herd,
    mmd2,
    ranks,
)
from privada.methods.summarization.learner.rounds import Bid, RoundTable
from privada.methods.summarization.learner.summary import Absent
from privada.methods.summarization.questions.rounds import score_points
from privada.privacy import ZCDP, Disclosure, Rehearsal

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
    """privacy.md, section 5 (c): |D_s \\ D_s'| and |r_i - r_i'| on 300 random worlds, in every round."""
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
    summary = Curator().auction(
        consumer, nodes, rich, batch=5, ask_share=0.9, draw=CuratorNoise(rehearsal).draw
    )
    assert [fault.partition(":")[0] for fault in summary.faults] == ["near"]
    assert len(summary) == 40
    assert summary.allocation.against.startswith("one owner at a time")
    for node in nodes[1:]:
        kinds = [question.kind.rpartition(".")[2] for question in node.asked]
        assert kinds.count("bids") == plan.rounds
        assert kinds.count("points") == plan.rounds + 1, "once more in the round of the failure"


@pytest.mark.parametrize(("batch", "ask_share"), [(1, 0.0), (10, 0.0), (10, 0.5)])
def test_a_whole_run(town, matching, rehearsal, batch, ask_share):
    consumer, owners = town()
    curator = Curator()
    options = {"batch": batch, "ask_share": ask_share, "draw": CuratorNoise(rehearsal).draw}
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


def test_initial_rows_count_but_are_not_returned(town, matching, rehearsal):
    """Thirty initial rows on one side of the target push the summary to the other."""
    initial = np.tile([0.2, 0.2], (30, 1))
    start = matching.embedding.transform(initial).sum(axis=0)
    plain, pushed = (
        Curator().auction(
            *town(), replace(matching, size=20), batch=10, draw=CuratorNoise(rehearsal).draw, **more
        )
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
    summary = Curator().auction(consumer, nodes, rich, draw=CuratorNoise(rehearsal).draw)
    both = np.vstack([A, B])
    chosen = herd(matching.embedding.transform(both), matching.embedding.mean(V), 20)
    greedy, ours = (mmd2(X, V, gamma=0.5) for X in (both[chosen], summary.X))
    random = np.mean([mmd2(A[rng.choice(80, 20, replace=False)], V, gamma=0.5) for _ in range(20)])
    assert greedy <= ours < 0.5 * random


class Leaving(OwnerNode):
    """Writes down kind and length of all questions; "far" leaves at its third one for points."""

    def reply(self, ask):
        kind = ask.question.kind
        self.asked = [*getattr(self, "asked", []), (kind, len(ask.question.to_bytes()))]
        if (
            self.name == "far"
            and kind.endswith("points")
            and [said for said, _ in self.asked].count(kind) == 3
        ):
            raise ConnectionError
        return super().reply(ask)


@pytest.mark.parametrize("ask_share", [0.0, 0.9])
def test_numbers_and_lengths_of_questions_are_public_whoever_leaves(made_owner, matching, ask_share):
    """One row of "near" is another one, points run out, an owner leaves: questions stay as they were."""
    budget = ZCDP(rho=50, relation=RO)
    plan = RoundPlan(size=30, batch=3, dimension=40, ask_share=ask_share, guarantee=budget)
    rng = np.random.default_rng(2)
    held = {name: rng.normal(side, 0.4, (12, 2)) for name, side in (("near", 1), ("far", 0.8), ("both", 0.5))}
    held["both"][4:] = held["both"][0]
    validation, seen, chosen = rng.normal(1, 0.4, (50, 2)), [], set()
    for row in (held["near"][0], held["near"][1], (-3.0, 3.0)):
        rows = {name: X.copy() for name, X in held.items()}
        rows["near"][0] = row
        consumer = Consumer("consumer", made_owner(validation, name="dv", seed=9, budget=budget))
        nodes = [
            Leaving(name, made_owner(X, name=name, seed=i, budget=budget))
            for i, (name, X) in enumerate(rows.items())
        ]
        with pytest.warns(RehearsalWarning):
            noise = CuratorNoise(Rehearsal(5))
        rich = replace(matching, owners=budget, validation=budget, size=30)
        summary = Curator().auction(consumer, nodes, rich, batch=3, ask_share=ask_share, draw=noise.draw)
        assert [fault.partition(":")[0] for fault in summary.faults] == ["far"]
        seen.append({node.name: node.asked for node in nodes})
        chosen.add(summary.X.tobytes())
    assert len(chosen) == 3
    assert seen[0] == seen[1] == seen[2]
    kinds = [kind.rpartition(".")[2] for kind, _ in seen[0]["near"]]
    assert kinds.count("bids") == plan.rounds
    assert kinds.count("points") == plan.rounds + (ask_share > 0)


@pytest.fixture
def table(matching):
    return RoundTable(
        embedding=matching.embedding,
        target=np.zeros(40),
        start=np.zeros(40),
        start_size=0,
        playing=["a", "b"],
    )


SLOPE = np.linspace(-1, 1, 40)


def disclosed(**rows):
    made = object.__new__(Disclosure)
    object.__setattr__(made, "rows", {name: np.array(value) for name, value in rows.items()})
    return made


def send(table, owner, X, first=0):
    X = np.array(X)
    bid = Bid(score_points(table.embedding.transform(X), SLOPE), np.arange(first, first + len(X)))
    table.accept_points(owner, disclosed(X=X), bid, SLOPE)


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ({"scores": [1.0]}, "cannot be read"),
        ({"scores": [1.0, 0.5], "index": [0]}, "another shape"),
        ({"scores": [3.0, 2.0, 1.0], "index": [0, 1, 2]}, "another shape"),
        ({"scores": [1.0, 2.0], "index": [0, 1]}, "not in order"),
        ({"scores": [np.nan, 2.0], "index": [0, 1]}, "not finite"),
        ({"scores": [2.0, 1.0], "index": [4, 4]}, "has sent"),
        ({"scores": [2.0], "index": [7]}, "has sent"),
    ],
)
def test_a_bid_that_breaks_a_rule_leaves_its_owner_out(table, rows, fault):
    table.sent["a"] = [7]
    assert table.accept_bid("a", disclosed(**rows), batch=2) is None
    assert table.playing == ["b"]
    assert fault in table.faults[0]


def test_an_owner_without_points_stays(table):
    assert table.accept_bid("a", disclosed(scores=np.zeros(0), index=np.zeros(0, int)), batch=2) is None
    assert table.playing == ["a", "b"]
    assert table.accept_bid("b", Absent("b", "late"), batch=2) is None
    assert table.playing == ["a"]


def test_the_best_points_are_taken_in_any_order(table):
    X = np.random.default_rng(0).normal(size=(6, 2))
    send(table, "a", X[:3])
    send(table, "b", X[3:])
    table.pool.reverse()
    table.take_best(SLOPE, 2)
    scores = score_points(table.embedding.transform(X), SLOPE)
    assert sorted(tuple(point.X) for point in table.chosen) == sorted(map(tuple, X[np.argsort(-scores)[:2]]))
    assert len(table.pool) == 4
    assert table.summary_features().shape == (2, 40)


def test_points_that_are_not_what_was_bid_leave_the_pool(table):
    send(table, "a", [[1.0, 1.0]])
    bid = Bid(np.array([5.0]), np.array([1]))
    table.accept_points("a", disclosed(X=[[2.0, 2.0]]), bid, SLOPE)
    assert table.failed
    assert table.playing == ["b"]
    assert table.pool == []
    assert table.received == 2
    with pytest.raises(InputError, match="No owner sent"):
        table.to_summary(None)
