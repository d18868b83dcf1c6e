"""The owner's side: find questions, check who sent them, answer, and deliver what is signed.

The exchange decides nothing. Whether a question was charged, and which release it gets, is decided in the
owner's ledger: a question that comes twice, late, or again after a crash gets the same release without a new
charge. An item that is broken or planted is named in the log, is never charged, and stops nothing else. A
question that its learner signed gets an answer or a refusal, even if its envelope breaks the format.

A release counts as delivered when all of it can be read back. If it is damaged or removed later, it is
delivered again from the ledger. The owner notices that when it starts and reads what is there, and afterwards
from the listing of the exchange, so that thousands of releases that did not change are not read again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

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
from privada.exchange.chunks import receive_bytes
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
)
from privada.exchange.sealing import check_reply_key, is_sealed, seal, unseal_question
from privada.parties.owner import Owner
from privada.privacy.asker import LONGEST_NAME, Asker, check_name
from privada.privacy.release import Question, QuestionHeader, find_question

STILL_WRITABLE = 1.0  # seconds for which one look at whether the exchange can be written to is enough
_ABSENT = object()  # the stamp of an item that is not listed


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
        self._delivered: dict[Pending, tuple[str, ...]] = {}  # keys of the items; none if not read back yet
        self._stamps: Mapping[str, object] = {}
        self._redelivered = Counter[str]()
        self._written_at = -STILL_WRITABLE

    def tidy(self) -> None:
        """Remove what earlier processes of this owner were writing when they were ended."""
        for kind in ("release", "refusal"):
            self.courier.remove_leftovers(folder_of(kind, self.name) + "/")

    def find_damaged(self) -> list[Pending]:
        """Questions whose answer was delivered and is damaged or missing now: they are pending again.

        This lists the exchange, and reads an item again only if it changed since the listing before. What
        somebody damages or removes again and again is given up until the next start.
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
            if not keys or any(before.get(key, _ABSENT) != self._stamps.get(key, _ABSENT) for key in keys)
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
        """Questions without a release that can be read, and without a refusal that stands."""
        self.find_damaged()
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
        """Whether a question has a release that can be read, or a refusal that stands."""
        keys = self._find_delivered("release", waiting.digest) or self._find_delivered(
            "disclosure", waiting.digest, waiting.asked
        )
        if keys is not None:
            self._delivered[waiting] = keys
        if keys is None and (waiting.digest in reconsider or not self.has_refused(waiting)):
            return False
        self._settled.add(waiting.key)
        return True

    def has_refused(self, waiting: Pending) -> bool:
        """Whether this owner refused the question."""
        return self._has_written("refusal", waiting.digest, waiting.asked)

    def _has_written(self, kind: str, question: str, whose: str = "") -> bool:
        """Whether this owner put an item there; what others put there counts for nothing."""
        return has_written(self.courier, self.owner.public_key, kind, self.name, question, whose)

    def _find_delivered(self, kind: str, question: str, whose: str = "") -> tuple[str, ...] | None:
        """Keys of an item of this owner and of its parts, if all of it can be read."""
        return find_delivered(self.courier, self.owner.public_key, kind, self.name, question, whose)

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
        CourierError
            Nothing can be delivered; nothing was charged.
        OutageError
            Something that the owner needs is away: its cluster, database, object store, files or ledger.
            Nobody is told, and the questions wait. A charge that was made stands and is not made again.
        SourceError
            The rows have changed. Nothing was charged, and nobody is told.
        LedgerError
            The ledger fails: an error on the owner's side, which learners do not see.
        """
        self.tidy()
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
        question = Question.from_bytes(self._read(envelope, rest)[0])
        if question.digest != digest:
            raise WireError(f"{key} holds another question.")
        return question

    def read_asked(self, waiting: Pending) -> tuple[Envelope, Question]:
        """Who asks, and the question, for a person to look at; nothing of it is run."""
        envelope, rest = self._open(waiting)
        question = Question.from_bytes(self._read(envelope, rest)[0])
        if question.digest != waiting.digest:
            raise WireError(f"{waiting.key} holds another question.")
        return envelope, question

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
            why = str(error).rstrip(".")
            raise CourierError(f"Nothing can be delivered ({why}). Nothing was charged.") from None
        self._written_at = time.monotonic()

    def answer_one(self, waiting: Pending, *, approved: Container[str] = ()) -> Answered:
        """Answer one question; a bad one is refused, or ignored if nobody can be told."""
        item = b""
        try:
            item = self._get(waiting)
            envelope, rest = self._read_envelope(waiting, item)
        except CourierError:
            raise
        except PrivadaError as error:
            return self._refuse_malformed(waiting, item) or self._ignore(waiting, str(error))
        if self._is_withdrawn(waiting, envelope):
            self._settled.add(waiting.key)
            return self._said(waiting, envelope.learner, "withdrawn")
        try:
            kind, blob = self._reply(envelope, rest, approved)
        except ApprovalPending as error:
            return self._said(waiting, envelope.learner, "waiting", str(error))
        except (CourierError, LedgerError, OutageError, SourceError):  # the owner's affair: it waits
            raise
        except PrivadaError as error:
            return self._refuse(waiting, envelope.learner, error)
        except Exception as error:  # no row was opened: what fails on rows is an AnswerError
            LOG.error("question %.12s failed: %s", waiting.digest, type(error).__name__)
            return self._refuse(
                waiting, envelope.learner, PolicyError("The owner cannot answer this question.")
            )
        return self._deliver(waiting, envelope, kind, blob)

    def _is_withdrawn(self, waiting: Pending, envelope: Envelope) -> bool:
        """Whether the learner who signed a question does not wait for it any more."""
        who = envelope.learner_key
        return who != "" and has_written(
            self.courier, who, "withdrawal", self.name, waiting.digest, waiting.asked
        )

    def _open(self, waiting: Pending) -> tuple[Envelope, memoryview]:
        """The envelope of a question that is what its key says."""
        return self._read_envelope(waiting, self._get(waiting))

    def _get(self, waiting: Pending) -> bytes:
        item = self.courier.get(waiting.key)
        if item is None:
            raise WireError("It is gone.")
        return item

    def _read_envelope(self, waiting: Pending, item: bytes) -> tuple[Envelope, memoryview]:
        envelope, rest = Envelope.split(item)
        if envelope.kind != "question" or not self._is_at(waiting, envelope):
            raise WireError("Its key is that of another question, or of another owner.")
        return envelope, rest

    def _is_at(self, waiting: Pending, asked: Envelope | MalformedQuestion) -> bool:
        """Whether a question to this owner is at the key of this question."""
        return (asked.owner, asked.question, asked.identity) == (self.name, waiting.digest, waiting.asked)

    def _reply(self, envelope: Envelope, rest: memoryview, approved: Container[str]) -> tuple[str, bytes]:
        """Kind and bytes of what answers a question: a release, or rows sealed for a curator."""
        if envelope.owner_key not in ("", self.owner.public_key):
            raise PolicyError(
                f"The question was sent to another key of {self.name}; get the owner's present card."
            )
        asker = ask_as(envelope)
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
            return self._said(waiting, envelope.learner, "undelivered", reason)
        self._settled.add(waiting.key)
        self._delivered[waiting] = ()
        return self._said(waiting, envelope.learner, "answered")

    def _refuse(self, waiting: Pending, learner: str, error: PrivadaError) -> Answered:
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
        return self._said(waiting, learner, "refused", str(error))

    def _refuse_malformed(self, waiting: Pending, item: bytes) -> Answered | None:
        """Refuse a question whose envelope breaks the format; None if its learner did not sign it for here.

        The refusal goes where the learner looks for it: to the question that it signed.
        """
        malformed = MalformedQuestion.read(item)
        if malformed is None or not self._is_at(waiting, malformed):
            return None
        return self._refuse(waiting, malformed.learner, WireError(f"{malformed.fault} Nothing was charged."))

    def _ignore(self, waiting: Pending, reason: str) -> Answered:
        LOG.warning("%s is passed over: %s", waiting.key, reason)
        self._settled.add(waiting.key)
        return Answered(digest=waiting.digest, key=waiting.key, outcome="ignored", reason=reason)

    def _said(self, waiting: Pending, learner: str, outcome: str, reason: str = "") -> Answered:
        return Answered(
            digest=waiting.digest,
            key=waiting.key,
            outcome=outcome,
            reason=reason,
            learner=learner,
        )


def ask_as(envelope: Envelope) -> Asker | None:
    """Who asks, as the ledger writes it down; None for an unsigned question."""
    if not envelope.learner_key:
        return None
    check_name(learner=envelope.learner, longest=LONGEST_NAME)
    return Asker(
        learner=envelope.learner,
        key=envelope.learner_key,
        project=envelope.project,
        purpose=envelope.purpose,
    )


__all__ = ["Answered", "Answering", "Pending", "ask_as"]
