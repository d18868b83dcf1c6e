"""The budget that a fit was given: of a data set on a ledger, or of an owner."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privada.exceptions import InputError, PrivadaError
from privada.privacy.guarantee import Guarantee
from privada.privacy.ledger import Ledger
from privada.privacy.ledger.heads import heads_of
from privada.privacy.receipt import OwnerKey

KEY_OF_URL = "PRIVADA_LEDGER_KEY"  # environment: path of the key that a ledger at a URL was made with


@dataclass(eq=False)
class GivenBudget:
    """A budget that others may charge, too: what it states is read from its ledger whenever it is asked for.

    Attributes
    ----------
    identity : str
        Of the budget: its opening line, which no other budget has.
    place : str or None
        Path or URL, by which it can be read later and in other processes.
    stated : Guarantee or None
        What the ledger stated when it could last be read; None before the first charge.
    """

    dataset: str
    identity: str
    place: str | None = None
    ledger: Ledger | None = None
    stated: Guarantee | None = None

    @classmethod
    def of(cls, ledger: Ledger, dataset: str, given: Any) -> GivenBudget:
        """The budget of a data set on an open ledger, which was given as itself or as a path or URL."""
        first = next(ledger.lines(dataset))
        place = None if isinstance(given, Ledger) else os.fspath(given)
        return cls(dataset, first.signature, place, ledger)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "ledger": None}

    def release_ledger(self) -> None:
        """Read it for the last time from a ledger that is closed then, and from its place later."""
        self.read()
        if self.place is not None:
            self.ledger = None

    def read(self) -> Guarantee | None:
        """What everything that was charged to it has cost; as it was last known if it cannot be read."""
        if self.ledger is None and self.place is None:
            return self.stated
        try:
            with self._opened() as ledger:
                self.stated = ledger.spent(self.dataset)
        except (PrivadaError, OSError):
            pass
        return self.stated

    @contextmanager
    def _opened(self) -> Iterator[Ledger]:
        if self.ledger is not None:
            yield self.ledger
            return
        with open_ledger(self.place) as ledger:
            if next(ledger.lines(self.dataset)).signature != self.identity:
                raise InputError("Another ledger is in this place now.")
            yield ledger


def open_ledger(ledger: Any) -> Ledger:
    """A ledger that was given as itself, as a path (its key is ``PATH.key``) or as a URL.

    The key of a ledger at a URL is in the file that the environment variable ``PRIVADA_LEDGER_KEY``
    names, and its heads are recorded in ``ledger.heads`` beside that.
    A ledger that does not exist is never created: its budget has to be opened first.
    """
    if isinstance(ledger, Ledger):
        return ledger
    if not isinstance(ledger, (str, os.PathLike)):
        raise InputError(f"Expected ledger to be a Ledger, a path or a URL, got {type(ledger).__name__}.")
    place = os.fspath(ledger)
    key = _key_of(place)
    heads = None if place.startswith("sqlite:///") else heads_of(place, key)
    return Ledger.open(place, OwnerKey.load(key), create=False, heads=heads)


def _key_of(place: str) -> Path:
    if "://" not in place or place.startswith("sqlite:///"):
        return Path(place.removeprefix("sqlite:///") + ".key")
    if not (path := os.environ.get(KEY_OF_URL)):
        raise InputError(f"Expected {KEY_OF_URL} to name the key file of the ledger at a URL.")
    return Path(path)


__all__ = ["GivenBudget", "open_ledger"]
