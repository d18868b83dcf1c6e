"""Public settings: questions that follow from them stay within the budgets."""

from dataclasses import replace

import numpy as np
import pytest

from privada import PrivateSummarizer, run
from privada.exceptions import InputError, TamperError
from privada.methods.summarization import (
    Curator,
    EmbeddedRows,
    EmbeddingSum,
    InitialRows,
    Matching,
    SummaryRows,
    match,
    mmd2,
    summarise,
)
from privada.methods.summarization.learner.learn import forecast_summary
from privada.methods.summarization.learner.summary import Allocation, Reference
from privada.methods.summarization.questions.matching import FourierEmbedding
from privada.parties.protocol import AskOwner, check_disclosure
from privada.privacy import ZCDP, ApproxDP, PureDP
from privada.privacy.accounting import accountant
from privada.privacy.mechanism import gaussian_event


def drive(consumer, owners, matching):
    nodes = {node.name: node.owner for node in (consumer, *owners)}
    sizes = {node.name: node.size for node in owners}
    return run(summarise(consumer.name, consumer.size, sizes, matching), nodes)


def test_owners_that_hold_the_target_contribute(town, matching):
    consumer, owners = town()
    summary = drive(consumer, owners, matching)
    assert len(summary) == summary.points_seen == 40
    assert sum(summary.allocation.rows.values()) == 40
    assert summary.allocation.rows["near"] > 10 > summary.allocation.rows["far"]
    truth = np.random.default_rng(5).normal(1, 0.4, size=(500, 2))
    far = np.random.default_rng(5).normal(-1, 0.4, size=(40, 2))
    assert mmd2(summary.X, truth, gamma=0.5) < 0.1 * mmd2(far, truth, gamma=0.5)


def test_both_drivers_agree(town, matching):
    local = drive(*town(), matching)
    curated = Curator().summarise(*town(), matching)
    assert np.array_equal(local.X, curated.X)
    assert local.allocation.rows == curated.allocation.rows


def test_budgets_are_apart_and_spent_once(town, matching):
    consumer, owners = town()
    summary = drive(consumer, owners, matching)
    for node in owners:
        kinds = [line.kind for line in node.owner.ledger.lines(node.owner.dataset)]
        assert kinds.count("charge") == 2
        assert kinds.count("disclosure") == (summary.allocation.rows[node.name] > 0)
        assert node.owner.ledger.spent(node.owner.dataset).epsilon == pytest.approx(4, rel=1e-3)
    assert len(summary.allocation.releases) == 7
    assert consumer.owner.ledger.spent("dv").epsilon == pytest.approx(4, rel=1e-3)


def test_a_single_owner_is_asked_for_nothing_but_rows(town, matching):
    consumer, owners = town()
    summary = drive(consumer, owners[:1], matching)
    assert set(summary.owner) == {"near"}
    assert owners[0].owner.ledger.spent("near") is None
    assert len(summary.allocation.releases) == 1


def test_identical_owners_share_alike(town, matching, made_owner):
    consumer = town()[0]
    from privada.methods.summarization import OwnerNode

    X = np.random.default_rng(2).normal(1, 0.4, size=(150, 2))
    same = [OwnerNode(f"o{i}", made_owner(X, name=f"o{i}", seed=i)) for i in range(3)]
    rows = drive(consumer, same, matching).allocation.rows
    assert min(rows.values()) >= 8


def test_releases_serve_every_size(town, matching):
    consumer, owners = town()
    nodes = {node.name: node.owner for node in (consumer, *owners)}
    sizes = {node.name: node.size for node in owners}
    allocation = run(match(consumer.name, consumer.size, sizes, matching), nodes)
    assert sum(allocation.resized(300).rows.values()) == 300
    with pytest.raises(InputError, match="at most 600"):
        allocation.resized(601)


def test_too_large_summaries_and_empty_owners(matching):
    learner = match("consumer", 200, {"near": 10, "far": 0}, matching)
    with pytest.raises(InputError, match="at most 10, all rows of the owners"):
        next(learner.start())
    asked = next(match("consumer", 200, {"near": 150, "nobody": 0}, matching).start())
    assert asked.owner == "consumer"
    with pytest.raises(InputError, match="replace-one"):
        Matching(
            embedding=matching.embedding,
            size=3,
            validation=ApproxDP(epsilon=1, delta=1e-5, relation="add/remove"),
            owners=matching.owners,
        )


def test_a_disclosure_is_for_its_curator_and_its_question(town, matching):
    consumer, owners = town()
    allocation = drive(consumer, owners, matching).allocation
    question = matching.rows_question(allocation, size=2)
    disclosure = owners[0].owner.disclose(question, to="curator")
    check_disclosure(AskOwner("near", question, to="curator"), disclosure)
    with pytest.raises(TamperError, match="another curator"):
        check_disclosure(AskOwner("near", question, to="mallory"), disclosure)
    other = matching.rows_question(allocation, size=3)
    with pytest.raises(TamperError, match="another question"):
        check_disclosure(AskOwner("near", other, to="curator"), disclosure)
    with pytest.raises(InputError, match="asks for a Disclosure"):
        check_disclosure(AskOwner("near", question, to="curator"), None)
    skipped = owners[0].owner.disclose(matching.rows_question(allocation, size=1, skip=1), to="curator")
    assert np.array_equal(skipped.rows["X"][0], disclosure.rows["X"][1])


NOWHERE = Reference(direction=np.zeros(40), threshold=0.0)


def allocation(rows):
    return Allocation(rows=rows, sizes=rows, suitable={}, target=np.ones(40), variance=0.3, releases=())


def test_sum_and_count_of_an_owner_cost_its_budget_together(matching):
    first, second = matching.sum_question(), matching.near_question(NOWHERE)
    mu = np.hypot(*(each.guarantee.gaussian_mu() for each in (first, second)))
    assert mu == pytest.approx(matching.owners.gaussian_mu(), rel=1e-6)
    assert accountant.satisfies(gaussian_event(mu), matching.owners)
    pure = replace(matching, owners=PureDP(epsilon=2.0, relation="replace-one"))
    parts = (pure.sum_question(), pure.near_question(NOWHERE))
    assert sum(each.guarantee.epsilon for each in parts) <= 2.0


def test_what_is_asked_for_is_known_beforehand(matching):
    asks = list(matching.planned_asks("v", {"a": 10, "b": 20, "empty": 0}))
    assert [(ask.owner, ask.question.kind) for ask in asks] == [
        ("v", "summarization.sum"),
        *((name, kind) for name in "ab" for kind in ("summarization.sum", "summarization.near")),
    ]
    assert [ask.owner for ask in matching.planned_asks("v", {"a": 10})] == ["v"], (
        "a single owner pays nothing"
    )
    rows = list(matching.planned_row_asks({"a": 10, "empty": 0}))
    assert [(ask.owner, ask.to) for ask in rows] == [("a", "curator")]


def test_rows_match_what_is_missing_beside_initial_rows(matching):
    question = matching.rows_question(allocation({"a": 20}), size=20)
    assert type(question) is SummaryRows
    assert np.array_equal(question.target, np.ones(40))
    assert question.variance == 0.3
    assert replace(matching, denoised=False).rows_question(allocation({"a": 20}), size=20).variance == 0.0
    held = InitialRows(mean=np.zeros(40), size=20)
    beside = replace(matching, initial=held, embedded=True).rows_question(allocation({"a": 20}), size=20)
    assert type(beside) is EmbeddedRows
    assert np.allclose(beside.target, 2.0)
    assert beside.variance == pytest.approx(4 * 0.3)


def test_settings_are_checked_by_name(matching):
    with pytest.raises(InputError, match="owners to be a Guarantee"):
        replace(matching, owners=None)
    with pytest.raises(InputError, match="size"):
        replace(matching, size=0)
    other = ApproxDP(epsilon=1, delta=1e-5, relation="add/remove")
    with pytest.raises(InputError, match="public sizes"):
        Matching(embedding=matching.embedding, size=1, validation=matching.validation, owners=other)


RHO = ZCDP(rho=5.0, relation="replace-one")


def test_what_is_left_makes_the_whole_match():
    rng = np.random.default_rng(0)
    target, held = rng.normal(size=4), InitialRows(mean=rng.normal(size=4), size=30, variance=0.2)
    mean, variance = held.left(target, 0.1, 20)
    assert np.allclose((30 * held.mean + 20 * mean) / 50, target)
    assert variance == pytest.approx((50**2 * 0.1 + 30**2 * 0.2) / 20**2)


def test_a_holder_of_people_releases_its_mean(matching, made_owner):
    rows = np.random.default_rng(1).normal(1, 0.4, size=(500, 2))
    question = EmbeddingSum(embedding=matching.embedding, guarantee=RHO)
    release = made_owner(rows, name="held", budget=RHO).answer(question)
    protected, public = (
        InitialRows.released(question, release, size=500),
        InitialRows.public(rows, matching.embedding),
    )
    assert np.linalg.norm(protected.mean - public.mean) < 6 * np.sqrt(protected.variance * len(public.mean))
    assert protected.variance > public.variance == 0
    with pytest.raises(InputError, match="another one"):
        InitialRows.released(replace(question, salt="other"), release, size=500)
    with pytest.raises(InputError, match="size"):
        InitialRows.released(question, release, size=0)


def test_initial_rows_move_what_is_gathered():
    """Two thirds of the validation set are here; beside initial rows from here, the rest is missing there."""
    rng = np.random.default_rng(0)
    here, there = (rng.normal(at, 0.2, size=(3000, 2)) for at in (1.0, -1.0))
    validation = np.vstack([here[:660], there[:340]])
    model = PrivateSummarizer(size=60, gamma=0.5, bounds=(-3, 3), rho=2.0, random_state=0)
    owners = {"here": here[700:], "there": there[700:]}
    alone = model.fit(validation, owners=owners).allocation_.rows
    beside = model.fit(validation, owners=owners, initial_rows=here[:60]).allocation_.rows
    assert alone["here"] > 50
    assert beside["there"] > 50
    with pytest.raises(InputError, match="rows"):
        model.fit(validation, owners=owners, initial_rows=here[:60, :1])


EMBEDDING = FourierEmbedding.of(width=3, n_features=60, gamma=0.5, random_state=0)


def expect(epsilon, size):
    budget = ApproxDP(epsilon=epsilon, delta=1e-5, relation="replace-one")
    matching = Matching(embedding=EMBEDDING, size=20, validation=budget, owners=budget)
    return forecast_summary(matching, validation_size=size)


def test_it_falls_with_rows_and_budget_and_gains_nothing_where_nothing_is_heard():
    assert expect(0.01, 50).worthwhile is False
    assert expect(0.5, 50).ratio > expect(4.0, 50).ratio > expect(4.0, 500).ratio
    assert expect(4.0, 5000).high < 1
    assert "random choice" in expect(1.0, 50).explanation


def test_a_validation_set_has_rows():
    with pytest.raises(InputError, match="validation_size"):
        expect(1.0, 0)
