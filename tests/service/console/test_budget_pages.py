import re

import pytest

from privada.privacy import Pure

from .conftest import AR


@pytest.fixture
def path(house):
    (alice,) = house.owner.learners.learners
    return f"/allowances/north/{alice.key}"


def confirm(client, path, most):
    page = client.get(path, params={"most": most})
    token = re.search(r'name="token" value="(\w+)"><input type="hidden" name="most"', page.text)
    return {"token": token[1] if token else "", "most": most}


def test_the_page_says_what_is_left_with_the_relation(enter):
    page = enter("Vera").get("/budget").text
    for words in (
        "budget: ε = 1 (pure), add/remove",
        "allowance: ε = 0.5 (pure), add/remove",
    ):
        assert words in page, words
    assert "too little history" in page
    assert "style=" not in page
    assert '<form method="get"' not in page


def test_an_allowance_is_changed_after_a_confirmation_with_the_name_of_who_did(house, enter, path):
    ada = enter("Ada")
    before = len(house.lines("allowance"))
    made = confirm(ada, path, "0.25")
    assert len(house.lines("allowance")) == before  # nothing is written before it is confirmed
    reply = ada.post(path, data=made)
    assert (reply.status_code, reply.headers["location"]) == (303, "/budget")
    line = house.lines("allowance")[-1]
    assert (line.approver, line.asker.learner) == ("Ada", "alice")
    assert house.owner.ledger.allowed("rows", house.owner.learners.allowances[0]).filter.budget == Pure(
        epsilon=0.25, relation=AR
    )
    assert "allowance: ε = 0.25 (pure), add/remove one row" in ada.get("/budget").text
    assert ada.post(path, data=made).status_code == 403  # doubled: it was a change from 0.5
    assert ada.post(path, data=confirm(ada, path, "")).status_code == 303
    assert "no allowance of its own" in ada.get("/budget").text
    assert len(house.lines("allowance")) == before + 2
    assert "hold" in str(house.owner.ledger.verify())


def test_forged_stale_and_false_forms_change_nothing(house, enter, path):
    ada, before = enter("Ada"), len(house.lines("allowance"))
    good = confirm(ada, path, "0.25")
    assert ada.post(path, data=good | {"most": "0.9"}).status_code == 403
    assert ada.post(path, data=good | {"token": "00" * 32}).status_code == 403
    assert ada.post(path, data=good, headers={"origin": "https://evil.example"}).status_code == 403
    assert ada.post("/allowances/south/" + path.split("/")[-1], data=good).status_code == 404
    assert enter("Ada").post(path, data=good).status_code == 403  # another session's
    for wrong in ("2", "-1", "0", "nan", "inf", "much"):
        assert ada.get(path, params={"most": wrong}).status_code == 400
        assert ada.post(path, data=good | {"most": wrong}).status_code == 400
    assert "already" in ada.get(path, params={"most": "0.5"}).text
    assert len(house.lines("allowance")) == before
