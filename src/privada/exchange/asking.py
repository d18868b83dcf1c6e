"""The learner's side: send the questions of a round, wait for all owners together, check what comes.

A learner is started from the beginning each time. It receives the releases that are there and asks for
those that are not, so that one that was interrupted goes on without paying again.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from privada.exceptions import AnswerError, InputError, TamperError, Waiting, WireError
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
    successors,
)
from privada.exchange.sealing import public_reply_key, unseal
from privada.parties.protocol import Absent, Ask, Learner, PlannedLearner, check_reply, drive_rounds
from privada.privacy.keys import LearnerKey
from privada.privacy.release import Disclosure, Release
from privada.privacy.wire import LARGEST_FILE

T = TypeVar("T")
Reply = Release | Disclosure
SHORTEST_WAIT, LONGEST_WAIT = 0.05, 1.0  # seconds between two looks for refusals


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
    """

    learner: str = ""
    key: LearnerKey | None = None
    project: str = ""
    purpose: str = ""


@dataclass(frozen=True, kw_only=True)
class Step:
    """What happened to one question.

    ``state`` is ``"asked"``, ``"answered"``, ``"refused"``, ``"late"`` or ``"left out"``.
    """

    round: int
    owner: str
    question: str
    state: str
    reason: str = ""


@dataclass(frozen=True)
class _Refused:
    """A refusal or a failure that an owner signed."""

    reason: str
    opened: bool


_LATE = _Refused("too late", opened=False)


class Asking:
    """Drives learners over a courier.

    Parameters
    ----------
    courier : Courier
    keys : mapping of owner's name to public key
        Replies of these owners must be signed by these keys; of others, by any.
    sender : Sender
    """

    def __init__(self, courier: Courier, *, keys: Mapping[str, str], sender: Sender) -> None:
        self.courier, self.keys, self.sender = courier, dict(keys), sender

    def learn(
        self,
        learner: Learner[T],
        *,
        patience: float = 0.0,
        witness: Callable[[Release], None] | None = None,
        watch: Callable[[Step], None] | None = None,
    ) -> T:
        """Drive a learner until it returns.

        Parameters
        ----------
        learner : Learner
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
        if isinstance(learner, PlannedLearner):
            spared = learner.dispensable if patience else spared
            for ask in learner.asks:
                self._check_key(ask)

        def reply_all(asks: tuple[Ask, ...]) -> list[Any]:
            nonlocal number
            number += 1
            replies = _Round(self, asks, number, spared, watch or _ignore).run(patience)
            for each in replies:
                if isinstance(each, Release) and witness is not None:
                    witness(each)
            return replies

        return drive_rounds(learner, reply_all)

    def envelope(self, ask: Ask, blob: bytes) -> Envelope:
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
            size=len(blob),
            sha256=hashlib.sha256(blob).hexdigest(),
        )

    def _check_key(self, ask: Ask) -> None:
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

    def ask(self, ask: Ask) -> tuple[Envelope, str]:
        """Send a question, unless it was sent before; returns its envelope and its key."""
        blob = ask.question.to_bytes()
        envelope = self.envelope(ask, blob)
        return envelope, post(self.courier, envelope, blob, self.sender.key)

    def fetch(self, ask: Ask) -> Reply | None:
        """The reply to an ask, checked; None if there is none yet."""
        return find(self.courier, self.reply_key(ask), lambda found: self._open(ask, found))

    def reply_key(self, ask: Ask) -> str:
        """Where the reply to an ask will be: a release for everybody, rows for this learner."""
        if not ask.question.discloses:
            return key_of("release", ask.owner, ask.question.digest)
        asked = self.envelope(ask, ask.question.to_bytes())
        return key_of("disclosure", ask.owner, ask.question.digest, asked.identity)

    def _open(self, ask: Ask, found: Found) -> Reply:
        envelope, public = found.envelope, self.keys.get(ask.owner)
        said = (envelope.kind, envelope.owner, envelope.question)
        if said != ("disclosure" if ask.question.discloses else "release", ask.owner, ask.question.digest):
            raise WireError("It answers another question.")
        if public is not None and envelope.owner_key != public:
            raise TamperError(f"It was signed by another key than that of {ask.owner}.")
        folder = folder_of(envelope.kind, ask.owner)
        blob = receive_bytes(self.courier, folder, envelope, found.rest, largest=LARGEST_FILE)
        return check_reply(ask, self._read(ask, blob, public))

    def _read(self, ask: Ask, blob: bytes, public: str | None) -> Reply:
        if not ask.question.discloses:
            release = Release.from_bytes(blob)
            release.verify(public=public)
            return release
        assert self.sender.key is not None  # asked for with one
        disclosure = unseal(blob, key=self.sender.key, question=ask.question.digest)
        disclosure.receipt.verify(public=public)
        return disclosure

    def withdraw(self, asked: Envelope) -> None:
        """Say that a question is not waited for any more: its owner need not pay for it."""
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
        return has_written(self.courier, who, "withdrawal", asked.owner, asked.question, asked.identity)

    def find_refusal(self, ask: Ask, asked: Envelope) -> _Refused | None:
        """The latest refusal of a question that this learner asked, None if there is none."""
        public = self.keys.get(ask.owner)

        def read(found: Found) -> _Refused:
            envelope = found.envelope
            if (envelope.owner, envelope.question, envelope.asked) != (
                ask.owner,
                ask.question.digest,
                asked.identity,
            ) or envelope.kind not in ("refusal", "failure"):
                raise WireError("It is a refusal of another question.")
            if public is not None and envelope.owner_key != public:
                raise TamperError(f"It was signed by another key than that of {ask.owner}.")
            return _Refused(envelope.reason, opened=envelope.kind == "failure")

        key = key_of("refusal", ask.owner, ask.question.digest, asked.identity)
        refusals = [*find_all(self.courier, key, read)]
        return refusals[-1] if refusals else None


class _Round:
    """The asks of one round, and the replies that have come so far."""

    def __init__(
        self,
        asking: Asking,
        asks: tuple[Ask, ...],
        number: int,
        spared: frozenset[str],
        watch: Callable[[Step], None],
    ) -> None:
        self.asking, self.asks, self.number, self.spared, self._watch = asking, asks, number, spared, watch
        self.replies: dict[int, Reply | Absent] = {}
        self.sent: dict[int, Envelope] = {}
        self.asked_as: dict[int, str] = {}
        self._seen: set[str] = set()

    @property
    def missing(self) -> list[int]:
        """Places of the asks without a reply."""
        return [at for at in range(len(self.asks)) if at not in self.replies]

    def run(self, patience: float) -> list[Reply | Absent]:
        """Ask everybody, then wait for all together."""
        end = time.monotonic() + patience
        self._look_for_withdrawals()
        self._look_for_replies()
        for at in self.missing:
            self._ask(at)
        wait = SHORTEST_WAIT
        while True:
            self._look_for_refusals()
            left = end - time.monotonic()
            if not self.missing or left <= 0:
                break
            self._wait(min(wait, left))
            self._look_for_replies()
            wait = min(2 * wait, LONGEST_WAIT)
        for at in self.missing:
            self._give_up(at)
        return [self.replies[at] for at in range(len(self.asks))]

    def _ask(self, at: int) -> None:
        self.sent[at], self.asked_as[at] = self.asking.ask(self.asks[at])
        self._say(at, "asked")

    def _look_for_withdrawals(self) -> None:
        """Go on without those that an earlier run went on without: later questions depend on it."""
        for at, ask in enumerate(self.asks):
            if ask.owner not in self.spared:
                continue
            asked = self.asking.envelope(ask, ask.question.to_bytes())
            if self.asking.has_withdrawn(asked):
                refused = self.asking.find_refusal(ask, asked) or _LATE
                self.replies[at] = Absent(ask.owner, refused.reason, refused.opened)
                self._say(at, "left out", refused.reason)

    def _look_for_replies(self) -> None:
        for at in self.missing:
            reply = self.asking.fetch(self.asks[at])
            if reply is not None:
                self.replies[at] = reply
                self._say(at, "answered")

    def _look_for_refusals(self) -> None:
        for at in self.missing:
            refused = self.asking.find_refusal(self.asks[at], self.sent[at])
            if refused is not None:
                self._say(at, "refused", refused.reason)
                self._leave_out(at, refused)

    def _leave_out(self, at: int, refused: _Refused) -> None:
        """Go on without an owner, if the learner can; it is told, and an interrupted run knows it, too."""
        owner = self.asks[at].owner
        if owner not in self.spared:
            raise AnswerError(f"{owner} refused: {refused.reason}")
        self.asking.withdraw(self.sent[at])
        self.replies[at] = Absent(owner, refused.reason, refused.opened)
        self._say(at, "left out", refused.reason)

    def _wait(self, seconds: float) -> None:
        """Wait for a reply to any missing ask."""
        owners = {self.asks[at].owner for at in self.missing}
        prefix = folder_of("release", owners.pop()) + "/" if len(owners) == 1 else "releases/"
        wanted = {key for at in self.missing for key in successors(self.asking.reply_key(self.asks[at]))}
        come = self.asking.courier.wait(prefix, known=_AllBut(wanted - self._seen), seconds=seconds)
        self._seen.update(come)  # one that cannot be read does not wake us again

    def _give_up(self, at: int) -> None:
        ask = self.asks[at]
        self._say(at, "late")
        if ask.owner not in self.spared:
            raise Waiting(
                f"Waiting for {ask.owner} to answer {ask.question.digest[:12]} "
                f"(its question is {self.asked_as[at]})."
            )
        self._leave_out(at, _LATE)

    def _say(self, at: int, state: str, reason: str = "") -> None:
        ask = self.asks[at]
        self._watch(
            Step(round=self.number, owner=ask.owner, question=ask.question.digest, state=state, reason=reason)
        )


class _AllBut:
    """Every key but those that are waited for."""

    def __init__(self, wanted: set[str]) -> None:
        self._wanted = wanted

    def __contains__(self, key: object) -> bool:
        return key not in self._wanted


def _ignore(step: Step) -> None:
    """Watch nothing."""


__all__ = ["Asking", "Reply", "Sender", "Step"]
