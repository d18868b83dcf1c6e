"""Where the passphrase of a key comes from: the environment, or a person at a terminal.

Never from an owner's file and never from a command's arguments, which other
users can read while it runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from privada.exceptions import InputError, LedgerError

T = TypeVar("T")

VARIABLE = "PRIVADA_KEY_PASSPHRASE"
NEW_VARIABLE = "PRIVADA_NEW_KEY_PASSPHRASE"
SHORTEST, LONGEST = 8, 1000

_TYPED: dict[Path, str] = {}  # so that one run asks once for each key


def check_passphrase(passphrase: str) -> str:
    """The passphrase, if it is neither too short nor too long; it is never shown."""
    if not SHORTEST <= len(passphrase.encode()) <= LONGEST:
        raise InputError(f"Expected a passphrase of {SHORTEST} to {LONGEST} bytes.")
    return passphrase


def find_passphrase(file: Path, opened: Callable[[str], T]) -> T:
    """What a key's passphrase opens: that of the environment, else one that is typed."""
    said = os.environ.get(VARIABLE)
    if said is not None:
        return opened(said)
    place = file.resolve()
    typed = _TYPED.get(place)
    if typed is None:
        typed = _ask(f"Passphrase of {file.name}: ", instead=VARIABLE)
    made = opened(typed)
    _TYPED[place] = typed
    return made


def choose_passphrase(variable: str = NEW_VARIABLE) -> str:
    """A new passphrase: that of an environment variable, else typed twice."""
    said = os.environ.get(variable)
    if said is not None:
        return check_passphrase(said)
    typed = check_passphrase(_ask("New passphrase: ", instead=variable))
    if _ask("The same again: ", instead=variable) != typed:
        raise InputError("The two passphrases differ; nothing was written.")
    return typed


def _ask(prompt: str, *, instead: str) -> str:
    if not sys.stdin.isatty():
        raise LedgerError(f"There is no terminal to ask for the passphrase of the key; set {instead}.")
    from getpass import getpass

    return getpass(prompt)


__all__ = ["NEW_VARIABLE", "VARIABLE", "check_passphrase", "choose_passphrase", "find_passphrase"]
