r"""The learner that asks, and the names of learners and data sets.

An `Asker` is a statement. Whoever makes one from a message has checked the
message's signature under ``key`` first; the owner then looks the key up among
those that it knows and uses the name that it knows the key by.

>>> Asker(learner="alice", key="ab" * 32, project="stroke", purpose="a model for triage").learner
'alice'
>>> Asker(learner="al\x1bice", key="ab" * 32)  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
privada.exceptions.InputError: Expected learner to be one line of printable text, got 'al\x1bice': write ...

**Names.** A budget belongs to a name, so a name that merely looks like another must not open a second one.
Names are normalised before they are used (Unicode NFKC, no spaces at the ends, single spaces inside). A new
name contains no invisible character, and is refused if it differs from an existing one only by such
characters or by upper and lower case. A name whose letters look like those of an existing one, because two
alphabets share shapes, gets a warning only: a and \u0430 can stand in two words of two languages that are
rightly two names.

A ledger may contain names from before these rules. They stay what they are: each finds its own budget, and
its lines verify.

>>> normal_name(" patients \u00a0 2024")
'patients 2024'
>>> check_name(dataset="caf\u00e9\u200b", longest=200)  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
privada.exceptions.InputError: Expected dataset to have no invisible character, ...'café\u200b'...
>>> is_confusable("scope", "\u0455\u0441\u043e\u0440\u0435")
True
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

from privada._text import printable_line, quoted
from privada.exceptions import InputError, LedgerError, PrivacyLeakWarning
from privada.privacy.keys import check_public_key

LONGEST_NAME = 100
LONGEST_PROJECT = 200
LONGEST_PURPOSE = 1000
TABLE = Path(__file__).with_name("confusables.txt")

# Unicode's Default_Ignorable_Code_Point, and the one blank that is a symbol by its category.
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f-\u1160\u17b4-\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_IS_IGNORABLE = re.compile(f"[{_IGNORABLE}]")
# Control, format, private use, halves of characters, unassigned; separators of lines, paragraphs and words.
_UNSEEN = ("Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp", "Zs")


@dataclass(frozen=True)
class Asker:
    """The learner that asks a question.

    The learner writes everything here. It is public, and none of it depends on a row. The ``key`` is the
    public half of the learner's key, 64 hexadecimal digits. The name ``learner`` has at most 100 characters,
    the ``project`` 200, and the ``purpose``, which says what the answer is for, 1000.
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
    quote = quoted(value, most=80)
    if not isinstance(value, str) or len(value) > longest:
        size = f", which has {len(value)}: shorten it" if isinstance(value, str) else ""
        raise InputError(f"Expected {name} to be text of at most {longest} characters, got {quote}{size}.")
    if printable_line(value) != value:
        raise InputError(
            f"Expected {name} to be one line of printable text, got {quote}: "
            "write it without line ends, tabs and control characters."
        )
    if value != value.strip() or not (value or empty):
        raise InputError(f"Expected {name} to be text without spaces at its ends, got {quote}.")
    return value


def normal_name(name: str) -> str:
    """The form of a name under which a data set is known."""
    return " ".join(unicodedata.normalize("NFKC", name).split())


def check_name(*, longest: int, **named: Any) -> str:
    """Return a name without invisible characters, else raise `InputError`."""
    ((name, value),) = named.items()
    invisible = next((letter for letter in str(value) if _is_invisible(letter)), None)
    if isinstance(value, str) and len(value) <= longest and invisible is not None:
        character = f"U+{ord(invisible):04X} ({unicodedata.name(invisible, 'without a name')})"
        raise InputError(
            f"Expected {name} to have no invisible character, got {show_name(value)}, which has "
            f"{character}: remove it."
        )
    return check_line(**named, longest=longest)


def check_distinct(name: str, known: Iterable[str]) -> None:
    """Raise `LedgerError` if a new name could be taken for a known one; warn if its letters look like it."""
    for other in known:
        if is_alike(other, name):
            raise LedgerError(
                f"The ledger has a budget of {show_name(other)}; one of {show_name(name)} would be taken for "
                "it. Use the name that is there: a second budget for the same rows would promise nothing."
            )
        if is_confusable(name, other):
            warnings.warn(
                f"The ledger has a budget of {show_name(other)}, whose letters look like those of "
                f"{name!a}. If the two are for the same rows, neither promises what it says.",
                PrivacyLeakWarning,
                stacklevel=3,
            )


def check_single(name: str, known: Callable[[], Iterable[str]]) -> None:
    """Raise `LedgerError` if a name with invisible characters and one that looks the same have budgets."""
    if name == normal_name(name) and not any(map(_is_invisible, name)):
        return
    other = next((other for other in known() if other != name and is_same_to_see(other, name)), None)
    if other is not None:
        raise LedgerError(
            f"The ledger has budgets of {show_name(other)} and {show_name(name)}, which look the same: "
            f"nothing more is charged to {show_name(name)}. "
            "What was spent on the same rows is the sum of both."
        )


def find_same(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pairs of different names that look the same."""
    return ((one, other) for one, other in combinations(names, 2) if is_same_to_see(one, other))


def is_alike(name: str, other: str) -> bool:
    """Whether names differ only in case, spaces, forms and invisible characters."""
    return normal_name(_strip(name).casefold()) == normal_name(_strip(other).casefold())


def is_same_to_see(name: str, other: str) -> bool:
    """Whether names differ only in spaces, forms and invisible characters."""
    return _strip(name) == _strip(other)


def is_confusable(name: str, other: str) -> bool:
    """Whether one name can be mistaken for the other, as Unicode's list of confusable characters says."""
    return skeleton(name) == skeleton(other)


def skeleton(name: str) -> str:
    """The shape of a name: ASCII letters in place of all letters that look like them, in lower case."""
    table = _read_confusables()
    shape = _strip(name.translate(table)).translate(table)
    return shape.casefold().translate(table).casefold()


def show_name(name: str) -> str:
    """A name for a message, with invisible characters written out."""
    return _IS_IGNORABLE.sub(lambda match: ascii(match.group())[1:-1], quoted(name, most=80))


def _strip(name: str) -> str:
    """A name in its normal form, without invisible characters."""
    # Twice: normalising can produce ignorable characters, and removing them can leave spaces.
    return normal_name(_IS_IGNORABLE.sub("", normal_name(_IS_IGNORABLE.sub("", name))))


def _is_invisible(letter: str) -> bool:
    if letter == " ":
        return False
    return unicodedata.category(letter) in _UNSEEN or _IS_IGNORABLE.match(letter) is not None


@cache
def _read_confusables() -> dict[int, str]:
    """A table of the characters that look like ASCII ones, with the ASCII ones."""
    table: dict[int, str] = {}
    for line in TABLE.read_text(encoding="ascii").splitlines():
        if line and not line.startswith("#"):
            target, *sources = line.split()
            table |= {int(source, 16): target for source in sources}
    return table
