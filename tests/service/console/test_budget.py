"""The use of a budget over time, and its pages."""

import re
from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest
from fastapi.testclient import TestClient

from privada import Owner, Schema
from privada.exchange.local import LocalCourier
from privada.parties.columns import Number
from privada.privacy import Ledger, OwnerKey, PureDP
from privada.privacy.accounting.filters import Vintage
from privada.service.console.application import make_application
from privada.service.console.budget import BurnDown, trace_budget, trace_learner
from privada.service.console.console import Console, Inbox
from privada.service.serving import Desk, Service

from .conftest import AR, ORIGIN, PASSPHRASE

NOW = datetime(2026, 6, 30, tzinfo=UTC)


def burn(*uses, days=100):
    made = sorted((NOW - timedelta(days=ago), share) for ago, share in uses)
    whole = PureDP(epsilon=1, relation="add/remove")
    return BurnDown(total=whole, begun=NOW - timedelta(days=days), now=NOW, uses=made)


def test_a_forecast_goes_on_at_the_rate_of_the_last_month():
    old = burn((90, 0.4), (20, 0.1), (10, 0.1), (5, 0.1))  # 0.3 left, at 0.3 in 30 days
    assert "last 30 days it would be used up around 2026-07-30" in old.forecast()
    assert "plain extrapolation" in old.forecast()
    young = burn((9, 0.1), (2, 0.1), (1, 0.1), days=10)  # 0.7 left, at 0.3 in 10 days
    assert "last 10 days it would be used up around 2026-07-23" in young.forecast()
    assert "more than ten years" in burn((3, 1e-4), (2, 1e-4), (1, 1e-4)).forecast()


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (burn(days=5), "too little history"),
        (burn((2, 0.1), (1, 0.1)), "too little history"),
        (burn((0.1, 0.1), (0.1, 0.1), (0.1, 0.1), days=0.5), "too little history"),
        (burn((3, 0.0), (2, 0.0), (1, 0.0)), "too little history"),
        (burn((90, 0.1)), "Nothing was used in the last 30 days"),
        (burn((90, 0.5), (1, 0.7)), "It is used up"),
    ],
)
def test_a_forecast_says_when_there_is_none(made, says):
    assert says in made.forecast()
    assert "20" not in made.forecast()


def test_a_picture_has_one_step_for_each_column_and_stays_inside():
    made = burn(*((ago / 1000, 0.0002) for ago in range(10_000)))
    assert made.remaining == 0
    assert made.path().count("H") <= 602
    assert made.path().endswith("V120.0 H600")


def test_budget_and_allowance_burn_down_as_the_ledger_counts_them(served):
    digest, ledger = served.ask(), served.owner.ledger
    served.wait()
    ledger.approve("rows", digest, by="Grace")
    served.until(lambda: ledger.kept("rows", digest) is not None)
    lines = list(ledger.lines("rows"))
    known = served.owner.learners
    used = trace_learner(lines, ledger.allowed("rows", known.allowances[0]), NOW)
    assert trace_budget(lines, NOW).remaining == pytest.approx(0.9)
    assert used.remaining == pytest.approx(0.8)
    assert used.remaining == pytest.approx(ledger.used("rows", known.allowances[0]).share)


@pytest.fixture
def path(served):
    (alice,) = served.owner.learners.learners
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


def test_an_allowance_is_changed_after_a_confirmation_with_the_name_of_who_did(served, enter, path):
    ada = enter("Ada")
    before = len(served.lines("allowance"))
    made = confirm(ada, path, "0.25")
    assert len(served.lines("allowance")) == before  # nothing is written before it is confirmed
    reply = ada.post(path, data=made)
    assert (reply.status_code, reply.headers["location"]) == (303, "/budget")
    line = served.lines("allowance")[-1]
    assert (line.approver, line.asker.learner) == ("Ada", "alice")
    assert served.owner.ledger.allowed("rows", served.owner.learners.allowances[0]).filter.budget == PureDP(
        epsilon=0.25, relation=AR
    )
    assert "allowance: ε = 0.25 (pure), add/remove one row" in ada.get("/budget").text
    assert ada.post(path, data=made).status_code == 403  # doubled: it was a change from 0.5
    assert ada.post(path, data=confirm(ada, path, "")).status_code == 303
    assert "no allowance of its own" in ada.get("/budget").text
    assert len(served.lines("allowance")) == before + 2
    assert "hold" in str(served.owner.ledger.verify())


def test_forged_stale_and_false_forms_change_nothing(served, enter, path):
    ada, before = enter("Ada"), len(served.lines("allowance"))
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
    assert len(served.lines("allowance")) == before


def test_vintages_of_one_data_set_stand_together_with_their_periods(people):
    key, budget = OwnerKey.generate(), PureDP(epsilon=1, relation=AR)
    ledger = Ledger.open(":memory:", key)
    frame = pd.DataFrame({"x": [0.1, 0.9], "day": ["2025-06-01", "2026-06-01"]})
    desks = []
    for year in (2026, 2025, 2024):
        days = {"since": f"{year}-01-01", "until": f"{year + 1}-01-01"}
        vintage = Vintage(of="visits", name=str(year), column="day", **days)
        ledger.open_budget(vintage.dataset, budget, vintage=vintage)
        if year > 2024:  # an old one that nobody serves any more
            schema = Schema(columns=[Number(name="x", low=0, high=1)])
            settings = {"dataset": vintage.dataset, "ledger": ledger, "vintage": vintage}
            desks.append(Desk(f"v{year}", Owner(frame, schema=schema, budget=budget, **settings)))
    console = Console(inbox=Inbox(Service(desks, LocalCourier)), users=people, origins=(ORIGIN,))
    client = TestClient(make_application(console), base_url=ORIGIN, headers={"origin": ORIGIN})
    client.post("/sign-in", data={"name": "Vera", "passphrase": PASSPHRASE})
    page = client.get("/budget").text
    assert page.count("<h2>Vintages of visits</h2>") == 1
    assert page.index("<h2>visits-2025</h2>") < page.index("<h2>visits-2026</h2>")
    assert "<h2>visits-2024</h2>" not in page
    assert "day from 2024-01-01 and before 2025-01-01" in page
    assert "as a new vintage" in page
