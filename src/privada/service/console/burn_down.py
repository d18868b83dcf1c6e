"""How a budget or an allowance was used over time, and when it would be used up at the present rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from privada.privacy.accounting.filters import Allowance, Filter
from privada.privacy.guarantee import Guarantee
from privada.privacy.ledger.account import read_account
from privada.privacy.ledger.chain import CHARGE, COPY, Line

WINDOW = timedelta(days=30)  # whose rate is the present one
SHORTEST = timedelta(days=1)  # of a history from which a rate is taken
FEWEST = 3  # answers from which a rate is taken
FARTHEST = 3650.0  # days, beyond which no date is stated
WIDTH, HEIGHT = 600, 120  # of a picture


@dataclass(frozen=True, kw_only=True)
class BurnDown:
    """What was left after each answer.

    Attributes
    ----------
    whole : Guarantee
        The budget or the allowance.
    begun, now : datetime
        When it was opened, and the time of the last look.
    uses : sequence of (datetime, float)
        When an answer was paid, and which share of the whole it took; in order of time.
    """

    whole: Guarantee
    begun: datetime
    now: datetime
    uses: Sequence[tuple[datetime, float]]

    @property
    def left(self) -> float:
        """The share that is left; 0 for an allowance that was lowered below what is used."""
        return max(0.0, 1.0 - sum(share for _, share in self.uses))

    def path(self) -> str:
        """The steps down as the path of a picture of 600 by 120, at most one step for each column.

        >>> day = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)
        >>> half = (datetime(2026, 1, 2, tzinfo=UTC), 0.5)
        >>> BurnDown(whole=None, begun=day[0], now=day[1], uses=[half]).path()
        'M0,0.0 H300 V60.0 H600'
        """
        span = max((self.now - self.begun).total_seconds(), 1.0)
        left, columns = 1.0, dict[int, float]()
        for time, share in self.uses:
            left -= share
            part = (time - self.begun).total_seconds() / span
            columns[round(WIDTH * min(1.0, max(0.0, part)))] = max(0.0, left)
        steps = (f"H{column} V{HEIGHT * (1 - value):.1f}" for column, value in columns.items())
        return " ".join(["M0,0.0", *steps, f"H{WIDTH}"])

    def forecast(self) -> str:
        """When it would be used up if it went on as lately, in words; a plain extrapolation."""
        if self.left <= 0:
            return "It is used up."
        since = max(self.begun, self.now - WINDOW)
        lately = [share for time, share in self.uses if time >= since]
        days = (self.now - since) / timedelta(days=1)
        if not lately and self.now - self.begun >= WINDOW:
            return f"Nothing was used in the last {WINDOW.days} days, so no date can be extrapolated."
        if len(lately) < FEWEST or self.now - since < SHORTEST or not sum(lately):
            return (
                f"There is too little history for a forecast: it takes {FEWEST} answers within "
                f"{WINDOW.days} days, and at least one day."
            )
        rate = sum(lately) / days
        span = "day" if round(days) == 1 else f"{days:.0f} days"
        told = f"At the rate of the last {span} it would be used up"
        when = (
            "in more than ten years"
            if self.left / rate > FARTHEST
            else f"around {(self.now + timedelta(days=self.left / rate)):%Y-%m-%d}"
        )
        return f"{told} {when}. This is a plain extrapolation: it does not know what learners plan."


def of_budget(lines: Sequence[Line], now: datetime) -> BurnDown:
    """How the budget of a data set was used, from all lines of its ledger."""
    account = read_account(lines[0])
    uses = [(_time(line), line.cost / account.capacity) for line in lines if line.kind == CHARGE]
    return BurnDown(whole=account.filter.budget, begun=_time(lines[0]), now=now, uses=uses)


def of_learner(lines: Sequence[Line], allowance: Allowance, now: datetime) -> BurnDown:
    """How a learner used the allowance that is in force, or the budget if it may have all of that.

    As when a question is charged, every answer counts from the beginning, also one that somebody else paid.
    """
    keeps = allowance.filter or read_account(lines[0]).filter
    uses = [(_time(line), _share(line, keeps)) for line in lines if _went_to(line, allowance)]
    return BurnDown(whole=keeps.budget, begun=_time(lines[0]), now=now, uses=uses)


def _went_to(line: Line, allowance: Allowance) -> bool:
    asker = line.asker
    known = asker is not None and (asker.key == allowance.key or asker.learner == allowance.learner)
    return known and line.kind in (CHARGE, COPY)


def _share(line: Line, keeps: Filter) -> float:
    price = line.answer_price
    return 0.0 if price is None else keeps.recorded_cost(price) / keeps.capacity


def _time(line: Line) -> datetime:
    return datetime.fromisoformat(line.time).astimezone(UTC)


__all__ = ["BurnDown", "of_budget", "of_learner"]
