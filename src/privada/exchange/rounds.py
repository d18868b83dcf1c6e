"""One round of a learner: everybody is asked, then all are waited for together."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from privada.exceptions import AnswerError, PrivadaError, Waiting
from privada.exchange.envelope import Envelope
from privada.exchange.posting import folder_of, successors, warn
from privada.parties.protocol import Absent, AskOwner
from privada.privacy.release import Disclosure, Release

if TYPE_CHECKING:
    from privada.exchange.asking import Asking

Reply = Release | Disclosure
SHORTEST_WAIT, LONGEST_WAIT = 0.05, 1.0  # seconds between two looks for refusals


@dataclass(frozen=True, kw_only=True)
class Step:
    """What happened to one question.

    ``state`` is ``"asked"``, ``"answered"``, ``"damaged"`` (there is a reply, but it cannot be read),
    ``"refused"``, ``"late"`` or ``"left out"``.
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


class Round:
    """The asks of one round, and the replies that have come so far."""

    def __init__(
        self,
        asking: Asking,
        asks: tuple[AskOwner, ...],
        number: int,
        spared: frozenset[str],
        watch: Callable[[Step], None],
    ) -> None:
        self.asking, self.number, self.spared, self._watch = asking, number, spared, watch
        self.asks = tuple(map(asking.with_secret_salt, asks))
        self.replies: dict[int, Reply | Absent] = {}
        self.sent: dict[int, Envelope] = {}
        self.asked_as: dict[int, str] = {}
        self._seen: set[str] = set()
        self._damaged: dict[int, dict[str, str]] = {}  # by ask and key: why a reply cannot be read

    @property
    def missing(self) -> list[int]:
        """Places of the asks without a reply."""
        return [at for at in range(len(self.asks)) if at not in self.replies]

    def run(self, patience: float) -> list[Reply | Absent]:
        """Ask everybody, then wait for all together."""
        end = time.monotonic() + patience
        for ask in self.asks:
            self.asking.tidy(ask.owner)
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
            asked = self.asking.envelope(ask, self.asking.payload(ask))
            if self.asking.has_withdrawn(asked):
                refused = self.asking.find_refusal(ask, asked) or LATE
                self.replies[at] = Absent(ask.owner, refused.reason, refused.opened)
                self._say(at, "left out", refused.reason)

    def _look_for_replies(self) -> None:
        for at in self.missing:
            reply = self.asking.fetch(self.asks[at], partial(self._pass_over, at))
            if reply is not None:
                self.replies[at] = reply
                self._say(at, "answered")

    def _pass_over(self, at: int, key: str, error: PrivadaError) -> None:
        """Say once what is wrong with a reply; its owner delivers it again."""
        reasons = self._damaged.setdefault(at, {})
        if reasons.get(key) != str(error):
            reasons[key] = str(error)
            warn(key, error)
            self._say(at, "damaged", self._explain_damage(at))

    def _explain_damage(self, at: int) -> str:
        replies = " ".join(f"{key} cannot be read: {why}" for key, why in self._damaged.get(at, {}).items())
        return (
            f"{replies} {self.asks[at].owner} delivers its reply again when it looks next." if replies else ""
        )

    def _look_for_refusals(self) -> None:
        for at in self.missing:
            refused = self.asking.find_refusal(self.asks[at], self.sent[at])
            if refused is not None:
                self._say(at, "refused", refused.reason)
                self._leave_out(at, refused)

    def _leave_out(self, at: int, refused: Refused) -> None:
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
                f"(its question is {self.asked_as[at]}). {self._explain_damage(at)}".rstrip()
            )
        self._leave_out(at, LATE)

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


__all__ = ["LATE", "Refused", "Reply", "Round", "Step"]
