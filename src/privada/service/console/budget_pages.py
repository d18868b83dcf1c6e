"""The pages of the budget: what is left and for how long, and allowances, which an administrator changes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Form, Query
from fastapi.responses import RedirectResponse, Response

from privada.exceptions import InputError, PrivadaError
from privada.parties.owner import Owner
from privada.parties.permissions import KnownLearner, KnownLearners, part_of
from privada.privacy.guarantee import ZCDP, Guarantee
from privada.report.ledger import vintages_tables
from privada.report.tables import Table
from privada.service.console.burn_down import BurnDown, of_budget, of_learner
from privada.service.console.sessions import Session
from privada.service.console.stage import Console, Refused
from privada.service.serving import Desk

WHOLE = "the whole budget"
Most = Annotated[str, Query(max_length=30)]


@dataclass(frozen=True, kw_only=True)
class LearnerTerms:
    """A learner of an owner: the allowance in force, None for the whole budget, and its burn-down."""

    desk: Desk
    learner: KnownLearner
    most: Guarantee | None
    used: BurnDown

    @property
    def path(self) -> str:
        """Where its allowance is changed."""
        return f"/allowances/{self.desk.name}/{self.learner.key}"

    def bound(self, new: Guarantee | None) -> tuple[str, ...]:
        """What a form that changes the allowance from this one to another is bound to."""
        return ("allow", self.desk.name, self.learner.key, _plain(self.most), _plain(new))


def add_budget(app: FastAPI, console: Console) -> None:
    """Add the pages to the application."""
    viewer, administrator = Depends(console.needs("viewer")), Depends(console.needs("administrator"))

    def confirm(session: Session, terms: LearnerTerms, most: str) -> Response:
        try:
            new = read_most(terms.desk.owner, most)
        except PrivadaError as error:
            return _show(console, session, status=400, error=str(error))
        if new == terms.most:
            same = f"{terms.learner.name} may have {new or WHOLE} already; nothing was changed."
            return _show(console, session, status=400, error=same)
        said: dict[str, Any] = {"new": new or WHOLE, "most": most, "token": session.token(*terms.bound(new))}
        return console.page("allowance.html", session, title="Change an allowance", one=terms, **said)

    @app.get("/budget")
    def budget(session: Session = viewer) -> Response:
        return _show(console, session)

    @app.get("/allowances/{owner}/{key}")
    def ask(owner: str, key: str, most: Most = "", session: Session = administrator) -> Response:
        return confirm(session, find_terms(console, owner, key), most)

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
            new = read_most(terms.desk.owner, most)
        except PrivadaError as error:
            raise Refused(400, str(error)) from None
        if not session.owns(token, *terms.bound(new)):
            raise Refused(403, "The form is not one of this session, or the allowance was changed since.")
        named = {"learner": terms.learner.name, "key": terms.learner.key, "by": session.user.name}
        terms.desk.owner.ledger.allow(terms.desk.owner.dataset, most=new, **named)
        return RedirectResponse("/budget", 303)


def read_most(owner: Owner, most: str) -> Guarantee | None:
    """The allowance that a person typed, as the budget's ε or ρ; None, if nothing was, for all of it."""
    budget = owner.ledger.budget(owner.dataset).budget
    if not most.strip():
        return None
    try:
        number = float(most)
    except ValueError:
        raise InputError(f"Expected a number or nothing, got {most!r:.40}.") from None
    given: dict[str, float | None] = {"epsilon": None, "delta": None, "rho": None}
    return part_of(budget, **(given | {"rho" if isinstance(budget, ZCDP) else "epsilon": number}))


def find_terms(console: Console, owner: str, key: str) -> LearnerTerms:
    """The terms of a learner that an owner knows; a page that says so if it does not."""
    desks = (desk for desk in console.inbox.desks if desk.name == owner)
    found = (one for desk in desks for one in _terms(desk, datetime.now(UTC))[1] if one.learner.key == key)
    terms = next(found, None)
    if terms is None:
        raise Refused(404, "There is no such owner, or it does not know this learner.")
    return terms


def find_vintages(desks: Sequence[Desk]) -> list[Table]:
    """All vintages of the data sets that are served, also those that are not, each ledger's once."""
    served = [desk.owner for desk in desks if desk.owner.ledger.vintage(desk.owner.dataset) is not None]
    found = {
        (owner.public_key, table.title): table
        for owner in served
        for table in vintages_tables(owner.ledger.export())
    }
    return list(found.values())


def _by_vintage(desk: Desk) -> tuple[str, str, str]:
    """Vintages of a data set stand together, the first one first."""
    vintage = desk.owner.ledger.vintage(desk.owner.dataset)
    return (desk.owner.dataset, "", "") if vintage is None else (vintage.of, str(vintage.since), desk.name)


def _terms(desk: Desk, now: datetime) -> tuple[BurnDown, list[LearnerTerms]]:
    """The burn-down of a data set, and the terms of each learner that its owner knows."""
    owner, lines = desk.owner, list(desk.owner.ledger.lines(desk.owner.dataset))

    def look(known: KnownLearners, learner: KnownLearner) -> LearnerTerms:
        now_allowed = owner.ledger.allowed(owner.dataset, known.allowance(learner))
        most = None if now_allowed.filter is None else now_allowed.filter.budget
        used = of_learner(lines, now_allowed, now)
        return LearnerTerms(desk=desk, learner=learner, most=most, used=used)

    known = owner.learners
    learners = [] if known is None else [look(known, each) for each in known.learners]
    return of_budget(lines, now), learners


def _show(console: Console, session: Session, **more: Any) -> Response:
    now = datetime.now(UTC)
    owners = [(desk, *_terms(desk, now)) for desk in sorted(console.inbox.desks, key=_by_vintage)]
    said: dict[str, Any] = {
        "title": "Budget",
        "here": "/budget",
        "owners": owners,
        "vintages": find_vintages(console.inbox.desks),
        "may_change": session.user.may("administrator"),
        "whole": WHOLE,
    }
    return console.page("budget.html", session, **said, **more)


def _plain(most: Guarantee | None) -> str:
    return json.dumps(None if most is None else most.to_dict(), sort_keys=True)


__all__ = ["LearnerTerms", "add_budget", "find_terms", "read_most"]
