"""The owner's side: find questions, check who sent them, answer, and deliver what is signed.

The exchange decides nothing. Whether a question was charged, and which release it gets, is decided in the
owner's ledger: a question that comes twice, late, or again after a crash gets the same release without a new
charge. An item that is broken or planted is named in the log, is never charged, and does not affect others.
A question that its learner signed gets an answer or a refusal, even if its envelope breaks the format.

A release counts as delivered when all of it can be read back. If it is damaged or removed later, it is
delivered again from the ledger. The owner notices that when it starts and reads what is there, and afterwards
from the listing of the exchange, so that thousands of releases that did not change are not read again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from privada.exceptions import (
    AnswerError,
    ApprovalPending,
    CourierError,
    InputError,
    LedgerError,
    OutageError,
    PolicyError,
    PrivadaError,
    SourceError,
    WireError,
)
from privada.exchange.courier import Courier
from privada.exchange.envelope import Envelope, MalformedQuestion, clean
from privada.exchange.posting import (
    LOG,
    MOST_SUCCESSORS,
    check_owner,
    find_delivered,
    folder_of,
    has_written,
    parse_question_key,
    post,
    receive_bytes,
)
from privada.exchange.sealing import check_reply_key, is_sealed, seal, unseal_question
from privada.parties.owner import Owner
from privada.privacy.asker import LONGEST_NAME, Asker, check_name
from privada.privacy.release import Question, QuestionHeader, find_question

STILL_WRITABLE = 1.0  # seconds for which one look at whether the exchange can be written to is enough
_NOT_LISTED = object()  # the stamp of an item that is not listed


@dataclass(frozen=True, kw_only=True)
class Pending:
    """A question that waits: its key, its digest, and the identity of its envelope."""

    key: str
    digest: str
    identity: str

    @classmethod
    def from_key(cls, key: str) -> Self | None:
        """Return the question that a key names; None if it is the key of something else."""
        names = parse_question_key(key)
        return None if names is None else cls(key=key, digest=names[0], identity=names[1])

    def conclude(self, outcome: str, *, learner: str = "", reason: str = "") -> Answered:
        """Return what happened to it."""
        return Answered(digest=self.digest, key=self.key, outcome=outcome, reason=reason, learner=learner)


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What happened to one question.

    The outcome is ``"answered"``, ``"waiting"`` (for a person), ``"refused"``, ``"undelivered"``,
    ``"withdrawn"`` (by its learner) or ``"ignored"`` (nobody signed it).
    """

    digest: str
    key: str
    outcome: str
    reason: str = ""
    learner: str = ""  # if the question was signed


class Answering:
    """Answers the questions to one owner, under its name in studies."""

    def __init__(self, courier: Courier, name: str, owner: Owner) -> None:
        self.courier, self.name, self.owner = courier, check_owner(name), owner
        self._settled: set[str] = set()  # keys of questions that need no further look
        self._delivered: dict[Pending, tuple[str, ...]] = {}  # keys of the items; none if not read back yet
        self._stamps: Mapping[str, object] = {}
        self._redelivered = Counter[str]()
        self._written_at = -STILL_WRITABLE

    def tidy(self) -> None:
        """Remove what interrupted processes of this owner left half-written."""
        for kind in ("release", "refusal"):
            self.courier.remove_leftovers(folder_of(kind, self.name) + "/")

    def find_damaged(self) -> list[Pending]:
        """Return the questions whose delivered answer is damaged or missing now; they are pending again.

        This lists the exchange, and reads an item again only if it changed since the previous listing. An
        answer that somebody damages or removes again and again is given up until the next start.
        """
        before, self._stamps = self._stamps, {}
        try:
            self._stamps = self.courier.stamps(folder_of("release", self.name) + "/")
        except CourierError:
            raise
        except WireError as error:  # somebody put a link there: everything is read again, and cannot be
            LOG.warning("What was delivered cannot be listed: %s", error)
        changed = [
            waiting
            for waiting, keys in self._delivered.items()
            if not keys
            or any(before.get(key, _NOT_LISTED) != self._stamps.get(key, _NOT_LISTED) for key in keys)
        ]
        damaged = []
        for waiting in changed:
            del self._delivered[waiting]
            if self.is_settled(waiting):
                continue
            self._redelivered[waiting.key] += 1
            if self._redelivered[waiting.key] > MOST_SUCCESSORS:
                LOG.warning("The answer to %s is damaged or removed again and again.", waiting.key)
                continue
            self._settled.discard(waiting.key)
            damaged.append(waiting)
        return damaged

    def pending(self, *, reconsider: Container[str] = ()) -> Iterator[Pending]:
        """Yield the questions without a release that can be read, and without a refusal that stands."""
        self.find_damaged()
        for waiting in self.questions():
            if waiting.key in self._settled and waiting.digest not in reconsider:
                continue
            if not self.is_settled(waiting, reconsider=reconsider):
                yield waiting

    def questions(self) -> Iterator[Pending]:
        """Yield all questions to this owner, whatever their outcome."""
        for key in self.courier.keys(folder_of("question", self.name) + "/"):
            waiting = Pending.from_key(key)
            if waiting is not None:
                yield waiting

    def refused(self) -> frozenset[str]:
        """Return the digests of the questions that this owner refused and did not answer since."""
        return frozenset(
            waiting.digest
            for waiting in self.questions()
            if self.has_refused(waiting) and not self._has_written("release", waiting.digest)
        )

    def has_refused(self, waiting: Pending) -> bool:
        """Whether this owner refused the question."""
        return self._has_written("refusal", waiting.digest, waiting.identity)

    def _has_written(self, kind: str, *names: str) -> bool:
        """Whether this owner put an item there; what others put there does not count."""
        return has_written(self.courier, self.owner.public_key, kind, self.name, *names)

    def is_settled(self, waiting: Pending, *, reconsider: Container[str] = ()) -> bool:
        """Whether a question has a release that can be read, or a refusal that stands."""
        party = (self.courier, self.owner.public_key)
        keys = find_delivered(*party, "release", self.name, waiting.digest)
        if keys is None:
            keys = find_delivered(*party, "disclosure", self.name, waiting.digest, waiting.identity)
        if keys is not None:
            self._delivered[waiting] = keys
        elif waiting.digest in reconsider or not self.has_refused(waiting):
            return False
        self._settled.add(waiting.key)
        return True

    def answer(self, *, approved: Container[str] = (), reconsider: Container[str] = ()) -> list[Answered]:
        """Answer everything that is pending.

        Parameters
        ----------
        approved : container of str, default=()
            Whole digests of questions that a person approved: a learner can make two questions whose
            digests begin alike.
        reconsider : container of str, default=()
            Whole digests of questions that were refused and are considered again.

        Raises
        ------
        CourierError
            Nothing can be delivered; nothing was charged.
        OutageError
            Something that the owner needs is away: its cluster, database, object store, files or ledger.
            No learner is told, and the questions wait. A charge that was made stands and is not made again.
        SourceError
            The rows have changed. Nothing was charged, and no learner is told.
        LedgerError
            The ledger fails: an error on the owner's side, which learners do not see.
        """
        self.tidy()
        pending = list(self.pending(reconsider=reconsider))
        if pending:
            self.check_writable()
        return [self.answer_one(waiting, approved=approved) for waiting in pending]

    def read_question(self, key: str, digest: str) -> Question:
        """Return the question in an item; nothing of it is run. A `WireError` if it is another question."""
        waiting = Pending.from_key(key)
        if waiting is None or waiting.digest != digest:
            raise WireError(f"{key} is the key of another question.")
        return self.read_asked(waiting)[1]

    def read_asked(self, waiting: Pending) -> tuple[Envelope, Question]:
        """Return the envelope and the question, for a person to look at; nothing of it is run."""
        envelope, rest = self._open(waiting, self._get(waiting))
        question = Question.from_bytes(self._read(envelope, rest)[0])
        if question.digest != waiting.digest:
            raise WireError(f"{waiting.key} holds another question.")
        return envelope, question

    def _get(self, waiting: Pending) -> bytes:
        item = self.courier.get(waiting.key)
        if item is None:
            raise WireError(f"{waiting.key} does not exist any more.")
        return item

    def _open(self, waiting: Pending, item: bytes) -> tuple[Envelope, memoryview]:
        """The envelope of a question that is what its key says, and the bytes after it."""
        envelope, rest = Envelope.split(item)
        if envelope.kind != "question" or not self._is_at(waiting, envelope):
            raise WireError("Its key is that of another question, or of another owner.")
        return envelope, rest

    def _is_at(self, waiting: Pending, question: Envelope | MalformedQuestion) -> bool:
        """Whether a question is for this owner, and the one that its key names."""
        names = (question.owner, question.question, question.identity)
        return names == (self.name, waiting.digest, waiting.identity)

    def _read(self, envelope: Envelope, rest: memoryview) -> tuple[bytes, bool]:
        """The file of a question, and whether it was sealed for this owner."""
        folder, largest = folder_of("question", self.name), self.owner.policy.largest_question
        payload = receive_bytes(self.courier, folder, envelope, rest, largest=largest)
        if not is_sealed(payload):
            return payload, False
        key, learner = self.owner.ledger.key, envelope.learner_key
        return unseal_question(payload, question=envelope.question, learner=learner, key=key), True

    def check_writable(self) -> None:
        """Raise `CourierError` unless releases and refusals can be written, before anything is charged."""
        try:
            for kind in ("release", "refusal"):
                self.courier.check_writable(f"{folder_of(kind, self.name)}/")
        except WireError as error:
            reason = str(error).rstrip(".")
            raise CourierError(f"Nothing can be delivered ({reason}). Nothing was charged.") from None
        self._written_at = time.monotonic()

    def answer_one(self, waiting: Pending, *, approved: Container[str] = ()) -> Answered:
        """Answer one question; a bad one is refused, or ignored if it has no signer who could be told."""
        item = b""
        try:
            item = self._get(waiting)
            envelope, rest = self._open(waiting, item)
        except CourierError:
            raise
        except PrivadaError as error:
            return self._answer_malformed(waiting, item, str(error))
        signer, learner = envelope.learner_key, envelope.learner
        names = (self.name, waiting.digest, waiting.identity)
        if signer and has_written(self.courier, signer, "withdrawal", *names):
            self._settled.add(waiting.key)
            return waiting.conclude("withdrawn", learner=learner)
        try:
            kind, blob = self._reply(envelope, rest, approved)
        except ApprovalPending as error:
            return waiting.conclude("waiting", learner=learner, reason=str(error))
        except (CourierError, LedgerError, OutageError, SourceError):  # the owner's own fault: it waits
            raise
        except PrivadaError as error:
            return self._refuse(waiting, learner, error)
        except Exception as error:  # no row was opened: what fails on rows is an AnswerError
            LOG.error("question %.12s failed: %s", waiting.digest, type(error).__name__)
            return self._refuse(waiting, learner, PolicyError("The owner cannot answer this question."))
        return self._deliver(waiting, learner, kind, blob)

    def _answer_malformed(self, waiting: Pending, item: bytes, reason: str) -> Answered:
        """Refuse a question whose envelope breaks the format; ignore it unless a learner signed it for here.

        The refusal goes where the learner looks for it: to the question that it signed.
        """
        malformed = MalformedQuestion.read(item)
        if malformed is not None and self._is_at(waiting, malformed):
            error = WireError(f"{malformed.fault} Nothing was charged.")
            return self._refuse(waiting, malformed.learner, error)
        LOG.warning("%s is passed over: %s", waiting.key, reason)
        self._settled.add(waiting.key)
        return waiting.conclude("ignored", reason=reason)

    def _reply(self, envelope: Envelope, rest: memoryview, approved: Container[str]) -> tuple[str, bytes]:
        """Kind and bytes of what answers a question: a release, or rows sealed for a curator."""
        if envelope.owner_key not in ("", self.owner.public_key):
            raise PolicyError(
                f"The question was sent to another key of {self.name}; get the owner's present card."
            )
        asker = read_asker(envelope)
        # Before the question is read: whoever may not ask costs no more than an envelope.
        self.owner.check_asker(envelope.question, asker)
        blob, was_sealed = self._read(envelope, rest)
        header = Question.peek(blob, largest=self.owner.policy.largest_question)
        if header.digest != envelope.question:
            raise WireError("The envelope's digest is not its question's.")
        if not was_sealed and self._must_be_sealed(header):
            raise PolicyError(
                f"A question of kind {header.kind} follows from the owner's rows and travels sealed for the "
                "owner; this one did not. Ask with a version of privada that seals it (0.3 or later)."
            )
        # From here on a charge can be made, which must not be for an answer that cannot be delivered.
        if time.monotonic() - self._written_at > STILL_WRITABLE:
            self.check_writable()
        if not envelope.reply_key:
            return "release", self.owner.answer_file(blob, asker=asker, approved=approved)
        if asker is None:
            raise PolicyError("Raw rows are disclosed to a curator with a key only.")
        seal_for = check_reply_key(envelope.reply_key)
        disclosure = self.owner.disclose_file(blob, asker=asker, approved=approved)
        return "disclosure", seal(disclosure, public=seal_for)

    def _must_be_sealed(self, header: QuestionHeader) -> bool:
        """Whether a question is answered only if it was sealed.

        Kinds that are unknown or not allowed are refused later; no method is loaded for them.
        """
        allowed = self.owner.policy.methods
        if allowed is not None and header.method not in allowed:
            return False
        try:
            return find_question(header.kind).sealed
        except InputError:
            return False

    def _deliver(self, waiting: Pending, learner: str, kind: str, blob: bytes) -> Answered:
        """Put a release that is paid for and kept; if this fails, the next run delivers it."""
        envelope = Envelope(
            kind=kind,
            owner=self.name,
            owner_key=self.owner.public_key,
            question=waiting.digest,
            asked=waiting.identity if kind == "disclosure" else "",  # a release is for everybody
        )
        try:
            post(self.courier, envelope, blob, self.owner.ledger.key)
        except WireError as error:
            fault = str(error).rstrip(".")
            reason = f"Paid for and kept, but not delivered: {fault}. Answer again to deliver it."
            return waiting.conclude("undelivered", learner=learner, reason=reason)
        self._settled.add(waiting.key)
        self._delivered[waiting] = ()
        return waiting.conclude("answered", learner=learner)

    def _refuse(self, waiting: Pending, learner: str, error: PrivadaError) -> Answered:
        """Put the reason, signed; if it cannot be delivered, the owner refuses again later."""
        envelope = Envelope(
            kind="failure" if isinstance(error, AnswerError) else "refusal",
            owner=self.name,
            owner_key=self.owner.public_key,
            question=waiting.digest,
            asked=waiting.identity,
            reason=clean(str(error)),
        )
        post(self.courier, envelope, b"", self.owner.ledger.key)
        self._settled.add(waiting.key)
        return waiting.conclude("refused", learner=learner, reason=str(error))


def read_asker(envelope: Envelope) -> Asker | None:
    """Return who asks, as the ledger records it; None for an unsigned question."""
    if not envelope.learner_key:
        return None
    check_name(learner=envelope.learner, longest=LONGEST_NAME)
    return Asker(
        learner=envelope.learner, key=envelope.learner_key, project=envelope.project, purpose=envelope.purpose
    )


__all__ = ["Answered", "Answering", "Pending", "read_asker"]
