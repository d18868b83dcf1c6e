r"""Who asks, for which project and what for: what a ledger line says of the learner.

An `Asker` is a statement. Whoever makes one from a message has checked the
message's signature under ``key`` first; the owner then looks the key up among
those that it knows and uses the name that it knows the key by.

>>> Asker(learner="alice", key="ab" * 32, project="stroke", purpose="a model for triage").learner
'alice'
>>> Asker(learner="al\x1bice", key="ab" * 32)  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
privada.exceptions.InputError: Expected learner to be one line of printable text, got 'al\x1bice': write ...
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from privada._text import printable_line, quoted
from privada.exceptions import InputError
from privada.privacy.keys import check_public_key

LONGEST_NAME = 100
LONGEST_PROJECT = 200
LONGEST_PURPOSE = 1000


@dataclass(frozen=True)
class Asker:
    """The learner that asks a question.

    Parameters
    ----------
    learner : str
        The learner's name, of at most 100 characters.
    key : str
        The public half of the learner's key, 64 hexadecimal digits.
    project : str, default=""
        The project, of at most 200 characters.
    purpose : str, default=""
        What the answer is for, in the learner's words, of at most 1000 characters.

    Privacy
    -------
    Everything here is written by the learner and public; nothing of it depends on a row.
    """

    learner: str
    key: str
    project: str = ""
    purpose: str = ""

    def __post_init__(self) -> None:
        check_line(learner=self.learner, longest=LONGEST_NAME)
        check_public_key(key=self.key)
        check_line(project=self.project, longest=LONGEST_PROJECT, empty=True)
        check_line(purpose=self.purpose, longest=LONGEST_PURPOSE, empty=True)

    def to_dict(self) -> dict[str, str]:
        """Plain form."""
        return asdict(self)


def check_line(*, longest: int, empty: bool = False, **named: Any) -> str:
    """Return one line of text that every terminal, page and database can show, else raise `InputError`."""
    ((name, value),) = named.items()
    if not isinstance(value, str) or len(value) > longest:
        size = f", which has {len(value)}: shorten it" if isinstance(value, str) else ""
        shown = quoted(value, most=80)
        raise InputError(f"Expected {name} to be text of at most {longest} characters, got {shown}{size}.")
    if printable_line(value) != value:
        raise InputError(
            f"Expected {name} to be one line of printable text, got {quoted(value, most=80)}: "
            "write it without line ends, tabs and control characters."
        )
    if value != value.strip() or not (value or empty):
        raise InputError(
            f"Expected {name} to be text without spaces at its ends, got {quoted(value, most=80)}."
        )
    return value


__all__ = ["LONGEST_NAME", "LONGEST_PROJECT", "LONGEST_PURPOSE", "Asker", "check_line"]
