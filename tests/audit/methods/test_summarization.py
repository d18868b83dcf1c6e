"""Audits of summarization: sound questions, views and rounds pass.

What the paper prints instead is caught in `lab/tests/audit`.
Noise is seeded. False alarm of a black-box audit: 1e-2 over seeds; of a replay: none.
"""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from privada import Owner, Policy, Schema
from privada.audit import (
    Sample,
    across_batches,
    audit_question,
    landmarks,
    neighbours,
    replay,
    replay_rounds,
    replay_views,
)
from privada.audit.transcript import coupled
from privada.exceptions import RehearsalWarning
from privada.methods.summarization import (
    Absent,
    AskRule,
    Consumer,
    Curator,
    CuratorNoise,
    EmbeddingSum,
    FourierEmbedding,
    Matching,
    NearCount,
    OwnerNode,
    RoundPlan,
    gather,
    match,
)
from privada.methods.summarization.learner import rounds
from privada.methods.summarization.learner.rounds import AskedOwners, NoisySum
from privada.methods.summarization.learner.summary import PointCollection
from privada.parties.protocol import AskOwner
from privada.privacy import ZCDP, ApproxDP, PureDP, Relation, Unit
from privada.privacy.accounting import curves

E = FourierEmbedding.of(width=2, n_features=12, gamma=0.5, random_state=0)
ROWS = np.random.default_rng(11).normal(0.5, 0.8, size=(60, 2))
SCHEMA = Schema.of_numbers(bounds=(-3, 3), width=2, size=60)
PERSON = Unit(name="person", max_rows=3)
PURE, RHO = PureDP(epsilon=2, relation="add/remove"), ZCDP(rho=0.3, relation="add/remove")


def kinds(guarantee):
    direction = E.mean(np.ones((1, 2))) - E.mean(-np.ones((1, 2)))
    return {
        "sum": EmbeddingSum(embedding=E, guarantee=guarantee),
        "near": NearCount(embedding=E, direction=direction, threshold=0.05, guarantee=guarantee),
    }


CASES = [(name, guarantee) for guarantee in (PURE, RHO) for name in ("sum", "near")]


def case(name, guarantee, relation, unit=None):
    schema, person, guarantee = SCHEMA, None, replace(guarantee, relation=relation)
    if unit is not None:
        schema = replace(schema, person_id="who", max_rows=unit.max_rows)
        guarantee, person = replace(guarantee, unit=unit), np.arange(len(ROWS)) // 5
    return kinds(guarantee)[name], Sample.of(ROWS, schema=schema, person=person)


def replays(question, sample):
    marks = landmarks(question, sample.schema)
    rng = np.random.default_rng(0)
    for pair in neighbours(sample, relation=question.guarantee.relation, rng=rng, landmarks=marks):
        rows, neighbour = pair.sample.rows(coupled(0)), pair.neighbour.rows(coupled(1))
        yield replay(question, rows, neighbour, pair=pair.name), rows, neighbour


@pytest.mark.parametrize("unit", [None, PERSON], ids=["row", "person"])
@pytest.mark.parametrize("relation", list(Relation), ids=str)
@pytest.mark.parametrize(("name", "guarantee"), CASES, ids=str)
def test_every_replay_passes(name, guarantee, relation, unit):
    shares = []
    for result, _, _ in replays(*case(name, guarantee, relation, unit)):
        assert result.passed, str(result)
        shares.append(result.share)
    if relation is not Relation.ATTRIBUTE:
        assert max(shares) > 0.4


@pytest.mark.parametrize(("name", "guarantee"), CASES, ids=str)
def test_a_row_that_moves_to_another_batch_changes_nothing(name, guarantee):
    question, sample = case(name, guarantee, Relation.REPLACE_ONE)
    pair = across_batches(sample, relation=Relation.REPLACE_ONE)
    assert replay(question, pair.sample.rows(), pair.neighbour.rows(), pair=pair.name).passed


@pytest.mark.statistical
@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE_ONE], ids=str)
@pytest.mark.parametrize(("name", "guarantee"), CASES, ids=str)
def test_every_black_box_bound_stays_within_the_claim(name, guarantee, relation, rehearsal):
    question, sample = case(name, guarantee, relation)
    _, rows, neighbour = max(replays(question, sample), key=lambda found: found[0].share)
    result = audit_question(question, rows, neighbour, trials=20_000, noise=rehearsal)
    assert result.passed, str(result)


def test_add_remove_prices_are_too_low_for_replaced_rows():
    question, sample = case("sum", RHO, Relation.ADD_REMOVE)
    pairs = neighbours(sample, relation="replace-one", rng=np.random.default_rng(0))
    assert not all(replay(question, pair.sample.rows(), pair.neighbour.rows()).passed for pair in pairs)


def world(near, far, seed=0):
    """A consumer and three owners; rows of the first owner are given."""
    rng = np.random.default_rng(seed)
    held = {"v": rng.normal(1, 0.5, (80, 2)), "a": near, "b": far, "c": rng.normal(0, 1, (40, 2))}
    guarantee = ApproxDP(epsilon=3, delta=1e-4, relation="replace-one")
    nodes = []
    for i, (name, X) in enumerate(held.items()):
        schema = Schema.of_numbers(bounds=(-3, 3), width=2, size=len(X))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RehearsalWarning)
            owner = Owner(
                X,
                schema=schema,
                dataset=name,
                budget=guarantee,
                policy=Policy(curators=("curator",)),
                accounting="gaussian",
                insecure_seed=i,
            )
        nodes.append((Consumer if name == "v" else OwnerNode)(name, owner))
    return nodes, Matching(embedding=E, size=20, validation=guarantee, owners=guarantee)


def pair_of_worlds():
    rng = np.random.default_rng(4)
    near, far = rng.normal(1, 0.5, (40, 2)), rng.normal(-1, 0.5, (40, 2))
    changed = near.copy()
    changed[7] = (-2.5, 2.5)
    return world(near, far), world(changed, far)


def test_what_owners_see_does_not_depend_on_anothers_rows():
    (first, matching), (second, _) = pair_of_worlds()
    found = replay_views(
        lambda nodes: Curator().summarise(nodes[0], nodes[1:], matching), first, second, changed="a"
    )
    assert found.passed
    assert found.compared == 3


def test_reallocating_because_of_rows_is_caught():
    """A curator that asks others for more when one owner's rows do not please it leaks those rows."""
    (first, matching), (second, _) = pair_of_worlds()

    def careless(nodes):
        summary = Curator().summarise(nodes[0], nodes[1:], matching)
        odd = int(np.sum(summary.X[summary.owner == "a"][:, 1] > 2))
        kept = nodes[1].owner.disclose(matching.rows_question(summary.allocation, size=40), to="curator")
        odd += int(np.sum(kept.rows["X"][:, 1] > 2))
        question = matching.rows_question(summary.allocation, size=5 + odd)
        nodes[2].view.note(question.kind, "curator", question.digest)

    found = replay_views(careless, first, second, changed="a")
    assert found.differing == ("b",)


class Leaving(OwnerNode):
    """Leaves for good at one question of the round protocol: a public fact."""

    at = ("", 0)  # the end of a kind, and how many such questions were answered before

    def reply(self, ask):
        if ask.question.kind.endswith("participation"):
            self.met = []
        kind, before = self.at
        if ask.question.kind.endswith(kind or "nothing"):
            self.met.append(ask.question.kind)
            if len(self.met) > before:
                self.view.note(ask.question.kind, ask.to, ask.question.digest)
                raise ConnectionError
        return super().reply(ask)


RICH = 1000.0  # so that three owners are few: at a smaller budget all of them are always asked


def node_of(name, X, *, kind=OwnerNode, seed=0, rho=RICH):
    budget = ZCDP(rho=rho, relation="replace-one")
    schema = Schema.of_numbers(bounds=(-3, 3), width=2, size=len(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RehearsalWarning)
        owner = Owner(
            X,
            schema=schema,
            dataset=name,
            budget=budget,
            policy=Policy(curators=("curator",)),
            insecure_seed=seed,
        )
    return kind(name, owner)


def leaving(kind, before):
    return type("Leaving", (Leaving,), {"at": (kind, before)})


def plenty(rng):
    return {
        "a": rng.normal(1, 0.5, (30, 2)),
        "b": rng.normal(0, 1, (30, 2)),
        "c": rng.normal(-1, 0.5, (30, 2)),
    }


def running_out(rng):
    """24 rows, of which 13 are different: a summary of 16 cannot be filled."""
    a, b, c = rng.normal(1, 0.5, (8, 2)), rng.normal(0, 1, (4, 2)), rng.normal(-1, 0.5, (4, 2))
    a[5:] = a[4]
    return {"a": a, "b": np.repeat(b, 2, axis=0), "c": np.repeat(c, 2, axis=0)}


def copies(rng):
    """Rows of a coarse grid: most of them are there several times, at several owners, with equal scores."""
    return {name: rng.integers(-1, 2, (20, 2)).astype(float) for name in "abc"}


def pair_of_round_worlds(rows, seed, leave=()):
    """Two worlds in which owner a's last row differs: in the second it is one that is wanted."""
    rng = np.random.default_rng(seed)
    held = rows(rng)
    other = dict(held, a=held["a"].copy())
    other["a"][-1] = (1.05, 0.95)
    validation = rng.normal(1, 0.5, (60, 2))
    kinds = dict(leave)
    return [
        [
            node_of("v", validation, kind=Consumer, seed=seed),
            *(node_of(name, X, kind=kinds.get(name, OwnerNode), seed=seed) for name, X in each.items()),
        ]
        for each in (held, other)
    ]


def replayed(worlds, *, size=16, batch=5, ask_share=0.0, runs=3, seed=0):
    guarantee = ZCDP(rho=RICH, relation="replace-one")
    matching = Matching(embedding=E, size=size, validation=guarantee, owners=guarantee)
    plan = RoundPlan(size=size, batch=batch, dimension=12, ask_share=ask_share, guarantee=guarantee)
    options = {"batch": batch, "ask_share": ask_share}
    return replay_rounds(
        lambda nodes, draw: Curator().auction(nodes[0], nodes[1:], matching, draw=draw, **options),
        *worlds,
        changed="a",
        steps=plan.steps,
        noise=coupled(seed),
        runs=runs,
    )


LEAVING = {
    "nobody": {},
    "one at its bids": {"b": leaving("bids", 2)},
    "the changed one": {"a": leaving("bids", 2)},
    "one at its points": {"c": leaving("points", 1)},
    "two": {"b": leaving("bids", 1), "c": leaving("points", 2)},
}


@pytest.mark.parametrize("leave", LEAVING.values(), ids=LEAVING.keys())
@pytest.mark.parametrize("rows", [plenty, running_out, copies], ids=lambda rows: rows.__name__)
@pytest.mark.parametrize(("batch", "ask_share"), [(2, 0.0), (5, 0.0), (2, 0.9)])
def test_all_that_owners_are_shown_in_rounds_is_the_same(batch, ask_share, rows, leave):
    """Every field of every message, in worlds where points run out, are copies, and where owners leave."""
    for seed in range(2):
        worlds = pair_of_round_worlds(rows, seed, leave)
        found = replayed(worlds, batch=batch, ask_share=ask_share, seed=seed, runs=1 if leave else 3)
        assert found.passed, found
        assert found.rounds == -(-16 // batch)
        assert found.messages > 8


def old_round(table, plan, matching, turn):
    """The round as it was: it told owners how many points are in the summary."""
    count = table.start_size + len(table.chosen)
    mechanism = plan.broadcast
    noisy = yield NoisySum(table.summary_features(), mechanism)
    expected = len(table.chosen) * table.target
    broadcast = table.start + rounds.shrink_sum(
        noisy, expected, count=len(table.chosen), variance=mechanism.variance
    )
    slope = (count + 1) * table.target - broadcast
    bids = yield from rounds._collect_bids(table, matching, broadcast, count, plan.batch)
    yield from rounds._ask_for_points(table, plan, matching, bids, slope)
    table.take_best(slope, min(plan.batch, plan.size - len(table.chosen)))


def nearly_old_round(table, plan, matching, turn):
    """Tells the public number, and yet draws the noisy sum to a private one."""
    planned, mechanism = plan.planned(turn), plan.broadcast
    noisy = yield NoisySum(table.summary_features(), mechanism)
    there = len(table.chosen)
    broadcast = rounds.shrink_sum(noisy, there * table.target, count=there, variance=mechanism.variance)
    bids = yield from rounds._collect_bids(table, matching, broadcast, planned, plan.batch)
    slope = (planned + 1) * table.target - broadcast
    yield from rounds._ask_for_points(table, plan, matching, bids, slope)
    table.take_best(slope, plan.taken(turn))


def stopping_round(table, plan, matching, turn):
    """Says nothing more once different points have run out."""
    if len(table.chosen) == plan.planned(turn):
        yield from ROUND(table, plan, matching, turn)


ROUND = rounds._play_round
STEPS = [
    (old_round, {"count", "broadcast"}),
    (nearly_old_round, {"broadcast"}),
    (stopping_round, {"shown"}),
]


@pytest.mark.parametrize(("step", "fields"), STEPS)
def test_a_private_count_in_a_round_is_caught(monkeypatch, step, fields):
    monkeypatch.setattr(rounds, "_play_round", step)
    found = replayed(pair_of_round_worlds(running_out, 0), batch=1)
    assert not found.passed
    assert {each.field for each in found.differences} == fields
    assert {each.owner for each in found.differences} == {"b", "c"}
    assert replayed(pair_of_round_worlds(plenty, 0), batch=1).passed, "with points enough it told nothing"


def test_counts_follow_the_schedule_when_points_run_out():
    """Owner b saw 0, 1, 2, 2 in one world and 0, 1, 2, 3 in the other, with certainty."""
    counts = []
    for rows in ([[1.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [2.0, 1.0]]):
        consumer, a, b = (
            node_of(name, np.array(X), kind=kind, seed=1)
            for name, X, kind in (
                ("v", [[1.0, 1.0]] * 60, Consumer),
                ("a", rows, OwnerNode),
                ("b", [[0.0, 0.0]] * 2, OwnerNode),
            )
        )
        guarantee = ZCDP(rho=2.0, relation="replace-one")
        matching = Matching(embedding=E, size=4, validation=guarantee, owners=guarantee)
        seen = []
        b.disclose = lambda question, to, node=b, seen=seen: (
            seen.append(question) or OwnerNode.disclose(node, question, to)
        )
        Curator().auction(consumer, [a, b], matching, draw=CuratorNoise(coupled(1)).draw)
        counts.append([question.count for question in seen if question.kind.endswith("bids")])
    assert counts == [[0, 1, 2, 3], [0, 1, 2, 3]]


def test_a_point_that_is_missing_because_of_a_coin_is_caught(monkeypatch):
    """Where rank 1 is not always asked, coins of others decide what is taken, and a broadcast shows it."""

    def careless(table, plan, matching, bids, slope):
        scores = {name: bid.scores for name, bid in bids.items()}
        standing = rounds.ranks(scores, table.pooled_scores(slope), batch=plan.batch)
        asked = yield AskedOwners(standing, Printed())
        yield from rounds._collect_points(table, matching, {name: bids[name] for name in asked}, slope)

    monkeypatch.setattr(rounds, "_ask_for_points", careless)
    found = [replayed(pair_of_round_worlds(plenty, seed), batch=1, runs=4, seed=seed) for seed in range(3)]
    assert not all(each.passed for each in found)


class Printed(AskRule):
    """A rule that misses rank 1."""

    mu = np.inf

    def probability(self, rank):
        return 0.5**rank


def test_owners_together_see_more_than_one(rehearsal):
    """privacy.md, section 5: with asking bits, 300 owners together reach δ(1) = .03, one owner 1e-5."""
    claim = ApproxDP(epsilon=1, delta=1e-5, relation="add/remove")
    plan = RoundPlan(size=10, dimension=12, ask_share=0.5, guarantee=claim)
    paid = RoundPlan(size=10, dimension=12, ask_share=0.5, coalition=300, guarantee=claim)
    ties = [round(plan.rule.threshold)] * 300
    assert plan.against == "one owner at a time, while all others keep to the protocol"
    assert curves.gaussian_delta(1, plan.mu) <= 1e-5 * (1 + 1e-6)
    assert curves.gaussian_delta(1, plan.mu_against(300)) > pooled_delta(plan, ties, rehearsal) > 0.5
    assert pooled_delta(plan, range(1, 301), rehearsal) > 0.02
    assert paid.against == "at most 300 owners together, while all others keep to the protocol"
    assert curves.gaussian_delta(1, paid.mu_against(300)) <= 1e-5 * (1 + 1e-6)
    assert pooled_delta(paid, [round(paid.rule.threshold)] * 300, rehearsal) < 1e-3


def pooled_delta(plan, ranks, noise, *, epsilon=1.0, trials=1000):
    """δ(ε) of the bits that owners of these ranks see in all rounds, if one row moves every rank by one."""
    here, there = ([plan.rule.probability(rank + shift) for rank in ranks] for shift in (0, 1))
    missed, missed_there = ([plan.rule.miss(rank + shift) for rank in ranks] for shift in (0, 1))
    yes = np.log(here) - np.log(there)
    with np.errstate(divide="ignore"):  # rank 1 is never missed
        no = np.log(missed) - np.log(missed_there)
    losses = np.zeros(trials)
    for _ in range(plan.rounds):
        asked = noise.uniform((trials, len(yes))) <= here
        losses += np.where(asked, yes, no).sum(axis=1)
    return float(np.mean(np.maximum(0.0, 1 - np.exp(epsilon - losses))))


class Deserter(OwnerNode):
    """Answers as many questions for rows as it is told to, then none."""

    answers = 0

    def disclose(self, question, to):
        self.answers -= 1
        if self.answers < 0:
            raise ConnectionError
        return super().disclose(question, to)


def deserter(answers):
    return type("Deserter", (Deserter,), {"answers": answers})


def pair_of_deserting_worlds(seed):
    """Owner c never sends rows; owner a sends rows once, of which three or four are different."""
    rng = np.random.default_rng(seed)
    few = np.repeat(rng.normal(1, 0.3, (3, 2)), 10, axis=0)
    more = few.copy()
    more[-1] = (1.1, 0.9)
    kinds = {"v": Consumer, "a": deserter(1), "b": OwnerNode, "c": deserter(0), "d": OwnerNode}
    held = {
        "v": rng.normal(1, 0.4, (80, 2)),
        "a": few,
        "b": rng.normal(0.7, 0.5, (60, 2)),
        "c": rng.normal(1, 0.4, (30, 2)),
        "d": rng.normal(0.5, 0.5, (40, 2)),
    }
    return [
        [node_of(name, dict(held, a=rows)[name], kind=kinds[name], seed=seed, rho=4.0) for name in held]
        for rows in (few, more)
    ]


def old_gather(allocation, matching):
    """The step as it was: others were asked for what the deserter had not sent, copies left out."""
    points = PointCollection(embedding=matching.embedding, embedded=matching.embedded)
    asked, kept = dict.fromkeys(allocation.sizes, 0), {}
    while missing := {name: n - asked[name] for name, n in allocation.rows.items() if n > asked[name]}:
        asks = [
            AskOwner(name, matching.rows_question(allocation, size=n, skip=asked[name]), to=matching.curator)
            for name, n in missing.items()
        ]
        replies, gone = (yield asks), []
        for ask, reply in zip(asks, replies, strict=True):
            asked[ask.owner] += missing[ask.owner]
            if isinstance(reply, Absent):
                gone.append(reply)
            else:
                points.add(ask.owner, reply.rows, most=missing[ask.owner])
                kept[ask.owner] = len({row.tobytes() for row in reply.rows["X"]})
        if gone:
            lost = {each.owner: allocation.rows[each.owner] - kept.get(each.owner, 0) for each in gone}
            allocation = allocation.without(lost, gone)
    return points.to_summary(allocation)


def replayed_views(worlds, step):
    guarantee = ZCDP(rho=4.0, relation="replace-one")
    matching = Matching(embedding=E, size=30, validation=guarantee, owners=guarantee)

    def run(nodes):
        sizes, curator = {node.name: node.size for node in nodes[1:]}, Curator()
        table = {node.name: node for node in nodes}
        allocation = curator.drive(match("v", nodes[0].size, sizes, matching), table)
        return curator.drive(step(allocation, matching), table)

    return replay_views(run, *worlds, changed="a"), worlds


@pytest.mark.parametrize("seed", range(4))
def test_who_drops_out_second_is_replaced_by_what_it_was_asked(seed):
    found, worlds = replayed_views(pair_of_deserting_worlds(seed), gather)
    assert found.passed, found
    assert found.compared == 4
    kinds = [entry.kind for entry in worlds[0][1].view.entries]
    assert kinds.count("summarization.rows") == 2, "the changed owner left at its second asking"


def test_replacing_what_did_not_come_is_caught():
    found, _ = replayed_views(pair_of_deserting_worlds(0), old_gather)
    assert not found.passed
    assert {each.field for each in found.differences} == {"size"}
    assert set(found.differing) <= {"b", "d"}


@pytest.mark.parametrize(("batch", "ask_share"), [(1, 0.0), (5, 0.0), (5, 0.5)])
def test_rounds_move_within_what_was_paid_for(batch, ask_share):
    (first, matching), (second, _) = pair_of_worlds()
    plan = RoundPlan(size=20, batch=batch, dimension=12, ask_share=ask_share, guarantee=matching.owners)
    found = replay_rounds(
        lambda nodes, draw: Curator().auction(
            nodes[0], nodes[1:], matching, batch=batch, ask_share=ask_share, draw=draw
        ),
        first,
        second,
        changed="a",
        steps=plan.steps,
        noise=coupled(3),
    )
    assert found.passed, found
    assert found.rounds == plan.rounds
    assert found.allowed == 4
