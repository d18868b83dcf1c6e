r"""Text that others wrote: how much of it a message carries, and what of it a terminal may see.

>>> printable("a\x1b[2J\u202eb")
'a\\x1b[2J\\u202eb'
>>> bounded("x" * 30 + ". Nothing was charged.", most=40)
'xxxxxxxxxxxxxxxxx [...] ing was charged.'
"""

from __future__ import annotations

import re
from typing import Any

LONGEST_MESSAGE = 1000
LONGEST_VALUE = 120
_GAP = " [...] "

# What a terminal obeys instead of showing it: C0, DEL and C1; marks, embeddings, overrides and isolates of
# writing direction; line and paragraph separators; and halves of characters, which cannot be written at all.
_OBEYED = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_IN_TEXT = re.compile(f"[{_OBEYED}]")
_IN_LINE = re.compile(f"[\t\n{_OBEYED}]")


def printable(text: str) -> str:
    """The text with every control character written out; line ends and tabs stay."""
    return _IN_TEXT.sub(_written_out, text)


def printable_line(text: str) -> str:
    """The same for what must stay one line: line ends and tabs are written out, too."""
    return _IN_LINE.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    code = ord(found.group())
    return {9: "\\t", 10: "\\n", 13: "\\r"}.get(code, f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")


def escape_in_json(text: str) -> str:
    """JSON text in which control characters are escapes; it reads back as the same value."""
    return _IN_TEXT.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def escape_in_html(text: str) -> str:
    """Text for a page: neither markup nor control characters in it do anything."""
    import html

    return html.escape(printable(text))


def bounded(text: str, *, most: int = LONGEST_MESSAGE) -> str:
    """The text, or its beginning and its end if it is longer than ``most`` characters."""
    if len(text) <= most:
        return text
    end = (most - len(_GAP)) // 2
    return text[: most - len(_GAP) - end] + _GAP + text[-end:]


def quoted(value: Any, *, most: int = LONGEST_VALUE) -> str:
    """The repr of a value for a message, at most ``most`` characters of it.

    >>> quoted(10**5000)
    'a whole number of more than 4300 digits'
    """
    try:
        return bounded(repr(value), most=most)
    except ValueError:  # Python does not write out longer numbers
        return "a whole number of more than 4300 digits"


__all__ = ["bounded", "escape_in_html", "escape_in_json", "printable", "printable_line", "quoted"]
