"""The learner's side: send the questions of a round, wait for all owners together, check the replies.

A learner is started from the beginning each time. It receives the releases that exist and asks for those
that do not, so that one that was interrupted goes on without paying again.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from privada.exceptions import AnswerError, InputError, PrivadaError, TamperError, Waiting, WireError
from privada.exchange.courier import Courier
from privada.exchange.envelope import Envelope
from privada.exchange.posting import (
    SignedItem,
    check_owner,
    find_all,
    folder_of,
    has_written,
    key_of,
    post,
    receive_bytes,
    successors,
    warn,
)
from privada.exchange.sealing import public_reply_key, seal_question, secret_salt, unseal
from privada.parties.protocol import Absent, AskOwner, Inquiry, Learner, check_reply, drive_rounds
from privada.privacy.asker import LONGEST_NAME, LONGEST_PROJECT, LONGEST_PURPOSE, check_line, check_name
from privada.privacy.keys import LearnerKey
from privada.privacy.release import Disclosure, Release
from privada.privacy.wire import LARGEST_FILE

T = TypeVar("T")
Reply = Release | Disclosure
SHORTEST_WAIT, LONGEST_WAIT = 0.05, 1.0  # seconds between two looks for refusals


@dataclass(frozen=True, kw_only=True)
class Sender:
    """The learner that asks and what for, as owners and their ledgers see it.

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


@dataclass(frozen=True, kw_only=True)
class Step:
    """What happened to one question.

    ``state`` is ``"asked"``, ``"answered"``, ``"damaged"`` (the reply cannot be read), ``"refused"``,
    ``"late"`` or ``"left out"``.
    """

    round: int
    owner: str
    question: str
    state: str
    reason: str = ""


@dataclass(frozen=True)
class Refused:
    """A refusal or a failure that an owner signed."""

    reason: str
    opened: bool


LATE = Refused("too late", opened=False)


class Asking:
    """Drives learners over a courier.

    Replies of the owners in ``keys`` must be signed by these public keys; those of others, by any. The
    methods about one ask are for an ask `with_secret_salt`.
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
            out after it, or when they refuse. With ``patience=0``, no owner is left out.
        witness : function, optional
            Called with each release that the learner receives.
        watch : function, optional
            Called with a `Step` for everything that happens to a question.

        Raises
        ------
        Waiting
            A reply did not come in time. Running the learner again continues from here.
        AnswerError
            An owner refused.
        """
        optional, number = frozenset[str](), 0
        if isinstance(learner, Inquiry):
            optional = learner.optional_parties if patience else optional
            for ask in learner.asks:
                self._check_key(ask)

        def reply_all(asks: tuple[AskOwner, ...]) -> list[Any]:
            nonlocal number
            number += 1
            replies = Round(self, asks, number, optional, watch).run(patience)
            for reply in replies:
                if isinstance(reply, Release) and witness is not None:
                    witness(reply)
            return replies

        return drive_rounds(learner, reply_all)

    def with_secret_salt(self, ask: AskOwner) -> AskOwner:
        """Return the same ask; if its question is sealed, with a salt that nobody else can guess.

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
        """Return the bytes of a question as they travel: sealed for its owner, if it is a sealed question."""
        blob = ask.question.to_bytes()
        if not ask.question.sealed:
            return blob
        self._check_key(ask)
        assert self.sender.key is not None  # checked
        owner = self.keys[ask.owner]
        return seal_question(blob, question=ask.question.digest, owner=owner, key=self.sender.key)

    def envelope(self, ask: AskOwner, payload: bytes) -> Envelope:
        """Return the envelope of a question, not signed yet."""
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
        """Refuse an ask that needs a key which this learner, or the owner's card, does not provide."""
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
        """Remove what interrupted processes of this learner left half-written for an owner."""
        if owner not in self._tidied:
            self.courier.remove_leftovers(folder_of("question", owner) + "/")
            self._tidied.add(owner)

    def ask(self, ask: AskOwner) -> tuple[Envelope, str]:
        """Send a question, unless it was sent before; return its envelope and its key."""
        self.tidy(ask.owner)
        payload = self.payload(ask)
        envelope = self.envelope(ask, payload)
        return envelope, post(self.courier, envelope, payload, self.sender.key)

    def fetch(self, ask: AskOwner, pass_over: Callable[[str, PrivadaError], None] = warn) -> Reply | None:
        """Return the reply to an ask, checked; None if none has come, or only one that is passed over."""
        question, public = ask.question, self.keys.get(ask.owner)
        kind = "disclosure" if question.discloses else "release"

        def read(item: SignedItem) -> Reply:
            envelope = item.envelope
            if (envelope.kind, envelope.owner, envelope.question) != (kind, ask.owner, question.digest):
                raise WireError("It answers another question.")
            self._check_signer(ask.owner, envelope)
            folder = folder_of(kind, ask.owner)
            blob = receive_bytes(self.courier, folder, envelope, item.rest, largest=LARGEST_FILE)
            if not question.discloses:
                release = Release.from_bytes(blob)
                release.verify(public=public)
                return check_reply(ask, release)
            assert self.sender.key is not None  # raw rows are asked for with one
            disclosure = unseal(blob, key=self.sender.key, question=question.digest)
            disclosure.receipt.verify(public=public)
            return check_reply(ask, disclosure)

        return next(find_all(self.courier, self.reply_key(ask), read, pass_over), None)

    def _check_signer(self, owner: str, envelope: Envelope) -> None:
        if owner in self.keys and envelope.owner_key != self.keys[owner]:
            raise TamperError(f"It was signed by another key than that of {owner}.")

    def reply_key(self, ask: AskOwner) -> str:
        """Return where the reply to an ask will be: a release for everybody, rows for this learner."""
        if not ask.question.discloses:
            return key_of("release", ask.owner, ask.question.digest)
        question = self.envelope(ask, self.payload(ask))
        return key_of("disclosure", ask.owner, ask.question.digest, question.identity)

    def withdraw(self, question: Envelope) -> None:
        """State that a question is not waited for any more: its owner need not pay for it.

        A learner without a key states nothing, since anybody could state it in its place.
        """
        if self.sender.key is None:
            return
        withdrawal = Envelope(
            kind="withdrawal",
            owner=question.owner,
            owner_key=question.owner_key,
            question=question.question,
            asked=question.identity,
            learner=question.learner,
            learner_key=question.learner_key,
        )
        post(self.courier, withdrawal, b"", self.sender.key)

    def has_withdrawn(self, question: Envelope) -> bool:
        """Whether this learner went on without an answer before."""
        signer = question.learner_key
        return signer != "" and has_written(
            self.courier, signer, "withdrawal", question.owner, question.question, question.identity
        )

    def find_refusal(self, ask: AskOwner, question: Envelope) -> Refused | None:
        """Return the latest refusal of a question that this learner asked, or None if there is none."""
        addressed_to = (ask.owner, ask.question.digest, question.identity)

        def read(item: SignedItem) -> Refused:
            envelope = item.envelope
            if (
                envelope.kind not in ("refusal", "failure")
                or (envelope.owner, envelope.question, envelope.asked) != addressed_to
            ):
                raise WireError("It is a refusal of another question.")
            self._check_signer(ask.owner, envelope)
            return Refused(envelope.reason, opened=envelope.kind == "failure")

        refusals = [*find_all(self.courier, key_of("refusal", *addressed_to), read)]
        return refusals[-1] if refusals else None


class Round:
    """The asks of one round, and the replies that have come so far."""

    def __init__(
        self,
        asking: Asking,
        asks: tuple[AskOwner, ...],
        number: int,
        optional: frozenset[str],
        watch: Callable[[Step], None] | None,
    ) -> None:
        self.asking, self.number, self.optional, self._watch = asking, number, optional, watch
        self.asks = tuple(map(asking.with_secret_salt, asks))
        # By the place of the ask in this round:
        self.replies: dict[int, Reply | Absent] = {}
        self.questions: dict[int, tuple[Envelope, str]] = {}  # as they were sent, with their keys
        self._damaged: dict[int, dict[str, str]] = {}  # by key: why a reply cannot be read
        self._noticed: set[str] = set()  # keys of replies

    @property
    def missing(self) -> list[int]:
        """Places of the asks without a reply."""
        return [place for place in range(len(self.asks)) if place not in self.replies]

    def run(self, patience: float) -> list[Reply | Absent]:
        """Ask every owner, then wait for all together."""
        end = time.monotonic() + patience
        for ask in self.asks:
            self.asking.tidy(ask.owner)
        self._skip_withdrawn()
        self._collect_replies()
        for place in self.missing:
            self.questions[place] = self.asking.ask(self.asks[place])
            self._report(place, "asked")
        pause = SHORTEST_WAIT
        while True:
            for place in self.missing:
                refused = self.asking.find_refusal(self.asks[place], self.questions[place][0])
                if refused is not None:
                    self._report(place, "refused", refused.reason)
                    self._leave_out(place, refused)
            remaining = end - time.monotonic()
            if not self.missing or remaining <= 0:
                break
            self._wait(min(pause, remaining))
            self._collect_replies()
            pause = min(2 * pause, LONGEST_WAIT)
        for place in self.missing:
            self._report(place, "late")
            ask = self.asks[place]
            if ask.owner not in self.optional:
                raise Waiting(
                    f"Waiting for {ask.owner} to answer {ask.question.digest[:12]} "
                    f"(its question is {self.questions[place][1]}). {self._explain_damage(place)}".rstrip()
                )
            self._leave_out(place, LATE)
        return [self.replies[place] for place in range(len(self.asks))]

    def _skip_withdrawn(self) -> None:
        """Go on without the owners that an earlier run left out: later questions depend on it."""
        for place, ask in enumerate(self.asks):
            if ask.owner not in self.optional:
                continue
            question = self.asking.envelope(ask, self.asking.payload(ask))
            if self.asking.has_withdrawn(question):
                refused = self.asking.find_refusal(ask, question) or LATE
                self.replies[place] = Absent(ask.owner, refused.reason, refused.opened)
                self._report(place, "left out", refused.reason)

    def _collect_replies(self) -> None:
        for place in self.missing:
            reply = self.asking.fetch(self.asks[place], partial(self._pass_over, place))
            if reply is not None:
                self.replies[place] = reply
                self._report(place, "answered")

    def _pass_over(self, place: int, key: str, error: PrivadaError) -> None:
        """Report once what is wrong with a reply; its owner delivers it again."""
        reasons = self._damaged.setdefault(place, {})
        if reasons.get(key) != str(error):
            reasons[key] = str(error)
            warn(key, error)
            self._report(place, "damaged", self._explain_damage(place))

    def _explain_damage(self, place: int) -> str:
        reasons = self._damaged.get(place, {}).items()
        faults = " ".join(f"{key} cannot be read: {reason}" for key, reason in reasons)
        owner = self.asks[place].owner
        return f"{faults} {owner} delivers its reply again when it looks next." if faults else ""

    def _leave_out(self, place: int, refused: Refused) -> None:
        """Go on without an owner, if the learner can. The withdrawal tells the owner, and later runs."""
        owner = self.asks[place].owner
        if owner not in self.optional:
            raise AnswerError(f"{owner} refused: {refused.reason}")
        self.asking.withdraw(self.questions[place][0])
        self.replies[place] = Absent(owner, refused.reason, refused.opened)
        self._report(place, "left out", refused.reason)

    def _wait(self, seconds: float) -> None:
        """Wait for a reply to any missing ask."""
        owners = {self.asks[place].owner for place in self.missing}
        prefix = folder_of("release", owners.pop()) + "/" if len(owners) == 1 else "releases/"
        keys = {key for place in self.missing for key in successors(self.asking.reply_key(self.asks[place]))}
        arrived = self.asking.courier.wait(prefix, known=_AllBut(keys - self._noticed), seconds=seconds)
        self._noticed.update(arrived)  # one that cannot be read does not wake us again

    def _report(self, place: int, state: str, reason: str = "") -> None:
        if self._watch is not None:
            owner, digest = self.asks[place].owner, self.asks[place].question.digest
            self._watch(Step(round=self.number, owner=owner, question=digest, state=state, reason=reason))


class _AllBut:
    """Every key but those that are waited for."""

    def __init__(self, keys: set[str]) -> None:
        self._keys = keys

    def __contains__(self, key: object) -> bool:
        return key not in self._keys


__all__ = ["LATE", "Asking", "Refused", "Reply", "Round", "Sender", "Step"]
