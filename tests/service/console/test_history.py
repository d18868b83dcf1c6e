import pytest

from privada.service.console.history import Search, answered, open_release, tables, verify

from .conftest import question


def test_lines_are_found_by_learner_method_and_day_and_the_ledger_verifies(house):
    digest = house.ask()
    house.wait()
    house.owner.ledger.approve("rows", digest, by="Grace")
    house.until(lambda: house.owner.ledger.kept("rows", digest) is not None)
    everything = tables(house.owner, Search())[-1].rows
    assert len(everything) == 4  # opened, allowed, approved, answered
    for search, found in (
        (Search(learner="ALI"), 2),
        (Search(learner="bob"), 0),
        (Search(method="cells"), 1),
        (Search(since="2999-01-01"), 0),
        (Search(until="2000-01-01"), 0),
    ):
        assert len(tables(house.owner, search)[-1].rows) == found, search
    assert [one[0] for one in answered(house.owner, Search())] == [digest]
    opened = open_release(house.owner, digest)
    assert "each within ±" in "\n".join(opened.words)
    assert (opened.line.approver, opened.line.asker.learner, opened.line.question) == (
        "Grace",
        "alice",
        digest,
    )
    assert opened.share == pytest.approx(0.1)
    assert "53 of 100" in opened.risk
    assert open_release(house.owner, question("never").digest) is None
    assert "receipts: 1" in str(verify(house.owner))
