"""The learner's side: send the questions of a round, wait for all owners together, check what comes.

A learner is started from the beginning each time. It receives the releases that are there and asks for
those that are not, so that one that was interrupted goes on without paying again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from privada.exceptions import InputError, PrivadaError, TamperError, WireError
from privada.exchange.chunks import receive_bytes
from privada.exchange.courier import Courier
from privada.exchange.envelope import Envelope
from privada.exchange.posting import (
    Found,
    check_owner,
    find,
    find_all,
    folder_of,
    has_written,
    key_of,
    post,
    warn,
)
from privada.exchange.rounds import Refused, Reply, Round, Step
from privada.exchange.sealing import public_reply_key, seal_question, secret_salt, unseal
from privada.parties.protocol import AskOwner, Inquiry, Learner, check_reply, drive_rounds
from privada.privacy.asker import LONGEST_NAME, LONGEST_PROJECT, LONGEST_PURPOSE, check_line, check_name
from privada.privacy.keys import LearnerKey
from privada.privacy.release import Release
from privada.privacy.wire import LARGEST_FILE

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Sender:
    """Who asks, and what for, as owners and their ledgers see it.

    Parameters
    ----------
    learner : str, default=""
        The learner's name.
    key : LearnerKey, optional
        Signs the questions. Without it they are unsigned, which owners that list their learners refuse.
    project, purpose : str, default=""
        Each is one line of printable text, of at most 200 and 1000 characters.

    Raises
    ------
    InputError
        Owners would refuse a question with such a text.
    """

    learner: str = ""
    key: LearnerKey | None = None
    project: str = ""
    purpose: str = ""

    def __post_init__(self) -> None:
        if self.learner or self.key is not None:
            check_name(learner=self.learner, longest=LONGEST_NAME)
        check_line(project=self.project, longest=LONGEST_PROJECT, empty=True)
        check_line(purpose=self.purpose, longest=LONGEST_PURPOSE, empty=True)


class Asking:
    """Drives learners over a courier.

    The methods about one ask are for an ask `with_secret_salt`.

    Parameters
    ----------
    courier : Courier
    keys : mapping of owner's name to public key
        Replies of these owners must be signed by these keys; of others, by any.
    sender : Sender
    """

    def __init__(self, courier: Courier, *, keys: Mapping[str, str], sender: Sender) -> None:
        self.courier, self.keys, self.sender = courier, dict(keys), sender
        self._tidied: set[str] = set()

    def learn(
        self,
        learner: Inquiry[T] | Learner[T],
        *,
        patience: float = 0.0,
        witness: Callable[[Release], None] | None = None,
        watch: Callable[[Step], None] | None = None,
    ) -> T:
        """Drive a learner until it returns.

        Parameters
        ----------
        learner : Inquiry or Learner
        patience : float, default=0
            Seconds to wait for the replies of each round. Owners that the learner can do without are left
            out after it, or when they refuse; with no patience, nobody is.
        witness : function, optional
            Sees the releases that the learner receives.
        watch : function, optional
            Sees a `Step` for everything that happens to a question.

        Raises
        ------
        Waiting
            A reply did not come in time. Running the learner again goes on from here.
        AnswerError
            An owner refused.
        """
        spared, number = frozenset[str](), 0
        if isinstance(learner, Inquiry):
            spared = learner.optional_parties if patience else spared
            for ask in learner.asks:
                self._check_key(ask)

        def reply_all(asks: tuple[AskOwner, ...]) -> list[Any]:
            nonlocal number
            number += 1
            replies = Round(self, asks, number, spared, watch or _ignore).run(patience)
            for each in replies:
                if isinstance(each, Release) and witness is not None:
                    witness(each)
            return replies

        return drive_rounds(learner, reply_all)

    def with_secret_salt(self, ask: AskOwner) -> AskOwner:
        """The same ask, if its question is sealed with a salt that nobody else can guess.

        The digest of a question is in the clear in everything that travels about it. Another learner's sealed
        question has another salt, so it is another question, which is paid for again.
        """
        self._check_key(ask)
        if not ask.question.sealed:
            return ask
        assert self.sender.key is not None  # checked
        salt = secret_salt(ask.question.digest, owner=ask.owner, key=self.sender.key)
        return replace(ask, question=replace(ask.question, salt=salt))

    def payload(self, ask: AskOwner) -> bytes:
        """The bytes of a question as they travel: sealed for its owner, if it is such a question."""
        blob = ask.question.to_bytes()
        if not ask.question.sealed:
            return blob
        self._check_key(ask)
        assert self.sender.key is not None  # checked
        owner = self.keys[ask.owner]
        return seal_question(blob, question=ask.question.digest, owner=owner, key=self.sender.key)

    def envelope(self, ask: AskOwner, payload: bytes) -> Envelope:
        """The envelope of a question, not signed yet."""
        self._check_key(ask)
        key, discloses = self.sender.key, ask.question.discloses
        return Envelope(
            kind="question",
            owner=check_owner(ask.owner),
            owner_key=self.keys.get(ask.owner, ""),
            learner=self.sender.learner if key else "",
            learner_key=key.public if key else "",
            project=self.sender.project,
            purpose=self.sender.purpose,
            question=ask.question.digest,
            reply_key=public_reply_key(key) if discloses and key else "",
            size=len(payload),
            sha256=hashlib.sha256(payload).hexdigest(),
        )

    def _check_key(self, ask: AskOwner) -> None:
        if ask.question.discloses and self.sender.key is None:
            raise InputError(
                f"{ask.question.kind} asks {ask.owner} for raw rows, which are encrypted for your key: "
                "ask with one (--key, made by privada learner init)."
            )
        if ask.question.discloses and ask.to != self.sender.learner:
            raise InputError(
                f"The study asks for rows for the curator {ask.to!r}; your key is that of "
                f"{self.sender.learner!r}. Rows are disclosed to the learner who asks."
            )
        if ask.question.sealed and (self.sender.key is None or ask.owner not in self.keys):
            raise InputError(
                f"{ask.question.kind} is sealed, so that {ask.owner} alone can read it: ask with a key, and "
                'with the card of that owner (schema = "schema.toml"), which names its public key.'
            )

    def tidy(self, owner: str) -> None:
        """Remove what earlier processes of this learner were writing to an owner when they were ended."""
        if owner not in self._tidied:
            self.courier.remove_leftovers(folder_of("question", owner) + "/")
            self._tidied.add(owner)

    def ask(self, ask: AskOwner) -> tuple[Envelope, str]:
        """Send a question, unless it was sent before; returns its envelope and its key."""
        self.tidy(ask.owner)
        payload = self.payload(ask)
        envelope = self.envelope(ask, payload)
        return envelope, post(self.courier, envelope, payload, self.sender.key)

    def fetch(self, ask: AskOwner, pass_over: Callable[[str, PrivadaError], None] = warn) -> Reply | None:
        """The reply to an ask, checked; None if there is none yet, or only one that is passed over."""
        return find(self.courier, self.reply_key(ask), lambda found: self._open(ask, found), pass_over)

    def reply_key(self, ask: AskOwner) -> str:
        """Where the reply to an ask will be: a release for everybody, rows for this learner."""
        if not ask.question.discloses:
            return key_of("release", ask.owner, ask.question.digest)
        asked = self.envelope(ask, self.payload(ask))
        return key_of("disclosure", ask.owner, ask.question.digest, asked.identity)

    def _open(self, ask: AskOwner, found: Found) -> Reply:
        envelope, public = found.envelope, self.keys.get(ask.owner)
        said = (envelope.kind, envelope.owner, envelope.question)
        if said != ("disclosure" if ask.question.discloses else "release", ask.owner, ask.question.digest):
            raise WireError("It answers another question.")
        if public is not None and envelope.owner_key != public:
            raise TamperError(f"It was signed by another key than that of {ask.owner}.")
        folder = folder_of(envelope.kind, ask.owner)
        blob = receive_bytes(self.courier, folder, envelope, found.rest, largest=LARGEST_FILE)
        return check_reply(ask, self._read(ask, blob, public))

    def _read(self, ask: AskOwner, blob: bytes, public: str | None) -> Reply:
        if not ask.question.discloses:
            release = Release.from_bytes(blob)
            release.verify(public=public)
            return release
        assert self.sender.key is not None  # asked for with one
        disclosure = unseal(blob, key=self.sender.key, question=ask.question.digest)
        disclosure.receipt.verify(public=public)
        return disclosure

    def withdraw(self, asked: Envelope) -> None:
        """Say that a question is not waited for any more: its owner need not pay for it.

        A learner without a key says nothing, since anybody could say it in its place.
        """
        if self.sender.key is None:
            return
        told = Envelope(
            kind="withdrawal",
            owner=asked.owner,
            owner_key=asked.owner_key,
            question=asked.question,
            asked=asked.identity,
            learner=asked.learner,
            learner_key=asked.learner_key,
        )
        post(self.courier, told, b"", self.sender.key)

    def has_withdrawn(self, asked: Envelope) -> bool:
        """Whether this learner went on without an answer before."""
        who = asked.learner_key
        return who != "" and has_written(
            self.courier, who, "withdrawal", asked.owner, asked.question, asked.identity
        )

    def find_refusal(self, ask: AskOwner, asked: Envelope) -> Refused | None:
        """The latest refusal of a question that this learner asked, None if there is none."""
        public = self.keys.get(ask.owner)

        def read(found: Found) -> Refused:
            envelope = found.envelope
            if (envelope.owner, envelope.question, envelope.asked) != (
                ask.owner,
                ask.question.digest,
                asked.identity,
            ) or envelope.kind not in ("refusal", "failure"):
                raise WireError("It is a refusal of another question.")
            if public is not None and envelope.owner_key != public:
                raise TamperError(f"It was signed by another key than that of {ask.owner}.")
            return Refused(envelope.reason, opened=envelope.kind == "failure")

        key = key_of("refusal", ask.owner, ask.question.digest, asked.identity)
        refusals = [*find_all(self.courier, key, read)]
        return refusals[-1] if refusals else None


def _ignore(step: Step) -> None:
    """Watch nothing."""


__all__ = ["Asking", "Reply", "Sender", "Step"]
