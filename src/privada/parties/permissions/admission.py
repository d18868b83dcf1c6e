"""Who may ask an owner, and what a person decided: everything about a question but its content.

*Privacy.* Decisions here depend on public information only: keys, names, days, the
ledger's lines. No row is opened, and what is refused costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from privada.exceptions import (
    AnswerError,
    ApprovalPending,
    LedgerError,
    OutageError,
    PolicyError,
    PrivadaError,
    SourceError,
)
from privada.parties.permissions.known_learners import KnownLearners, Terms
from privada.parties.permissions.policy import Policy
from privada.privacy.asker import Asker
from privada.privacy.ledger import Ledger, Quote
from privada.privacy.ledger.lines import REFUSAL
from privada.privacy.release import Question


class Admission:
    """The door of one data set.

    Parameters
    ----------
    ledger : Ledger
        Where decisions, refusals and what each learner has used are kept.
    dataset : str
        The data set.
    learners : KnownLearners or None
        Who may ask; None is anybody whom the policy allows.
    """

    def __init__(self, ledger: Ledger, dataset: str, learners: KnownLearners | None) -> None:
        self._ledger = ledger
        self._dataset = dataset
        self._learners = learners

    @contextmanager
    def on_terms(
        self, digest: str, method: str | None, asker: Asker | None, policy: Policy
    ) -> Iterator[Terms]:
        """The terms on which a question is asked. A refusal within is recorded; nothing was charged."""
        known = None if self._learners is None else self._learners.named(asker)
        try:
            yield self._terms(method, asker, policy)
        except (ApprovalPending, AnswerError, LedgerError, OutageError, SourceError):
            raise  # these refuse nothing: the owner, or the question, is not ready
        except PrivadaError as error:
            with suppress(LedgerError):  # the refusal stands, recorded or not
                self._ledger.refuse(self._dataset, question=digest, reason=str(error), asker=known)
            raise

    def _terms(self, method: str | None, asker: Asker | None, policy: Policy) -> Terms:
        if self._learners is None:
            return Terms(policy=policy, asker=asker)
        terms = self._learners.terms(asker, method, policy)
        self._ledger.check_term(self._dataset, terms.allowance)
        return terms

    def price(
        self, quote: Quote, questions: Sequence[Question], asker: Asker | None, policy: Policy
    ) -> Quote:
        """A quote with what is left of the asker's allowance; nothing is written.

        Raises
        ------
        PolicyError
            The owner answers no such question to this learner.
        """
        if asker is None or self._learners is None:
            return quote
        for question in questions:
            self._terms(question.method, asker, policy)
        prices = {question.digest: question.price for question in questions if not question.discloses}
        allowance = self._terms(None, asker, policy).allowance
        return quote.within(self._ledger.price_for(self._dataset, prices, allowance))

    def is_approved(self, digest: str, terms: Terms, *, approved: bool) -> tuple[bool, str]:
        """Whether a person approved a question, and who; `PolicyError` if one refused it."""
        decision = self._ledger.decision(self._dataset, digest, asker=terms.asker)
        if decision is None:
            return approved, ""
        if decision.kind == REFUSAL:
            raise PolicyError(f"{decision.approver} refused it: {decision.detail['text']}")
        return True, decision.approver

    def wait_for_a_person(self, digest: str, terms: Terms, *, approved: bool) -> str:
        """Who approved a question; `ApprovalPending` if somebody still must."""
        agreed, approver = self.is_approved(digest, terms, approved=approved)
        if terms.policy.approval and not agreed:
            raise ApprovalPending(f"Question {digest[:12]} waits for the owner's approval.")
        return approver

    def share(self, digest: str, terms: Terms, *, approved: bool) -> None:
        """Let a learner have an answer that is paid for; others' need an approval like a new one."""
        if terms.allowance is None or self._ledger.has_answer(self._dataset, digest, terms.allowance):
            return
        self.wait_for_a_person(digest, terms, approved=approved)
        self._ledger.share(self._dataset, digest, asker=terms.asker, allowance=terms.allowance)


__all__ = ["Admission"]
