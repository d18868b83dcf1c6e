import numpy as np
import pytest

from privada import run
from privada.exceptions import InputError, TamperError
from privada.methods.summarization import Curator, Matching, match, mmd2, summarise
from privada.parties.protocol import AskOwner, check_disclosure
from privada.privacy import ApproxDP


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
        next(learner)
    asked = next(match("consumer", 200, {"near": 150, "nobody": 0}, matching))
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
