from datetime import UTC, datetime, timedelta

import pytest

from privada.privacy import PureDP
from privada.service.console.burn_down import BurnDown, of_budget, of_learner

NOW = datetime(2026, 6, 30, tzinfo=UTC)


def burn(*uses, days=100):
    made = sorted((NOW - timedelta(days=ago), share) for ago, share in uses)
    whole = PureDP(epsilon=1, relation="add/remove")
    return BurnDown(whole=whole, begun=NOW - timedelta(days=days), now=NOW, uses=made)


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
    assert made.left == 0
    assert made.path().count("H") <= 602
    assert made.path().endswith("V120.0 H600")


def test_budget_and_allowance_burn_down_as_the_ledger_counts_them(house):
    digest, ledger = house.ask(), house.owner.ledger
    house.wait()
    ledger.approve("rows", digest, by="Grace")
    house.until(lambda: ledger.kept("rows", digest) is not None)
    lines = list(ledger.lines("rows"))
    known = house.owner.learners
    used = of_learner(lines, ledger.allowed("rows", known.allowances[0]), NOW)
    assert of_budget(lines, NOW).left == pytest.approx(0.9)
    assert used.left == pytest.approx(0.8)
    assert used.left == pytest.approx(ledger.used("rows", known.allowances[0]).share)
