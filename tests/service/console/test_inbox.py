from privada.service.console.inbox import Inbox

from .conftest import question


def test_a_waiting_question_is_described_from_public_information(house, monkeypatch):
    digest = house.ask()
    house.wait()
    monkeypatch.setattr(type(house.owner), "_open", None)  # rows cannot be opened
    (one,) = Inbox(house.service).waiting()
    assert (one.who, one.organisation, one.owner.dataset) == ("alice", "Uni <b>X</b>", "rows")
    assert one.waiting.digest == digest
    (part,) = one.parts
    half = question().plan.draws[part.name].half_width(0.95)
    assert (part.numbers, part.within) == (2, f"± {half:.3g}")
    assert one.quote().share == 0.1
    share, left = one.allowance_share()
    assert (round(share, 9), left) == (0.2, 1.0)
    assert "53 of 100" in one.risk
    assert "ε = 0.025" in one.smaller("quarter")


def test_what_is_decided_leaves_the_inbox_and_its_page_stays(house):
    digest = house.ask()
    house.wait()
    inbox = Inbox(house.service)
    (one,) = inbox.waiting()
    house.owner.ledger.approve("rows", digest, by="Grace", asker=one.asker)
    assert inbox.waiting() == []
    house.wait(0)
    assert inbox.find("north", digest, one.waiting.identity) is one
    assert inbox.find("south", digest, one.waiting.identity) is None


def test_what_cannot_be_read_is_left_out(house):
    house.courier.put(f"questions/north/{'11' * 32}-{'22' * 16}.question", b"junk")
    house.ask()
    house.wait()
    assert len(Inbox(house.service).waiting()) == 1
