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

Each party has an account of its own at the server, into which exactly these subjects are imported from the
account that keeps the exchange (`privada.exchange.broker.configuration`). Permissions alone would not do:
they say where a party may write, not where the server sends its reply, and a reply that is sent to another
party's key would be stored there. A reply stays in the account of who asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from privada._text import quoted
from privada.exceptions import InputError
from privada.exchange.courier import is_segment
from privada.exchange.couriers.nats import stream_of, subject_of

Role = Literal["owner", "learner", "administrator"]
PARTY_API = "privada-api"  # what JetStream's API is called in a party's account, where JetStream is off


@dataclass(frozen=True)
class Party:
    """Who may connect: an owner or a learner of a name, or the administrator.

    Parameters
    ----------
    role : {"owner", "learner", "administrator"}
    name : str, default=""
    datasets : tuple of str, default=()
        Of an owner with several data sets: their names in studies. By default, one of the owner's name.
    """

    role: Role
    name: str = ""
    datasets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in (self.name, *self.datasets) if self.role != "administrator" else ():
            if not is_segment(name) or "." in name:
                raise InputError(f"Expected a name of letters, digits, - and _, got {quoted(name)}.")

    @classmethod
    def parse_owner(cls, text: str) -> Party:
        """Read ``NAME`` or, for several data sets, ``NAME=DATASET,DATASET``.

        >>> Party.parse_owner("clinic=scans,visits").datasets
        ('scans', 'visits')
        """
        name, equals, datasets = text.partition("=")
        return cls("owner", name, tuple(datasets.split(",")) if equals else ())

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
        *(f"{PARTY_API}.CONSUMER.CREATE.{stream}.*.{_below(exchange, place)}" for place in listed),
        *(f"{PARTY_API}.DIRECT.GET.{stream}.{_below(exchange, place)}" for place in fetched),
    ]


def subjects_to_hear(party: Party) -> list[str]:
    """The subjects that a party may subscribe to: replies to itself."""
    return [f"_INBOX.{party.common_name}.>"]


def _places(party: Party) -> tuple[list[str], list[str], list[str]]:
    """What a party may write, list and fetch."""
    if party.role == "owner":
        names = party.datasets or (party.name,)
        own = [f"{kind}/{name}" for name in names for kind in ("releases", "refusals")]
        seen = [*(f"questions/{name}" for name in names), *own]
        return own, seen, seen
    replies = ["releases", "refusals"]
    return ["questions"], replies, [*replies, "questions"]


def _below(exchange: str, place: str) -> str:
    return subject_of(exchange, f"{place}/>")


__all__ = ["PARTY_API", "Party", "Role", "subjects_to_hear", "subjects_to_publish"]
