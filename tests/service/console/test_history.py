"""Lines, releases, and receipts against the ledger."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from fastapi.testclient import TestClient

from privada import Owner, Schema
from privada.privacy import Ledger, OwnerKey, PureDP
from privada.service.console.history import (
    LARGEST_RECEIPT,
    LARGEST_UPLOAD,
    MOST_FILES,
    Search,
    check_uploads,
    list_answered,
    open_release,
    tabulate_lines,
    verify,
)

from .conftest import AR, ORIGIN, question


def test_lines_are_found_by_learner_method_and_day_and_the_ledger_verifies(served):
    digest = served.ask()
    served.wait()
    served.owner.ledger.approve("rows", digest, by="Grace")
    served.until(lambda: served.owner.ledger.kept("rows", digest) is not None)
    everything = tabulate_lines(served.owner, Search())[-1].rows
    assert len(everything) == 4  # opened, allowed, approved, answered
    for search, found in (
        (Search(learner="ALI"), 2),
        (Search(learner="bob"), 0),
        (Search(method="cells"), 1),
        (Search(since="2999-01-01"), 0),
        (Search(until="2000-01-01"), 0),
    ):
        assert len(tabulate_lines(served.owner, search)[-1].rows) == found, search
    assert [one[0] for one in list_answered(served.owner, Search())] == [digest]
    opened = open_release(served.owner, digest)
    assert "each within ±" in "\n".join(opened.words)
    assert (opened.line.approver, opened.line.asker.learner, opened.line.question) == (
        "Grace",
        "alice",
        digest,
    )
    assert opened.share == pytest.approx(0.1)
    assert "53 of 100" in opened.risk
    assert open_release(served.owner, question("never").digest) is None
    assert "receipts: 1" in str(verify(served.owner))


@pytest.fixture
def digest(served):
    made = served.ask()
    served.wait()
    served.owner.ledger.approve("rows", made, by="<b>Grace</b>")
    served.until(lambda: served.owner.ledger.kept("rows", made) is not None)
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


def make_owner(key, dataset="rows"):
    ledger, budget = Ledger.open(":memory:", key), PureDP(epsilon=1, relation=AR)
    ledger.open_budget(dataset, budget)
    return Owner(
        np.full((9, 1), 0.1),
        schema=Schema.of_numbers(bounds=(0, 1), width=1),
        dataset=dataset,
        budget=budget,
        ledger=ledger,
    )


@pytest.fixture(scope="module")
def key():
    return OwnerKey.generate()


@pytest.fixture(scope="module")
def owner(key):
    return make_owner(key)


@pytest.fixture(scope="module")
def releases(owner):
    return [owner.answer(question(salt)) for salt in ("a", "b")]


def found(owner, *files):
    shown, unproven = check_uploads([owner], files)
    return shown.to_dict(), [row["line"] for row in unproven.to_dict()]


def as_json(receipt):
    return json.dumps(receipt.to_dict()).encode()


def test_genuine_receipts_match_and_the_other_charges_are_listed(owner, releases):
    (one,), left = found(owner, ("../../a.release", releases[0].to_bytes()))
    assert one == {
        "file": "a.release",
        "receipt of": "rows, line 1",
        "signature": "holds",
        "ledger": "Matches line 1.",
    }
    assert left == ["2"]
    files = [(f"{i}.json", as_json(each.receipt)) for i, each in enumerate(releases)]
    assert found(owner, *files)[1] == []


def test_a_cut_tail_and_a_rewritten_chain_are_found_beside_a_receipt_that_matches(key, releases):
    other = make_owner(key)
    other.answer(question("c"))
    files = [(f"{i}.json", as_json(each.receipt)) for i, each in enumerate(releases)]
    opening = other.ledger.open_budget("rows", PureDP(epsilon=1, relation=AR))
    (first, second, third), left = found(other, *files, ("budget.json", as_json(opening)))
    assert "rewritten" in first["ledger"]
    assert "tail was cut off" in second["ledger"]
    assert (third["ledger"], third["signature"]) == ("Matches line 0.", "holds")
    assert first["signature"] == second["signature"] == "holds"
    assert left == ["1"]


def test_forged_foreign_and_broken_files_are_named_and_prove_nothing(owner, releases):
    genuine = releases[0].receipt
    foreign = make_owner(OwnerKey.generate()).answer(question("d")).receipt
    elsewhere = make_owner(OwnerKey.generate(), "others").answer(question("d")).receipt
    damaged = bytearray(releases[0].to_bytes())
    damaged[-1] ^= 1
    rows, left = found(
        owner,
        ("changed.json", as_json(replace(genuine, time="2020-01-01T00:00:00+00:00"))),
        ("foreign.json", as_json(foreign)),
        ("elsewhere.json", as_json(elsewhere)),
        ("damaged.release", bytes(damaged)),
        ("deep.json", b"[" * 50_000),
        ("large.json", b" " * (LARGEST_RECEIPT + 1)),
        ("<b>empty</b>", b""),
    )
    assert [row["signature"] for row in rows] == [
        "does not hold",
        "of another owner",
        "of another owner",
        *["not checked"] * 4,
    ]
    assert "signature does not hold" in rows[0]["ledger"]
    assert "of another owner" in rows[1]["ledger"]
    assert rows[2]["ledger"] == "No such data set is served here."
    assert "not a receipt" in rows[4]["ledger"]
    assert "is larger than" in rows[5]["ledger"]
    assert not any("Matches" in row["ledger"] for row in rows)
    assert left == ["1", "2"]


def test_the_page_compares_what_a_signed_in_person_sends(served, app, enter):
    digest = served.ask()
    served.wait()
    served.owner.ledger.approve("rows", digest, by="Grace")
    served.until(lambda: served.owner.ledger.kept("rows", digest) is not None)
    vera = enter("Vera")
    token = re.search(
        r'form-data"><input type="hidden" name="token" value="(\w+)"', vera.get("/history").text
    )
    kept = served.owner.ledger.kept("rows", digest)
    files = [("files", ("a.release", kept)), ("files", ("<b>x</b>.json", b"{}"))]
    page = vera.post("/receipts", data={"token": token[1]}, files=files).text
    assert "1 of 2 files match the ledger" in page
    assert "Every charge has a receipt" in page
    assert "<b>x" not in page
    assert vera.post("/receipts", data={"token": "00"}, files=files).status_code == 403
    assert vera.post("/receipts", data={"token": token[1]}).status_code == 400
    many = [("files", (f"{i}.json", b"{}")) for i in range(MOST_FILES + 1)]
    assert vera.post("/receipts", data={"token": token[1]}, files=many).status_code == 400
    large = {"content-length": str(LARGEST_UPLOAD + 1)}
    assert vera.post("/receipts", headers=large).status_code == 413
    out = TestClient(app, base_url=ORIGIN, headers={"origin": ORIGIN}, follow_redirects=False)
    assert out.post("/receipts", data={"token": token[1]}, files=files).status_code == 303
