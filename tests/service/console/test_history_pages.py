import re

import pytest


@pytest.fixture
def digest(house):
    made = house.ask()
    house.wait()
    house.owner.ledger.approve("rows", made, by="<b>Grace</b>")
    house.until(lambda: house.owner.ledger.kept("rows", made) is not None)
    return made


def test_the_history_is_searched_opened_and_printed(enter, digest):
    vera = enter("Vera")
    page = vera.get("/history").text
    assert "by &lt;b&gt;Grace&lt;/b&gt;" in page
    assert "<b>Grace" not in page
    assert f"/releases/north/{digest}" in page
    assert digest not in vera.get("/history", params={"learner": "bob"}).text
    opened = vera.get(f"/releases/north/{digest}").text
    for words in ("each within ±", "alice", "&lt;b&gt;Grace&lt;/b&gt;", "10% of the budget", "53 of 100"):
        assert words in opened, words
    assert "<script>" not in opened  # the learner's purpose
    assert vera.get(f"/releases/south/{digest}").status_code == 404
    assert "add/remove one row" in vera.get("/export").text


def test_the_ledger_is_verified_by_button_and_by_a_form_of_this_session_only(enter, digest):
    vera = enter("Vera")
    token = re.search(
        r'action="/verify"><input type="hidden" name="token" value="(\w+)"', vera.get("/history").text
    )
    assert "receipts: 1; chains, sums" in vera.post("/verify", data={"token": token[1]}).text
    assert vera.post("/verify", data={"token": "00"}).status_code == 403
    assert enter("Ada").post("/verify", data={"token": token[1]}).status_code == 403
