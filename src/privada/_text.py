r"""Text that others wrote: made short for messages, and harmless for terminals and pages.

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
    """Write every control character out as an escape; line ends and tabs stay."""
    return _IN_TEXT.sub(_escape, text)


def printable_line(text: str) -> str:
    """Do the same for text that must stay one line: line ends and tabs are escaped, too."""
    return _IN_LINE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return {9: "\\t", 10: "\\n", 13: "\\r"}.get(code, f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")


def escape_in_json(text: str) -> str:
    """Escape control characters in JSON text; it reads back as the same value."""
    return _IN_TEXT.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def escape_in_html(text: str) -> str:
    """Escape text for a page: neither markup nor control characters in it do anything."""
    import html

    return html.escape(printable(text))


def bounded(text: str, *, most: int = LONGEST_MESSAGE) -> str:
    """Shorten a text of more than ``most`` characters to its beginning and its end."""
    if len(text) <= most:
        return text
    end = (most - len(_GAP)) // 2
    return text[: most - len(_GAP) - end] + _GAP + text[-end:]


def quoted(value: Any, *, most: int = LONGEST_VALUE) -> str:
    """Return the repr of a value for a message, shortened to ``most`` characters.

    >>> quoted(10**5000)
    'a whole number of more than 4300 digits'
    """
    try:
        return bounded(repr(value), most=most)
    except ValueError:  # Python does not write out longer numbers
        return "a whole number of more than 4300 digits"


__all__ = ["bounded", "escape_in_html", "escape_in_json", "printable", "printable_line", "quoted"]
