"""The budget of a data set and its parts: how they were used, for how long they last, and changing them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import Depends, FastAPI, Form, Query
from fastapi.responses import RedirectResponse, Response

from privada.exceptions import InputError, PrivadaError
from privada.parties.owner import Owner
from privada.parties.permissions import KnownLearner, part_of
from privada.privacy.accounting.filters import Allowance
from privada.privacy.guarantee import ZCDP, Guarantee
from privada.privacy.ledger.account import read_account
from privada.privacy.ledger.chain import CHARGE, COPY, Line
from privada.report.ledger import vintages_tables
from privada.report.tables import Table
from privada.service.console.console import Console, Refused
from privada.service.console.users import Session
from privada.service.serving import Desk

WHOLE = "the whole budget"
WINDOW = timedelta(days=30)  # whose rate is the present one
SHORTEST = timedelta(days=1)  # of a history from which a rate is taken
FEWEST = 3  # answers from which a rate is taken
FARTHEST = 3650.0  # days, beyond which no date is stated
WIDTH, HEIGHT = 600, 120  # of a picture
Most = Annotated[str, Query(max_length=30)]


@dataclass(frozen=True, kw_only=True)
class BurnDown:
    """What remained of a budget or an allowance after each answer."""

    total: Guarantee
    begun: datetime  # when it was opened
    now: datetime  # the time of the last look
    uses: Sequence[tuple[datetime, float]]  # when an answer was paid, and its share of the total; in order

    @property
    def remaining(self) -> float:
        """The share that remains; 0 for an allowance that was lowered below what is used."""
        return max(0.0, 1.0 - sum(share for _, share in self.uses))

    def path(self) -> str:
        """Return the steps down as the path of a picture of 600 by 120, at most one step for each column.

        >>> day = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)
        >>> half = (datetime(2026, 1, 2, tzinfo=UTC), 0.5)
        >>> BurnDown(total=None, begun=day[0], now=day[1], uses=[half]).path()
        'M0,0.0 H300 V60.0 H600'
        """
        span = max((self.now - self.begun).total_seconds(), 1.0)
        remaining, columns = 1.0, dict[int, float]()
        for time, share in self.uses:
            remaining -= share
            part = (time - self.begun).total_seconds() / span
            columns[round(WIDTH * min(1.0, max(0.0, part)))] = max(0.0, remaining)
        steps = (f"H{column} V{HEIGHT * (1 - value):.1f}" for column, value in columns.items())
        return " ".join(["M0,0.0", *steps, f"H{WIDTH}"])

    def forecast(self) -> str:
        """Say when it would be used up if it went on as lately; a plain extrapolation."""
        if self.remaining <= 0:
            return "It is used up."
        # A rate from one evening, or from two answers, would forecast anything.
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
        span = "day" if round(days) == 1 else f"{days:.0f} days"
        days_left = self.remaining / (sum(lately) / days)
        when = "in more than ten years"
        if days_left <= FARTHEST:
            when = f"around {self.now + timedelta(days=days_left):%Y-%m-%d}"
        return (
            f"At the rate of the last {span} it would be used up {when}. "
            "This is a plain extrapolation: it does not know what learners plan."
        )


def trace_budget(lines: Sequence[Line], now: datetime) -> BurnDown:
    """Return how the budget of a data set was used, from all lines of its ledger."""
    account = read_account(lines[0])
    uses = [(_read_time(line), line.cost / account.capacity) for line in lines if line.kind == CHARGE]
    return BurnDown(total=account.filter.budget, begun=_read_time(lines[0]), now=now, uses=uses)


def trace_learner(lines: Sequence[Line], allowance: Allowance, now: datetime) -> BurnDown:
    """Return how a learner used its allowance that is in force, or the budget if it may have all of that.

    As when a question is charged, every answer counts from the beginning, also one that somebody else paid.
    """
    limit = allowance.filter or read_account(lines[0]).filter
    uses = []
    for line in lines:
        asker = line.asker
        if asker is None or line.kind not in (CHARGE, COPY):
            continue
        if asker.key == allowance.key or asker.learner == allowance.learner:
            share = (
                0.0 if line.answer_price is None else limit.recorded_cost(line.answer_price) / limit.capacity
            )
            uses.append((_read_time(line), share))
    return BurnDown(total=limit.budget, begun=_read_time(lines[0]), now=now, uses=uses)


def _read_time(line: Line) -> datetime:
    return datetime.fromisoformat(line.time).astimezone(UTC)


@dataclass(frozen=True, kw_only=True)
class LearnerTerms:
    """A learner of an owner: the allowance in force, None for the whole budget, and its burn-down."""

    desk: Desk
    learner: KnownLearner
    most: Guarantee | None
    used: BurnDown

    @property
    def path(self) -> str:
        """The path at which its allowance is changed."""
        return f"/allowances/{self.desk.name}/{self.learner.key}"

    def bound(self, new: Guarantee | None) -> tuple[str, ...]:
        """Return what a form that changes the allowance from this one to another is bound to."""
        terms = (json.dumps(most and most.to_dict(), sort_keys=True) for most in (self.most, new))
        return ("allow", self.desk.name, self.learner.key, *terms)


def add_budget_pages(app: FastAPI, console: Console) -> None:
    """Add the page of the budget, and those on which an administrator changes an allowance."""
    viewer, administrator = Depends(console.needs("viewer")), Depends(console.needs("administrator"))

    def show(session: Session, *, status: int = 200, error: str = "") -> Response:
        now, desks = datetime.now(UTC), sorted(console.inbox.desks, key=order_by_vintage)
        return console.page(
            "budget.html",
            session,
            status=status,
            error=error,
            title="Budget",
            here="/budget",
            owners=[(desk, *read_terms(desk, now)) for desk in desks],
            vintages=find_vintages(console.inbox.desks),
            may_change=session.user.may("administrator"),
            whole=WHOLE,
        )

    @app.get("/budget")
    def budget(session: Session = viewer) -> Response:
        return show(session)

    @app.get("/allowances/{owner}/{key}")
    def ask(owner: str, key: str, most: Most = "", session: Session = administrator) -> Response:
        terms = find_terms(console, owner, key)
        try:
            new = read_allowance(terms.desk.owner, most)
        except PrivadaError as error:
            return show(session, status=400, error=str(error))
        if new == terms.most:
            unchanged = f"{terms.learner.name} may have {new or WHOLE} already; nothing was changed."
            return show(session, status=400, error=unchanged)
        return console.page(
            "allowance.html",
            session,
            title="Change an allowance",
            one=terms,
            new=new or WHOLE,
            most=most,
            token=session.token(*terms.bound(new)),
        )

    @app.post("/allowances/{owner}/{key}")
    def allow(
        owner: str,
        key: str,
        token: Annotated[str, Form(max_length=64)],
        most: Annotated[str, Form(max_length=30)] = "",
        session: Session = administrator,
    ) -> Response:
        terms = find_terms(console, owner, key)
        try:
            new = read_allowance(terms.desk.owner, most)
        except PrivadaError as error:
            raise Refused(400, str(error)) from None
        if not session.owns(token, *terms.bound(new)):
            raise Refused(403, "The form is not one of this session, or the allowance was changed since.")
        ledger, dataset = terms.desk.owner.ledger, terms.desk.owner.dataset
        learner = terms.learner
        ledger.allow(dataset, most=new, learner=learner.name, key=learner.key, by=session.user.name)
        return RedirectResponse("/budget", 303)


def read_allowance(owner: Owner, most: str) -> Guarantee | None:
    """Read the allowance that a person typed, as the budget's ε or ρ; None, if nothing was, for all of it."""
    budget = owner.ledger.budget(owner.dataset).budget
    if not most.strip():
        return None
    try:
        number = float(most)
    except ValueError:
        raise InputError(f"Expected a number or nothing, got {most!r:.40}.") from None
    if isinstance(budget, ZCDP):
        return part_of(budget, epsilon=None, delta=None, rho=number)
    return part_of(budget, epsilon=number, delta=None, rho=None)


def find_terms(console: Console, owner: str, key: str) -> LearnerTerms:
    """Return the terms of a learner that an owner knows, or raise `Refused`."""
    for desk in console.inbox.desks:
        if desk.name == owner:
            for terms in read_terms(desk, datetime.now(UTC))[1]:
                if terms.learner.key == key:
                    return terms
    raise Refused(404, "There is no such owner, or it does not know this learner.")


def read_terms(desk: Desk, now: datetime) -> tuple[BurnDown, list[LearnerTerms]]:
    """Return the burn-down of a data set, and the terms of each learner that its owner knows."""
    owner, lines = desk.owner, list(desk.owner.ledger.lines(desk.owner.dataset))
    terms = []
    for learner in owner.learners.learners if owner.learners is not None else ():
        assert owner.learners is not None  # it has this learner
        allowed = owner.ledger.allowed(owner.dataset, owner.learners.allowance(learner))
        most = None if allowed.filter is None else allowed.filter.budget
        used = trace_learner(lines, allowed, now)
        terms.append(LearnerTerms(desk=desk, learner=learner, most=most, used=used))
    return trace_budget(lines, now), terms


def find_vintages(desks: Sequence[Desk]) -> list[Table]:
    """Return all vintages of the data sets that are served, also those that are not, each ledger's once."""
    served = [desk.owner for desk in desks if desk.owner.ledger.vintage(desk.owner.dataset) is not None]
    tables = {
        (owner.public_key, table.title): table
        for owner in served
        for table in vintages_tables(owner.ledger.export())
    }
    return list(tables.values())


def order_by_vintage(desk: Desk) -> tuple[str, str, str]:
    """Return a sort key by which vintages of a data set stand together, the first one first."""
    vintage = desk.owner.ledger.vintage(desk.owner.dataset)
    return (desk.owner.dataset, "", "") if vintage is None else (vintage.of, str(vintage.since), desk.name)


__all__ = [
    "BurnDown",
    "add_budget_pages",
    "find_terms",
    "find_vintages",
    "read_allowance",
    "trace_budget",
    "trace_learner",
]
