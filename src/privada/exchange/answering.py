"""The owner's side: find questions, check who sent them, answer, and deliver what is signed.

The exchange decides nothing. Whether a question was charged, and which release it gets, is decided in the
owner's ledger: a question that comes twice, late, or again after a crash gets the same release without a new
charge. An item that is broken or planted is named in the log, is never charged, and stops nothing else.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

from privada.exceptions import (
    AnswerError,
    ApprovalPending,
    CourierError,
    LedgerError,
    OutageError,
    PolicyError,
    PrivadaError,
    SourceError,
    WireError,
)
from privada.exchange.chunks import receive_bytes
from privada.exchange.courier import Courier
from privada.exchange.envelope import Envelope, clean
from privada.exchange.posting import LOG, check_owner, folder_of, has_written, parse_question_key, post
from privada.exchange.sealing import check_reply_key, seal
from privada.parties.owner import Owner
from privada.privacy.asker import Asker
from privada.privacy.release import Question


@dataclass(frozen=True, kw_only=True)
class Pending:
    """A question that waits: its key, its digest, and the identity of its envelope."""

    key: str
    digest: str
    asked: str


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What happened to one question.

    Attributes
    ----------
    digest, key : str
        The question's digest, and its key in the exchange.
    outcome : str
        ``"answered"``, ``"waiting"`` (for a person), ``"refused"``, ``"undelivered"``,
        ``"withdrawn"`` (by its learner) or ``"ignored"`` (nobody signed it).
    reason : str, default=""
    learner : str, default=""
        Who asked, if the question was signed.
    """

    digest: str
    key: str
    outcome: str
    reason: str = ""
    learner: str = ""


class Answering:
    """Answers the questions to one owner.

    Parameters
    ----------
    courier : Courier
    name : str
        The owner's name in studies.
    owner : Owner
        Who answers.
    """

    def __init__(self, courier: Courier, name: str, owner: Owner) -> None:
        self.courier, self.name, self.owner = courier, check_owner(name), owner
        self._settled: set[str] = set()  # keys of questions that need no further look

    def pending(self, *, reconsider: Container[str] = ()) -> Iterator[Pending]:
        """Questions without a release, and without a refusal that stands."""
        for waiting in self.asked():
            if waiting.key in self._settled and waiting.digest not in reconsider:
                continue
            if not self.is_settled(waiting, reconsider=reconsider):
                yield waiting

    def asked(self) -> Iterator[Pending]:
        """All questions to this owner, whatever became of them."""
        for key in self.courier.keys(folder_of("question", self.name) + "/"):
            named = parse_question_key(key)
            if named is not None:
                yield Pending(key=key, digest=named[0], asked=named[1])

    def refused(self) -> frozenset[str]:
        """Digests of the questions that this owner refused and did not answer since."""
        return frozenset(
            each.digest
            for each in self.asked()
            if self.has_refused(each) and not self._has_written("release", each.digest)
        )

    def is_settled(self, waiting: Pending, *, reconsider: Container[str] = ()) -> bool:
        """Whether a question has a release, or a refusal that stands."""
        settled = (
            self._has_written("release", waiting.digest)
            or self._has_written("disclosure", waiting.digest, waiting.asked)
            or (waiting.digest not in reconsider and self.has_refused(waiting))
        )
        if settled:
            self._settled.add(waiting.key)
        return settled

    def has_refused(self, waiting: Pending) -> bool:
        """Whether this owner refused the question."""
        return self._has_written("refusal", waiting.digest, waiting.asked)

    def _has_written(self, kind: str, question: str, whose: str = "") -> bool:
        """Whether this owner put an item there; what others put there counts for nothing."""
        return has_written(self.courier, self.owner.public_key, kind, self.name, question, whose)

    def answer(self, *, approved: Container[str] = (), reconsider: Container[str] = ()) -> list[Answered]:
        """Answer everything that is pending.

        Parameters
        ----------
        approved : container of str, default=()
            Whole digests of questions that a person approved: a learner can make two questions whose
            digests begin alike.
        reconsider : container of str, default=()
            Whole digests of questions that were refused and are looked at again.

        Raises
        ------
        WireError
            Nothing can be delivered; nothing was charged.
        OutageError
            Something that the owner needs is away: its cluster, database, object store, files or ledger.
            Nobody is told, and the questions wait. A charge that was made stands and is not made again.
        SourceError
            The rows have changed. Nothing was charged, and nobody is told.
        LedgerError
            The ledger fails: an error on the owner's side, which learners do not see.
        """
        pending = list(self.pending(reconsider=reconsider))
        if pending:
            self.check_writable()
        return [self.answer_one(each, approved=approved) for each in pending]

    def read_question(self, key: str, digest: str) -> Question:
        """The question in an item; nothing of it is run. A `WireError` if it is another question."""
        item = self.courier.get(key)
        if item is None:
            raise WireError(f"{key} is gone.")
        envelope, rest = Envelope.split(item)
        question = Question.from_bytes(self._payload(envelope, rest))
        if question.digest != digest:
            raise WireError(f"{key} holds another question.")
        return question

    def read_asked(self, waiting: Pending) -> tuple[Envelope, Question]:
        """Who asks, and the question, for a person to look at; nothing of it is run."""
        envelope, rest = self._open(waiting)
        question = Question.from_bytes(self._payload(envelope, rest))
        if question.digest != waiting.digest:
            raise WireError(f"{waiting.key} holds another question.")
        return envelope, question

    def _payload(self, envelope: Envelope, rest: memoryview) -> bytes:
        folder, largest = folder_of("question", self.name), self.owner.policy.largest_question
        return receive_bytes(self.courier, folder, envelope, rest, largest=largest)

    def check_writable(self) -> None:
        """Raise `WireError` unless releases and refusals can be written, before anything is charged."""
        try:
            for kind in ("release", "refusal"):
                self.courier.put(f"{folder_of(kind, self.name)}/probe", b"\n")
        except WireError as error:
            why = str(error).rstrip(".")
            raise type(error)(f"Nothing can be delivered ({why}). Nothing was charged.") from None

    def answer_one(self, waiting: Pending, *, approved: Container[str] = ()) -> Answered:
        """Answer one question; a bad one is refused, or ignored if nobody can be told."""
        try:
            envelope, rest = self._open(waiting)
        except CourierError:
            raise
        except PrivadaError as error:
            return self._ignore(waiting, str(error))
        if self._is_withdrawn(waiting, envelope):
            self._settled.add(waiting.key)
            return self._said(waiting, envelope, "withdrawn")
        try:
            kind, blob = self._reply(envelope, rest, approved)
        except ApprovalPending as error:
            return self._said(waiting, envelope, "waiting", str(error))
        except (CourierError, LedgerError, OutageError, SourceError):  # the owner's affair: it waits
            raise
        except PrivadaError as error:
            return self._refuse(waiting, envelope, error)
        except Exception as error:  # no row was opened: what fails on rows is an AnswerError
            LOG.error("question %.12s failed: %s", waiting.digest, type(error).__name__)
            return self._refuse(waiting, envelope, PolicyError("The owner cannot answer this question."))
        return self._deliver(waiting, envelope, kind, blob)

    def _is_withdrawn(self, waiting: Pending, envelope: Envelope) -> bool:
        """Whether the learner who signed a question does not wait for it any more."""
        who = envelope.learner_key
        return who != "" and has_written(
            self.courier, who, "withdrawal", self.name, waiting.digest, waiting.asked
        )

    def _open(self, waiting: Pending) -> tuple[Envelope, memoryview]:
        """The envelope of a question that is what its key says."""
        item = self.courier.get(waiting.key)
        if item is None:
            raise WireError("It is gone.")
        envelope, rest = Envelope.split(item)
        said = (envelope.kind, envelope.owner, envelope.question, envelope.identity)
        if said != ("question", self.name, waiting.digest, waiting.asked):
            raise WireError("Its key is that of another question, or of another owner.")
        return envelope, rest

    def _reply(self, envelope: Envelope, rest: memoryview, approved: Container[str]) -> tuple[str, bytes]:
        """Kind and bytes of what answers a question: a release, or rows sealed for a curator."""
        if envelope.owner_key not in ("", self.owner.public_key):
            raise PolicyError(
                f"The question was sent to another key of {self.name}; get the owner's present card."
            )
        asker = ask_as(envelope)
        self.owner.check_asker(envelope.question, asker)
        blob = self._payload(envelope, rest)
        if Question.peek(blob, largest=self.owner.policy.largest_question).digest != envelope.question:
            raise WireError("The envelope's digest is not its question's.")
        if not envelope.reply_key:
            return "release", self.owner.answer_file(blob, asker=asker, approved=approved)
        if asker is None:
            raise PolicyError("Raw rows are disclosed to a curator with a key only.")
        seal_for = check_reply_key(envelope.reply_key)
        disclosure = self.owner.disclose_file(blob, asker=asker, approved=approved)
        return "disclosure", seal(disclosure, public=seal_for)

    def _deliver(self, waiting: Pending, envelope: Envelope, kind: str, blob: bytes) -> Answered:
        """Put a release that is paid for and kept; if this fails, the next run delivers it."""
        told = Envelope(
            kind=kind,
            owner=self.name,
            owner_key=self.owner.public_key,
            question=waiting.digest,
            asked=waiting.asked if kind == "disclosure" else "",  # a release is for everybody
        )
        try:
            post(self.courier, told, blob, self.owner.ledger.key)
        except WireError as error:
            why = str(error).rstrip(".")
            reason = f"Paid for and kept, but not delivered: {why}. Answer again to deliver it."
            return self._said(waiting, envelope, "undelivered", reason)
        self._settled.add(waiting.key)
        return self._said(waiting, envelope, "answered")

    def _refuse(self, waiting: Pending, envelope: Envelope, error: PrivadaError) -> Answered:
        """Put the reason, signed; an owner that cannot deliver it says so, and refuses again later."""
        told = Envelope(
            kind="failure" if isinstance(error, AnswerError) else "refusal",
            owner=self.name,
            owner_key=self.owner.public_key,
            question=waiting.digest,
            asked=waiting.asked,
            reason=clean(str(error)),
        )
        post(self.courier, told, b"", self.owner.ledger.key)
        self._settled.add(waiting.key)
        return self._said(waiting, envelope, "refused", str(error))

    def _ignore(self, waiting: Pending, reason: str) -> Answered:
        LOG.warning("%s is passed over: %s", waiting.key, reason)
        self._settled.add(waiting.key)
        return Answered(digest=waiting.digest, key=waiting.key, outcome="ignored", reason=reason)

    def _said(self, waiting: Pending, envelope: Envelope, outcome: str, reason: str = "") -> Answered:
        return Answered(
            digest=waiting.digest,
            key=waiting.key,
            outcome=outcome,
            reason=reason,
            learner=envelope.learner,
        )


def ask_as(envelope: Envelope) -> Asker | None:
    """Who asks, as the ledger writes it down; None for an unsigned question."""
    if not envelope.learner_key:
        return None
    return Asker(
        learner=envelope.learner,
        key=envelope.learner_key,
        project=envelope.project,
        purpose=envelope.purpose,
    )


__all__ = ["Answered", "Answering", "Pending", "ask_as"]
