"""Run a learner and its owners in one process; refuse before the first charge what cannot be completed.

The learner's side is ``parties.protocol``, which knows no owner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from privada._progress import showing
from privada.exceptions import InputError
from privada.parties.owner import Owner
from privada.parties.owner_file import OwnerFile
from privada.parties.protocol import AskOwner, Learner, PlannedLearner, drive
from privada.privacy.asker import Asker
from privada.privacy.ledger import Quote
from privada.privacy.release import Disclosure, Release

T = TypeVar("T")


def run(
    learner: Learner[T], owners: Mapping[str, Owner], *, witness: Callable[[Release], None] | None = None
) -> T:
    """Drive a learner in one process, together with every owner.

    For a `PlannedLearner`, nothing is charged unless everything that it asks for can be paid. ``witness``
    sees the releases that the learner receives.
    """
    if isinstance(learner, PlannedLearner):
        check_ahead(learner.asks, owners)

    planned = len(learner.asks) if isinstance(learner, PlannedLearner) else None

    def reply(ask: AskOwner) -> Release | Disclosure:
        if ask.owner not in owners:
            raise InputError(
                f"The learner asks {ask.owner!r}; known owners: {', '.join(sorted(owners)) or 'none'}."
            )
        with showing(f"{ask.owner}: {ask.question.kind}"):
            if ask.question.discloses:
                return owners[ask.owner].disclose(ask.question, to=ask.to)
            return owners[ask.owner].answer(ask.question)

    with showing("questions answered", planned) as advance:

        def count(release: Release) -> None:
            advance()
            if witness is not None:
                witness(release)

        return drive(learner, reply, witness=count)


def check_ahead(asks: Iterable[AskOwner], parties: Mapping[str, Owner | OwnerFile]) -> None:
    """Refuse a learner whose questions an owner would not answer to the end; nothing is charged.

    One that was asked before for a part of it was looked at then, and goes on.

    Raises
    ------
    InputError, PolicyError, BudgetError
        As an owner would, but before the first charge.
    """
    asked = tuple(asks)
    for name, party in parties.items():
        mine = [ask for ask in asked if ask.owner == name]
        if mine and not any(party.has_paid(ask.question) for ask in mine):
            quote = quote_all(mine, party)
            if not quote.affordable:
                raise quote.refusal()


def quote_all(asks: Iterable[AskOwner], party: Owner | OwnerFile, *, asker: Asker | None = None) -> Quote:
    """What the asks of one owner would take together; raises if its policy forbids one of them.

    With an asker, the quote says what its allowance pays.
    """
    asked = tuple(asks)
    for ask in asked:
        if ask.question.discloses:
            party.policy.admit_curator(ask.to)
    return party.price_all([ask.question for ask in asked], asker=asker)


__all__ = ["check_ahead", "quote_all", "run"]
