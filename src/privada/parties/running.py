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
from privada.parties.protocol import AskOwner, Inquiry, Learner, drive
from privada.privacy.asker import Asker
from privada.privacy.ledger import Quote
from privada.privacy.release import Disclosure, Release

T = TypeVar("T")


def run(
    inquiry: Inquiry[T] | Learner[T],
    owners: Mapping[str, Owner],
    *,
    witness: Callable[[Release], None] | None = None,
) -> T:
    """Run an inquiry, or a learner of your own, in one process together with every owner.

    Nothing of an `Inquiry` is charged unless everything that it asks for can be paid. ``witness`` sees the
    releases that the learner receives.
    """
    expected_answers = None
    if isinstance(inquiry, Inquiry):
        check_ahead(inquiry.asks, owners)
        expected_answers = len(inquiry.asks)

    def reply(ask: AskOwner) -> Release | Disclosure:
        if ask.owner not in owners:
            raise InputError(
                f"The learner asks {ask.owner!r}; known owners: {', '.join(sorted(owners)) or 'none'}."
            )
        with showing(f"{ask.owner}: {ask.question.kind}"):
            if ask.question.discloses:
                return owners[ask.owner].disclose(ask.question, to=ask.to)
            return owners[ask.owner].answer(ask.question)

    with showing("questions answered", expected_answers) as advance:

        def count(release: Release) -> None:
            advance()
            if witness is not None:
                witness(release)

        return drive(inquiry, reply, witness=count)


def check_ahead(asks: Iterable[AskOwner], parties: Mapping[str, Owner | OwnerFile]) -> None:
    """Refuse an inquiry whose questions an owner would not answer to the end; nothing is charged.

    One that an owner has answered a part of was checked then, and goes on.

    Raises
    ------
    InputError, PolicyError, BudgetError
        As an owner would, but before the first charge.
    """
    all_asks = tuple(asks)
    for name, party in parties.items():
        asks_of_party = [ask for ask in all_asks if ask.owner == name]
        if asks_of_party and not any(party.has_paid(ask.question) for ask in asks_of_party):
            quote = quote_all(asks_of_party, party)
            if not quote.affordable:
                raise quote.refusal()


def quote_all(asks: Iterable[AskOwner], party: Owner | OwnerFile, *, asker: Asker | None = None) -> Quote:
    """What the asks of one owner would take together; raises if its policy forbids one of them.

    With an asker, the quote says what its allowance pays.
    """
    questions = []
    for ask in asks:
        if ask.question.discloses:
            party.policy.admit_curator(ask.to)
        questions.append(ask.question)
    return party.price_all(questions, asker=asker)


__all__ = ["check_ahead", "quote_all", "run"]
