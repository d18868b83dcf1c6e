"""Which subjects of a NATS server a party may use: its own part of an exchange, and nothing else.

==============  ====================================  ===========================================
party           writes                                reads
==============  ====================================  ===========================================
owner NAME      releases and refusals of NAME         questions to NAME; its releases, refusals
learner         questions to any owner                releases and refusals; questions by their
                                                      whole key, never a list of them
administrator   nothing                               nothing; creates the exchange
==============  ====================================  ===========================================

Nobody may delete, purge, change a stream, or listen to another party's replies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from privada._text import quoted
from privada.exceptions import InputError
from privada.exchange.courier import is_segment
from privada.exchange.couriers.nats import stream_of, subject_of

Role = Literal["owner", "learner", "administrator"]


@dataclass(frozen=True, order=True)
class Party:
    """Who may connect: an owner or a learner of a name, or the administrator."""

    role: Role
    name: str = ""

    def __post_init__(self) -> None:
        if self.role != "administrator" and (not is_segment(self.name) or "." in self.name):
            raise InputError(f"Expected a name of letters, digits, - and _, got {quoted(self.name)}.")

    @property
    def common_name(self) -> str:
        """The name in the party's certificate, by which the server knows it.

        >>> Party("owner", "clinic").common_name
        'owner-clinic'
        """
        return f"{self.role}-{self.name}" if self.name else self.role


def subjects_to_publish(party: Party, exchange: str) -> list[str]:
    """The subjects that a party may publish to, requests to JetStream included.

    >>> subjects_to_publish(Party("administrator"), "trial")
    ['$JS.API.STREAM.CREATE.privada-trial']
    """
    stream = stream_of(exchange)
    if party.role == "administrator":
        return [f"$JS.API.STREAM.CREATE.{stream}"]
    written, listed, fetched = _places(party)
    return [
        *(_below(exchange, place) for place in written),
        *(f"$JS.API.CONSUMER.CREATE.{stream}.*.{_below(exchange, place)}" for place in listed),
        *(f"$JS.API.DIRECT.GET.{stream}.{_below(exchange, place)}" for place in fetched),
    ]


def subjects_to_hear(party: Party) -> list[str]:
    """The subjects that a party may subscribe to: replies to itself."""
    return [f"_INBOX.{party.common_name}.>"]


def _places(party: Party) -> tuple[list[str], list[str], list[str]]:
    """What a party may write, list and fetch."""
    if party.role == "owner":
        own = [f"releases/{party.name}", f"refusals/{party.name}"]
        return own, [f"questions/{party.name}", *own], [f"questions/{party.name}", *own]
    replies = ["releases", "refusals"]
    return ["questions"], replies, [*replies, "questions"]


def _below(exchange: str, place: str) -> str:
    return subject_of(exchange, f"{place}/>")


__all__ = ["Party", "Role", "subjects_to_hear", "subjects_to_publish"]
