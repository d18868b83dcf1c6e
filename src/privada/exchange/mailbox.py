"""One exchange, seen from either side: signed questions in, signed releases and refusals out.

::

    questions/<owner>/<question>-<envelope>.question    written by the learner, signed if it has a key
    releases/<owner>/<question>.release                 written by the owner, signed
    refusals/<owner>/<question>-<envelope>.refusal      why this learner's question is not answered, signed

Every item is written once and no party deletes any, over every courier: memory, a folder, a bucket, NATS.
The exchange holds no state of an owner, which is in the owner's ledger.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterator, Mapping
from types import TracebackType
from typing import Self, TypeVar

from privada.exchange.answering import Answered, Answering, Pending
from privada.exchange.asking import Asking, Sender, Step
from privada.exchange.courier import Courier, open_courier
from privada.parties.owner import Owner
from privada.parties.protocol import AskOwner, Inquiry, Learner
from privada.privacy.release import Release

T = TypeVar("T")


class Mailbox:
    """Ask through an exchange, or answer what was asked there.

    Parameters
    ----------
    courier : Courier
        What carries the items.
    keys : mapping of owner's name to public key, optional
        Replies of these owners must be signed by these keys; of others, by any.
    sender : Sender, optional
        The learner that asks. By default questions are unsigned, which an owner that lists its learners
        refuses.

    Privacy
    -------
    What an owner puts into the exchange is a release that was charged first, a refusal, or rows that
    its policy lets a named curator have, encrypted for that curator's key and padded to a public length;
    each is signed. A question whose content follows from its owner's rows is encrypted for that owner.
    """

    def __init__(
        self, courier: Courier, *, keys: Mapping[str, str] | None = None, sender: Sender | None = None
    ) -> None:
        self.courier = courier
        self._answering: dict[str, Answering] = {}
        self._asking = Asking(courier, keys=keys or {}, sender=sender or Sender())

    @classmethod
    def open(
        cls,
        url: str | os.PathLike[str],
        *,
        keys: Mapping[str, str] | None = None,
        sender: Sender | None = None,
    ) -> Self:
        """Open the exchange at a folder's path or a URL (`privada.exchange.open_courier`)."""
        return cls(open_courier(url), keys=keys, sender=sender)

    def learn(
        self,
        learner: Inquiry[T] | Learner[T],
        *,
        patience: float = 0.0,
        witness: Callable[[Release], None] | None = None,
        watch: Callable[[Step], None] | None = None,
    ) -> T:
        """Drive a learner; see `privada.exchange.asking.Asking.learn`."""
        return self._asking.learn(learner, patience=patience, witness=witness, watch=watch)

    def ask(self, ask: AskOwner) -> str:
        """Send one question, unless it was sent before, and return its key in the exchange."""
        return self._asking.ask(self._asking.with_secret_salt(ask))[1]

    def has_reply(self, ask: AskOwner) -> bool:
        """Whether the reply to an ask has come."""
        return self._asking.fetch(self._asking.with_secret_salt(ask)) is not None

    def pending(self, name: str, owner: Owner) -> Iterator[Pending]:
        """Yield the questions to an owner that have neither a release nor a refusal of it."""
        return self.for_owner(name, owner).pending()

    def for_owner(self, name: str, owner: Owner) -> Answering:
        """Return the owner's side of the exchange, for an owner under its name in studies.

        It remembers what it read, so that a program that looks often does not read everything each time.
        """
        answering = self._answering.get(name)
        if answering is None or answering.owner is not owner:
            self._answering[name] = answering = Answering(self.courier, name, owner)
        return answering

    def answer(
        self, name: str, owner: Owner, *, approved: Container[str] = (), reconsider: Container[str] = ()
    ) -> list[Answered]:
        """Answer everything that is pending for an owner; see `Answering.answer`."""
        return self.for_owner(name, owner).answer(approved=approved, reconsider=reconsider)

    def close(self) -> None:
        """Close connections."""
        self.courier.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


__all__ = ["Mailbox"]
