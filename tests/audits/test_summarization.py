"""Audits of summarization: sound questions, views and rounds pass; the printed auction is caught.

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
    audit_mechanism,
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
    Consumer,
    Curator,
    EmbeddingSum,
    FourierEmbedding,
    Matching,
    NearCount,
    OwnerNode,
    RoundPlan,
    paper_auction,
)
from privada.privacy import ZCDP, Approximate, Pure, Relation, Unit

E = FourierEmbedding.of(width=2, n_features=12, gamma=0.5, random_state=0)
ROWS = np.random.default_rng(11).normal(0.5, 0.8, size=(60, 2))
SCHEMA = Schema.of_numbers(bounds=(-3, 3), width=2, size=60)
PERSON = Unit(name="person", max_rows=3)
PURE, RHO = Pure(epsilon=2, relation="add/remove"), ZCDP(rho=0.3, relation="add/remove")


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


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_printed_auction_is_caught(epsilon):
    """PRIVACY, section 5 (b): δ = 1 - exp(-ε) in one round; claimed ε (twice over), with δ = 1e-3."""
    seeds = iter(range(10**6))
    claimed = Approximate(epsilon=2 * epsilon, delta=1e-3, relation="add/remove")

    def asked(best_of_others):
        coins = paper_auction([0.5, best_of_others], epsilon=epsilon, rehearsal=next(seeds))
        return float(coins[0])  # what the first owner sees

    result = audit_mechanism(asked, 0.1, 0.9, claimed=claimed, trials=20_000)
    assert not result.passed
    assert result.epsilon_lower > 2 * epsilon


def world(near, far, seed=0):
    """A consumer and three owners; rows of the first owner are given."""
    rng = np.random.default_rng(seed)
    held = {"v": rng.normal(1, 0.5, (80, 2)), "a": near, "b": far, "c": rng.normal(0, 1, (40, 2))}
    guarantee = Approximate(epsilon=3, delta=1e-4, relation="replace-one")
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
                rehearsal=i,
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


@pytest.mark.parametrize(("batch", "ask_share"), [(1, 0.0), (5, 0.0), (5, 0.5)])
def test_rounds_move_within_what_was_paid_for(batch, ask_share):
    (first, matching), (second, _) = pair_of_worlds()
    plan = RoundPlan(size=20, batch=batch, dimension=12, ask_share=ask_share, guarantee=matching.owners)
    found = replay_rounds(
        lambda nodes, voice: Curator().auction(
            nodes[0], nodes[1:], matching, batch=batch, ask_share=ask_share, voice=voice
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
